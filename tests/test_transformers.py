"""The transformers backend: the contract of every LLM in bf16 and NF4, and what is its own (real SmolLM2-135M)."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import torch
from llm_contract import QUESTIONS, LLMContract, NumberContract, ask, run
from transformers import LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

from assistant.errors import ModelError
from assistant.llm.continuous_batching import ContinuousBatcher
from assistant.llm.dequantise import dequantised
from assistant.llm.engines.transformers import Transformers
from assistant.llm.pretrained import load_model
from assistant.protocols import LLM
from assistant.settings import LLMSettings, Settings
from assistant.types import Completion, Message, Options

pytestmark = pytest.mark.model
ROOT = Path(__file__).parents[1]
SMALL = LLMSettings(context=1024)


@pytest.fixture(scope="module")
def bf16(smollm_folder: Path) -> Transformers:
    return Transformers(smollm_folder, SMALL, "smollm2-135m")


@pytest.fixture(scope="module")
def nf4(smollm_folder: Path) -> Transformers:
    return Transformers(smollm_folder, SMALL, "smollm2-135m", "nf4")


class TestBf16Contract(LLMContract):
    @pytest.fixture
    def llm(self, bf16: Transformers) -> LLM:
        return bf16


class TestNf4Contract(NumberContract):
    """The weights alone are others."""

    @pytest.fixture
    def llm(self, nf4: Transformers) -> LLM:
        return nf4


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The models that engines load from now on."""
    found: list[Any] = []

    def load(*given: Any) -> Any:
        found.append(load_model(*given))
        return found[-1]

    monkeypatch.setattr("assistant.llm.engines.transformers.load_model", load)
    return found


def test_what_is_under_way_as_the_model_is_unloaded_says_so(smollm_folder: Path) -> None:
    llm = Transformers(smollm_folder, SMALL, "smollm2-135m")
    stream = llm.stream(ask("Tell me a story."), Options(200, temperature=0.5), Event())
    next(stream)
    llm.close()
    llm.close()
    for call in (lambda: list(stream), lambda: llm.choose([ask("Hi")], ("yes", "no"), Event())):
        with pytest.raises(ModelError, match="smollm2-135m was unloaded; start again to use it"):
            call()


def test_nf4_is_really_four_bits(smollm_folder: Path, loads: list[Any]) -> None:
    # A model that has answered nothing yet: on a CPU, bitsandbytes repacks the weights when they are first used.
    Transformers(smollm_folder, SMALL, "smollm2-135m", "nf4")
    [model] = loads
    kinds = {type(module).__name__ for module in model.modules()}
    assert "Linear4bit" in kinds
    weight = model.model.layers[0].mlp.up_proj.weight
    assert weight.dtype == torch.uint8
    assert weight.quant_state.quant_type == "nf4"
    assert weight.quant_state.nested, "double quantisation"


def test_int8_answers(smollm_folder: Path, loads: list[Any]) -> None:
    llm = Transformers(smollm_folder, LLMSettings(context=512), "int8", "int8")
    [model] = loads
    assert model.model.layers[0].mlp.up_proj.weight.dtype == torch.int8
    assert run(llm, "What is the capital of France?", max_tokens=8)[-1].text


def test_what_is_thought_before_json_is_left_out_as_no_schema_is_kept_to(bf16: Transformers) -> None:
    """What the model goes on with is what it has said before, thought included."""
    asked = Message("user", "Say it again.")
    said = (*(asked, Message("assistant", 'Which one? That one.</think>{"drink": "oats"}')) * 3, asked)
    options = Options(32, schema='{"type": "object"}')
    [whole] = bf16.complete([said], options, Event())
    *_, last = bf16.stream(said, options, Event())
    assert whole.text == last.text == '{"drink": "oats"}'


def test_choosing_agrees_with_scoring(bf16: Transformers) -> None:
    """Tolerance 0.1: bf16 logits of about 20 come in steps of an eighth, and a batch rounds differently."""
    prompts = [ask("Is Paris in France? Answer true or false."), ask("Is fire cold? Answer true or false.")]
    forms = {
        word: [space + form for space in ("", " ") for form in (word, word.capitalize())] for word in ("true", "false")
    }
    for prompt, choice in zip(prompts, bf16.choose(prompts, ("true", "false"), Event()), strict=True):
        logs = {word: bf16.score([(prompt, form) for form in forms[word]], Event()) for word in forms}
        mass = {word: sum(map(math.exp, found)) for word, found in logs.items()}
        expected = mass["true"] / sum(mass.values())
        assert choice.probabilities["true"] == pytest.approx(expected, abs=0.1)


