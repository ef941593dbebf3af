"""The transformers backend: the contract of every LLM in bf16 and NF4, and what is its own (real SmolLM2-135M)."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import psutil
import pytest
import torch
from llm_contract import QUESTIONS, LLMContract, ask, run

from assistant.errors import ModelError
from assistant.llm.backends._transformers_engine import Transformers
from assistant.llm.dequantise import dequantised
from assistant.protocols import LLM
from assistant.settings import LLMSettings, Settings
from assistant.types import Message, Options

pytestmark = pytest.mark.model
ROOT = Path(__file__).parents[1]
SMALL = LLMSettings(context=2048)


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


class TestNf4Contract(LLMContract):
    @pytest.fixture
    def llm(self, nf4: Transformers) -> LLM:
        return nf4


def test_nf4_is_really_four_bits(smollm_folder: Path) -> None:
    # A model that has answered nothing yet: on a CPU, bitsandbytes repacks the weights when they are first used.
    nf4 = Transformers(smollm_folder, SMALL, "smollm2-135m", "nf4")
    kinds = {type(module).__name__ for module in nf4._model.modules()}
    assert "Linear4bit" in kinds
    weight = nf4._model.model.layers[0].mlp.up_proj.weight
    assert weight.dtype == torch.uint8
    assert weight.quant_state.quant_type == "nf4"
    assert weight.quant_state.nested, "double quantisation"


def test_int8_answers(smollm_folder: Path) -> None:
    llm = Transformers(smollm_folder, LLMSettings(context=512), "int8", "int8")
    assert llm._model.model.layers[0].mlp.up_proj.weight.dtype == torch.int8
    assert run(llm, "What is the capital of France?", max_tokens=8)[-1].text


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


def test_what_prompts_share_is_read_once(bf16: Transformers, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    feed = Transformers._feed

    def counting(self: Transformers, state: object, ids: torch.Tensor, stop: Event) -> bool:
        read.append(ids.numel())
        return feed(self, state, ids, stop)  # type: ignore[arg-type]

    bf16._kept.clear()
    monkeypatch.setattr(Transformers, "_feed", counting)
    system = Message("system", "Bread is made of flour, water, salt and time. " * 20)
    prompts = [(system, Message("user", question)) for question in QUESTIONS[:4]]
    length = bf16.count(prompts[0])
    bf16.complete(prompts, Options(1), Event())
    assert sum(read) < 2 * length
    read.clear()
    bf16.complete([(system, Message("user", "Who eats it?"))], Options(1), Event())
    assert sum(read) < 40


def test_prompts_of_one_length_are_read_together(smollm_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = Transformers(smollm_folder, LLMSettings(context=2048, slots=2, piece=1024), "smollm2-135m")
    widths: list[int] = []
    read = Transformers._read

    def counting(self: Transformers, prompts: list[list[int]], stop: Event) -> object:
        widths.append(sum(max(map(len, prompts)) - len(prompt) for prompt in prompts))
        return read(self, prompts, stop)

    monkeypatch.setattr(Transformers, "_read", counting)
    story = "Bread is made of flour, water, salt and time. " * 20
    prompts = [ask("What is bread?"), ask(story + "What is it?"), ask("What is salt?"), ask(story + "What is that?")]
    together = llm.complete(prompts, Options(1), Event())
    assert [one.prompt_tokens for one in together] == [llm.count(prompt) for prompt in prompts]
    odds = llm.choose(prompts, ("yes", "no"), Event())
    assert [one.prompt_tokens for one in odds] == [llm.count(prompt) for prompt in prompts]
    assert len(widths) == 4
    assert sum(widths) < 20
    alone = [llm.choose([prompt], ("yes", "no"), Event())[0].probabilities["yes"] for prompt in prompts]
    assert [one.probabilities["yes"] for one in odds] == pytest.approx(alone, abs=0.1)


def test_short_prompts_are_not_filled_up_to_a_long_one(smollm_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = Transformers(smollm_folder, LLMSettings(context=2048, slots=8, piece=64), "smollm2-135m")
    together: list[int] = []
    read = Transformers._read

    def counting(self: Transformers, prompts: list[list[int]], stop: Event) -> object:
        together.append(len(prompts))
        return read(self, prompts, stop)

    monkeypatch.setattr(Transformers, "_read", counting)
    long = ask("Bread is made of flour, water, salt and time. " * 20)
    odds = llm.choose([ask("Is it?"), long, ask("Was it?"), ask("Is he?")], ("yes", "no"), Event())
    assert together == [3, 1]
    assert [one.prompt_tokens for one in odds][1] == llm.count(long)


def test_a_short_reply_does_not_wait_for_a_long_one(bf16: Transformers) -> None:
    long = bf16.stream(ask("Tell me a long story of a ship."), Options(400), Event())
    next(long)
    assert run(bf16, "Say hi.", max_tokens=3)[-1].finish
    [box] = bf16._together._boxes.values()
    assert not any(box.get().is_finished() for _ in range(box.qsize()))
    long.close()


def test_replies_that_are_written_in_turn_are_the_same(smollm_folder: Path, bf16: Transformers) -> None:
    in_turn = Transformers(smollm_folder, LLMSettings(context=2048, continuous=False))
    assert in_turn._together is None
    assert bf16._together is not None
    assert run(in_turn, QUESTIONS[0], max_tokens=8)[-1].text == run(bf16, QUESTIONS[0], max_tokens=8)[-1].text


def test_a_batch_that_fails_is_told_and_the_next_reply_is_written(
    bf16: Transformers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(**_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with monkeypatch.context() as broken:
        broken.setattr(bf16._model, "forward", failing)
        with pytest.raises(ModelError, match="ask again"):
            run(bf16, "Say hi.", max_tokens=3)
    assert run(bf16, "Say hi.", max_tokens=3)[-1].text


def test_a_process_ends_though_nobody_closed_the_model(smollm_folder: Path) -> None:
    script = f"""