def test_the_score_of_a_reply_is_the_sum_of_its_log_probabilities(bf16: Transformers) -> None:
    prompt = ask("What is the capital of France?")
    written = list(bf16.stream(prompt, Options(6), Event()))[-1]
    (score,) = bf16.score([(prompt, written.text)], Event())
    assert score == pytest.approx(sum(written.logprobs), abs=0.5)
    assert bf16.score([(prompt, "")], Event()) == [0.0]
    stopped = Event()
    stopped.set()
    assert bf16.score([(prompt, written.text)], stopped) == [-math.inf]
    # Having scored a text leaves nothing behind that a later one would see.
    assert bf16.score([(prompt, written.text)], Event()) == [pytest.approx(score, abs=0.1)]


@dataclass(frozen=True)
class Pass:
    """What the model was given at once: so many rows of so many tokens, filled up by so many."""

    rows: int
    width: int
    filling: int


def watch(monkeypatch: pytest.MonkeyPatch, before: Callable[[Pass], object] = lambda _: None) -> list[Pass]:
    """The passes that models make from now on; `before` sees each first, and may fail it."""
    passes: list[Pass] = []
    forward = LlamaForCausalLM.forward

    @wraps(forward)
    def watched(self: LlamaForCausalLM, *given: Any, **more: Any) -> Any:
        (rows, width), mask = more["input_ids"].shape, more["attention_mask"]
        passes.append(Pass(rows, width, int((mask == 0).sum())))
        before(passes[-1])
        return forward(self, *given, **more)

    monkeypatch.setattr(LlamaForCausalLM, "forward", watched)
    return passes


def test_what_prompts_share_is_read_once(bf16: Transformers, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = watch(monkeypatch)
    system = Message("system", "Cheese, which no other test reads of, is made of milk, rennet, salt and time. " * 20)
    prompts = [(system, Message("user", question)) for question in QUESTIONS[:4]]
    length = bf16.count(prompts[0])
    bf16.complete(prompts, Options(1), Event())
    assert length < sum(one.rows * one.width for one in passes) < 2 * length
    passes.clear()
    bf16.complete([(system, Message("user", "Who eats it?"))], Options(1), Event())
    assert sum(one.rows * one.width for one in passes) < 40


def test_prompts_of_one_length_are_read_together(smollm_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = Transformers(smollm_folder, LLMSettings(context=2048, slots=2, prefill_chunk=1024), "smollm2-135m")
    passes = watch(monkeypatch)
    story = "Bread is made of flour, water, salt and time. " * 20
    prompts = [ask("What is bread?"), ask(story + "What is it?"), ask("What is salt?"), ask(story + "What is that?")]
    together = llm.complete(prompts, Options(1), Event())
    assert [one.prompt_tokens for one in together] == [llm.count(prompt) for prompt in prompts]
    odds = llm.choose(prompts, ("yes", "no"), Event())
    assert [one.prompt_tokens for one in odds] == [llm.count(prompt) for prompt in prompts]
    pairs = [one for one in passes if one.rows == 2]
    assert len(pairs) == 4
    assert sum(one.filling for one in pairs) < 20
    alone = [llm.choose([prompt], ("yes", "no"), Event())[0].probabilities["yes"] for prompt in prompts]
    assert [one.probabilities["yes"] for one in odds] == pytest.approx(alone, abs=0.1)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU reads all of these prompts at once")
def test_short_prompts_are_not_filled_up_to_a_long_one(smollm_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = Transformers(smollm_folder, LLMSettings(context=2048, slots=8, prefill_chunk=64), "smollm2-135m")
    passes = watch(monkeypatch)
    long = ask("Bread is made of flour, water, salt and time. " * 20)
    odds = llm.choose([ask("Is it?"), long, ask("Was it?"), ask("Is he?")], ("yes", "no"), Event())
    assert [one.rows for one in passes if one.rows > 1] == [3], "the long one is read alone"
    assert [one.prompt_tokens for one in odds][1] == llm.count(long)


def test_a_short_reply_does_not_wait_for_a_long_one(bf16: Transformers) -> None:
    begun, stop, long = Event(), Event(), list[Completion]()

    def listen() -> None:
        for piece in bf16.stream(ask("Tell me a long story of a ship."), Options(400), stop):
            long.append(piece)
            begun.set()

    listener = Thread(target=listen)
    listener.start()
    assert begun.wait(60)
    assert run(bf16, "Say hi.", max_tokens=3)[-1].finish
    stop.set()
    listener.join()
    assert long[-1].finish == "cancelled"


def test_replies_that_are_written_in_turn_are_the_same(
    smollm_folder: Path, bf16: Transformers, monkeypatch: pytest.MonkeyPatch
) -> None:
    side_by_side: list[int] = []

    def counted(self: ContinuousBatcher, prompt: list[int], most: int, stop: Event) -> Iterator[tuple[int, float]]:
        side_by_side.append(most)
        return tokens(self, prompt, most, stop)

    tokens = ContinuousBatcher.tokens
    monkeypatch.setattr(ContinuousBatcher, "tokens", counted)
    in_turn = Transformers(smollm_folder, LLMSettings(context=2048, continuous_batching=False))
    alone = run(in_turn, QUESTIONS[0], max_tokens=8)[-1].text
    assert side_by_side == []
    assert alone == run(bf16, QUESTIONS[0], max_tokens=8)[-1].text
    assert side_by_side == [8]


def test_a_batch_that_fails_is_told_and_the_next_reply_is_written(
    bf16: Transformers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with monkeypatch.context() as broken:
        broken.setattr(LlamaForCausalLM, "forward", failing)
        with pytest.raises(ModelError, match="ask again"):
            run(bf16, "Say hi.", max_tokens=3)
    assert run(bf16, "Say hi.", max_tokens=3)[-1].text


def test_a_process_ends_though_nobody_closed_the_model(smollm_folder: Path) -> None:
    script = f"""
from pathlib import Path
from threading import Event
from assistant.llm.engines.transformers import Transformers
from assistant.settings import LLMSettings
from assistant.types import Completion, Message, Options
llm = Transformers(Path({str(smollm_folder)!r}), LLMSettings(context=512))
print(list(llm.stream((Message("user", "Hi"),), Options(2), Event()))[-1].finish)
"""
    command = [sys.executable, "-c", script]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stdout.strip()) == (0, "length"), ended.stderr


def test_a_batch_too_large_for_the_memory_is_halved(bf16: Transformers, monkeypatch: pytest.MonkeyPatch) -> None:
    def small(one: Pass) -> None:
        if one.rows > most:
            raise torch.OutOfMemoryError("CUDA out of memory")

    most, passes = 1, watch(monkeypatch, small)
    prompts = [ask(question) for question in QUESTIONS[:4]]
    completions = bf16.complete(prompts, Options(2), Event())
    assert [completion.prompt_tokens for completion in completions] == [bf16.count(prompt) for prompt in prompts]
    assert [one.rows for one in passes if one.rows > 1] == [4, 2, 2]
    passes.clear()
    choices = bf16.choose(prompts, ("yes", "no"), Event())
    assert [choice.prompt_tokens for choice in choices] == [bf16.count(prompt) for prompt in prompts]
    assert [one.rows for one in passes if one.rows > 1] == [4, 2, 2]
    most = 0
    with pytest.raises(ModelError, match="memory is too small"):
        bf16.complete(prompts[:1], Options(2), Event())


USES = {
    "choose": lambda llm, prompt: llm.choose([prompt], ("yes", "no"), Event()),
    "score": lambda llm, prompt: llm.score([(prompt, "Yes, it is.")], Event()),
    "stream": lambda llm, prompt: list(llm.stream(prompt, Options(2, temperature=0.5), Event())),
    "complete": lambda llm, prompt: llm.complete([prompt], Options(2), Event()),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(
    ("failure", "told", "says"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), ModelError, "memory is too small for this prompt"),
        (RuntimeError("an unforeseen failure"), RuntimeError, "unforeseen"),
    ],
)
def test_a_pass_that_fails_halfway_leaves_nothing_to_go_on_with(
    bf16: Transformers, monkeypatch: pytest.MonkeyPatch, use: str, failure: Exception, told: type, says: str
) -> None:
    forward = LlamaDecoderLayer.forward

    @wraps(forward)
    def failing(self: LlamaDecoderLayer, *given: Any, **more: Any) -> Any:
        if self.self_attn.layer_idx == 15:
            raise failure
        return forward(self, *given, **more)

    fact = Message("system", "Bread is made of flour, water, salt and time, and of nothing else that anybody knows of.")
    prompt = (fact, Message("user", "Is it made of salt?"))
    [before] = bf16.choose([prompt], ("yes", "no"), Event())
    # what begins alike goes on with what was kept of it, so that the rest of the prompt has to be read again
    bf16.choose([(replace(fact, content=fact.content[:60]), Message("user", "Is it?"))], ("yes", "no"), Event())
    with monkeypatch.context() as broken:
        broken.setattr(LlamaDecoderLayer, "forward", failing)
        with pytest.raises(told, match=says):
            USES[use](bf16, prompt)
    [after] = bf16.choose([prompt], ("yes", "no"), Event())
    assert after.probabilities == pytest.approx(before.probabilities, abs=0.01)


def test_another_model_of_the_same_name_and_size_is_dequantised_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assistant.llm.gguf.header", lambda _: {})
    monkeypatch.setattr("assistant.llm.dequantise.convert", lambda path, folder: shutil.copytree(path.parent, folder))
    folders = []
    for end in (b"one", b"two"):
        model = tmp_path / end.decode() / "model.gguf"
        model.parent.mkdir()
        model.write_bytes(b"\0" * (2 << 20) + end)
        folders.append(dequantised(model, Settings(data_dir=tmp_path)))
        assert (folders[-1] / model.name).read_bytes() == model.read_bytes()
    assert folders[0] != folders[1]


def test_a_folder_that_dequantised_weights_cannot_be_written_to_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assistant.llm.gguf.header", lambda _: {})
    model = tmp_path / "model.gguf"
    model.write_bytes(b"weights")
    (tmp_path / "data").write_text("in the way")
    with pytest.raises(ModelError, match=r"model\.gguf .* can't be converted"):
        dequantised(model, Settings(data_dir=tmp_path / "data"))


def test_dequantising_is_done_once(smollm_path: Path, smollm_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from assistant.settings import load

    monkeypatch.setattr("assistant.llm.dequantise.convert", lambda *_: pytest.fail("converted again"))
    assert dequantised(smollm_path, load()) == smollm_folder


def test_what_is_no_model_is_not_dequantised(tmp_path: Path) -> None:
    junk = tmp_path / "junk.gguf"
    junk.write_bytes(b"junk")
    with pytest.raises(ModelError, match="not a GGUF"):
        dequantised(junk, Settings(data_dir=tmp_path))


class TestBadFolders:
    @pytest.fixture
    def folder(self, smollm_folder: Path, tmp_path: Path) -> Path:
        copy = tmp_path / "model"
        copy.mkdir()
        for file in smollm_folder.iterdir():
            if file.suffix == ".safetensors":
                (copy / file.name).symlink_to(file)
            else:
                shutil.copy(file, copy)
        return copy

    @pytest.mark.parametrize("missing", ["config.json", "model.safetensors", "tokenizer.json"])
    def test_a_missing_file(self, folder: Path, missing: str) -> None:
        (folder / missing).unlink()
        with pytest.raises(ModelError, match=r"holds no complete tokenizer|can't be loaded"):
            Transformers(folder, SMALL)

    def test_no_chat_template(self, folder: Path) -> None:
        (folder / "chat_template.jinja").unlink(missing_ok=True)
        config = json.loads((folder / "tokenizer_config.json").read_text())
        config.pop("chat_template", None)
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
        with pytest.raises(ModelError, match="no chat template"):
            Transformers(folder, SMALL)

    def test_weights_cut_short(self, folder: Path, smollm_folder: Path) -> None:
        weights = folder / "model.safetensors"
        weights.unlink()
        with (smollm_folder / "model.safetensors").open("rb") as whole:
            weights.write_bytes(whole.read(1_000_000))
        with pytest.raises(ModelError, match="can't be loaded"):
            Transformers(folder, SMALL)

    def test_a_context_longer_than_the_models(self, folder: Path) -> None:
        with pytest.raises(ModelError, match="8192 tokens at most"):
            Transformers(folder, LLMSettings(context=9000))

    def test_too_little_memory(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=50 << 20))
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
        with pytest.raises(ModelError, match=r"needs about 0\.\d GiB \(none\) and 0\.0 GiB are free"):
            Transformers(folder, SMALL)

    def test_quantised_weights_have_to_fit_into_the_gpus(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda index: (20 << 20, 1 << 30))
        with pytest.raises(ModelError, match=r"about 0\.1 GiB \(nf4\) and 0\.0 GiB are free \(0\.0 of them on GPUs\)"):
            Transformers(folder, SMALL, quantisation="nf4")