from pathlib import Path
from threading import Event
from assistant.llm.backends._transformers_engine import Transformers
from assistant.settings import LLMSettings
from assistant.types import Message, Options
llm = Transformers(Path({str(smollm_folder)!r}), LLMSettings(context=512))
print(list(llm.stream((Message("user", "Hi"),), Options(2), Event()))[-1].finish)
"""
    command = [sys.executable, "-c", script]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stdout.strip()) == (0, "length"), ended.stderr


def test_a_batch_too_large_for_the_memory_is_halved(bf16: Transformers, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    read = Transformers._read

    def small(self: Transformers, prompts: list[list[int]], stop: Event) -> object:
        tried.append(len(prompts))
        if len(prompts) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return read(self, prompts, stop)

    monkeypatch.setattr(Transformers, "_read", small)
    prompts = [ask(question) for question in QUESTIONS[:4]]
    completions = bf16.complete(prompts, Options(2), Event())
    assert [completion.prompt_tokens for completion in completions] == [bf16.count(prompt) for prompt in prompts]
    assert tried == [4, 2, 1, 1, 2, 1, 1]
    tried.clear()
    choices = bf16.choose(prompts, ("yes", "no"), Event())
    assert [choice.prompt_tokens for choice in choices] == [bf16.count(prompt) for prompt in prompts]
    assert tried == [4, 2, 1, 1, 2, 1, 1]

    def none(*_: object) -> object:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Transformers, "_read", none)
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
    def failing(*_: object, **__: object) -> None:
        raise failure

    prompt = ask("Bread is made of flour, water, salt and time. Is it made of salt?")
    bf16._kept.clear()
    [before] = bf16.choose([prompt], ("yes", "no"), Event())
    bf16._kept.clear()
    with monkeypatch.context() as broken:
        broken.setattr(bf16._model.model.layers[15], "forward", failing)
        with pytest.raises(told, match=says):
            USES[use](bf16, prompt)
    [after] = bf16.choose([prompt], ("yes", "no"), Event())
    assert after.probabilities == pytest.approx(before.probabilities, abs=0.01)


def test_another_model_of_the_same_name_and_size_is_dequantised_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assistant.llm.gguf.header", lambda _: {})
    monkeypatch.setattr("assistant.llm.dequantise._convert", lambda path, folder: shutil.copytree(path.parent, folder))
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

    monkeypatch.setattr("assistant.llm.dequantise._convert", lambda *_: pytest.fail("converted again"))
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
        with pytest.raises(ModelError, match=r"needs about 0\.\d GiB \(none\) and 0\.0 GiB are free"):
            Transformers(folder, SMALL)

    def test_quantised_weights_have_to_fit_into_the_gpus(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda index: (20 << 20, 1 << 30))
        with pytest.raises(ModelError, match=r"about 0\.1 GiB \(nf4\) and 0\.0 GiB are free \(0\.0 of them on GPUs\)"):
            Transformers(folder, SMALL, quantisation="nf4")
