"""The OpenVINO backend: the contract of every LLM, and what is its own (real SmolLM2-135M)."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import psutil
import pytest
from llm_contract import LLMContract, ask

from assistant.errors import ModelError
from assistant.llm.backends.openvino import OpenVino
from assistant.llm.engines import openvino_model
from assistant.llm.engines.openvino_model import converted, read_notes
from assistant.protocols import LLM, silent
from assistant.settings import LLMSettings, Settings
from assistant.types import Messages, Options

pytest.importorskip("openvino_genai")
pytestmark = pytest.mark.model


class TestContract(LLMContract):
    # It rounds what it computes with to 8 bits, and the second time finds most of the prompt in its cache.
    ROUNDING = 0.05

    @pytest.fixture
    def llm(self, smollm_openvino: OpenVino) -> LLM:
        return smollm_openvino


# --- exact probabilities -----------------------------------------------------------------------------------------


def test_a_text_is_as_likely_as_its_tokens_were_when_it_was_written(smollm_openvino: OpenVino) -> None:
    """Writing rounds to 16 bits and scoring doesn't, so the mean of a token may differ by 0.1."""
    prompt = ask("What is the capital of France?")
    (reply,) = smollm_openvino.complete([prompt], Options(16), Event())
    assert reply.finish == "stop"
    (score,) = smollm_openvino.score([(prompt, reply.text)], Event())
    written = reply.logprobs[:-1]  # the last token ends the reply
    assert score / len(written) == pytest.approx(sum(written) / len(written), abs=0.1)


def test_scores_do_not_depend_on_what_was_read_before(smollm_openvino: OpenVino) -> None:
    texts = ["Paris.", "It is the city of Paris, in France.", "Bananas"]
    pairs: list[tuple[Messages, str]] = [(ask("What is the capital of France?"), text) for text in texts]
    together = smollm_openvino.score(pairs, Event())
    backwards = smollm_openvino.score(pairs[::-1], Event())[::-1]
    assert together == pytest.approx(backwards, abs=0.01)
    assert max(together) == together[0]


def test_a_choice_is_the_ratio_of_scores(smollm_openvino: OpenVino) -> None:
    prompt = ask("Repeat this word: Yes")
    (choice,) = smollm_openvino.choose([prompt], ("Yes", "No"), Event())
    yes, no = smollm_openvino.score([(prompt, "Yes"), (prompt, "No")], Event())
    # other spellings count for a word, too
    assert choice.probabilities["Yes"] > choice.probabilities["No"]
    assert yes > no


def test_a_choice_between_unlikely_words_is_made_by_all_tokens(smollm_openvino: OpenVino) -> None:
    prompts = [ask("Is Paris in France? Answer yes or no."), ask(f"Repeat this word: quantum. {'Quantum. ' * 20}")]
    either, quantum = smollm_openvino.choose(prompts, ("zebra", "quantum"), Event())
    assert sum(either.probabilities.values()) == pytest.approx(1)
    assert 0 < either.probabilities["quantum"] < quantum.probabilities["quantum"]


def test_scores_that_a_stop_overtook_are_none(smollm_openvino: OpenVino) -> None:
    stop = Event()
    stop.set()
    assert smollm_openvino.score([(ask("Hi"), "Hello")], stop) == [float("-inf")]


# --- several people ----------------------------------------------------------------------------------------------


def test_prompts_that_do_not_fit_the_store_together_are_all_answered(smollm_openvino: OpenVino) -> None:
    prompts = [
        ask(f"{name} and the dog ran home, and the cat ran after them. " * 58) for name in ("Ann", "Bob", "Cleo")
    ]
    assert all(smollm_openvino.context * 0.75 < smollm_openvino.count(prompt) for prompt in prompts)
    with ThreadPoolExecutor(3) as pool:
        replies = list(pool.map(lambda prompt: smollm_openvino.complete([prompt], Options(40), Event())[0], prompts))
    assert all(reply.text and reply.finish in {"stop", "length"} for reply in replies)


# --- structured output -------------------------------------------------------------------------------------------


def test_a_schema_is_kept_to(smollm_openvino: OpenVino) -> None:
    schema = {
        "type": "object",
        "properties": {"fruit": {"enum": ["apple", "pear"]}, "count": {"type": "integer", "maximum": 9}},
        "required": ["fruit", "count"],
        "additionalProperties": False,
    }
    (reply,) = smollm_openvino.complete([ask("Tell me a story.")], Options(60, schema=json.dumps(schema)), Event())
    found = json.loads(reply.text)
    assert found["fruit"] in {"apple", "pear"}
    assert isinstance(found["count"], int)


# --- loading and unloading ---------------------------------------------------------------------------------------


def folder_of(path: Path, data: Path) -> Path:
    return converted(path, Settings(data_dir=data, hub=False), silent)


@dataclass(frozen=True)
class Told:
    """What a process said of a conversion: the folder of the model, and how much was done each time, of how much."""

    folder: Path
    progress: list[tuple[int, int]]


CONVERTING = """
import json, sys; from pathlib import Path
from assistant.llm.engines.openvino_model import converted; from assistant.settings import Settings
seen = []
settings = Settings(data_dir=Path(sys.argv[2]), hub=False)
folder = converted(Path(sys.argv[1]), settings, lambda done, total: seen.append((done, total)))
print(json.dumps([str(folder), seen]))
"""


@pytest.fixture(scope="module")
def two_at_once(smollm_path: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Told]:
    """What two processes said that began to convert the same file into the same folder at once."""
    command = [sys.executable, "-c", CONVERTING, str(smollm_path), str(tmp_path_factory.mktemp("openvino"))]

    def run(_: int) -> Told:
        root = Path(__file__).parents[1]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=280, check=True)
        folder, progress = json.loads(done.stdout)
        return Told(Path(folder), [(done, total) for done, total in progress])

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(run, range(2)))


@pytest.fixture(scope="module")
def made(two_at_once: list[Told]) -> Path:
    """A converted model of this module's own."""
    return two_at_once[0].folder


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "copy"))


def test_a_closed_model_says_so(copy: Path) -> None:
    llm = OpenVino(copy, LLMSettings(context=512, slots=1), "small")
    stream = llm.stream(ask("Tell a long story."), Options(400), Event())
    next(stream)
    llm.close()
    assert list(stream)[-1].finish == "cancelled"
    for call in (
        lambda: llm.complete([ask("Hi")], Options(2), Event()),
        lambda: llm.choose([ask("Hi")], ("yes", "no"), Event()),
    ):
        with pytest.raises(ModelError, match="unloaded"):
            call()


def test_a_context_longer_than_the_models_is_refused(copy: Path) -> None:
    with pytest.raises(ModelError, match=r"reads 8192 tokens at most; lower llm\.context from 9000"):
        OpenVino(copy, LLMSettings(context=9000), "small")


def test_too_little_memory_is_told_before_loading(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=1 << 28))
    with pytest.raises(ModelError, match=r"small needs about [\d.]+ GiB of free memory and 0\.2 GiB are free"):
        OpenVino(copy, LLMSettings(context=512), "small")


def test_the_process_ends_cleanly_while_the_model_writes(copy: Path) -> None:
    code = (
        "from pathlib import Path; from threading import Event\n"
        "from assistant.llm.backends.openvino import OpenVino; from assistant.settings import LLMSettings\n"
        "from assistant.types import Message, Options\n"
        f"llm = OpenVino(Path({str(copy)!r}), LLMSettings(context=2048, slots=1))\n"
        "stream = llm.stream((Message('user', 'Tell a story.'),), Options(1500), Event())\n"
        "print(next(stream).completion_tokens)\n"
    )
    root = Path(__file__).parents[1]
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=120, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")


# --- converting --------------------------------------------------------------------------------------------------


def test_what_the_file_says_of_the_model_is_kept(made: Path) -> None:
    found = read_notes(made)
    assert (found.context, found.ends) == (8192, (2,))
    assert found.files["openvino_model.bin"] == (made / "openvino_model.bin").stat().st_size
    assert sorted(file.suffix for file in made.iterdir()) == [".bin"] * 3 + [".json"] + [".xml"] * 3


@pytest.mark.parametrize("name", ["openvino_model.bin", "openvino_tokenizer.xml", "made.json"])
def test_a_converted_model_that_is_cut_short_is_made_again(
    made: Path, copy: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def once(*_: object) -> Path:
        """Converting again takes ten seconds, and makes what is in `made`."""
        return copy if copy.exists() else Path(shutil.copytree(made, copy))

    monkeypatch.setattr(openvino_model, "converted_once", once)
    whole = (copy / name).read_bytes()
    (copy / name).write_bytes(whole[: len(whole) // 2])
    assert folder_of(made, copy.parent) == copy
    assert (copy / name).read_bytes() == whole


def test_a_model_that_another_version_converted_is_left_alone(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = list[str]()

    def once(_path: Path, kind: str, *_: object) -> Path:
        kinds.append(kind)
        return made

    monkeypatch.setattr(openvino_model, "converted_once", once)
    folder_of(made, made.parent)
    monkeypatch.setattr(openvino_model, "version", lambda _: "2099.1.0")
    folder_of(made, made.parent)
    assert "2099.1.0" in kinds[1]
    assert kinds[0] != kinds[1]


def test_of_two_processes_at_once_one_makes_it_and_the_other_waits(two_at_once: list[Told]) -> None:
    one, other = two_at_once
    assert one.folder == other.folder
    assert sorted([one.progress == [], other.progress == []]) == [False, True]


def test_progress_is_told_to_its_end(two_at_once: list[Told]) -> None:
    [seen] = [told.progress for told in two_at_once if told.progress]
    assert seen[-1][0] == seen[-1][1] > 0
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


@pytest.fixture
def nothing_left_over(tmp_path: Path) -> Iterator[None]:
    yield
    assert not list(tmp_path.rglob("*.partial"))


@pytest.mark.usefixtures("nothing_left_over")
class TestWhatCanNotBeConverted:
    def test_a_full_disk(self, smollm_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1 << 20))
        with pytest.raises(ModelError, match=r"takes 0\.2 GiB on the disk of .* make room, or set llm\.backend"):
            folder_of(smollm_path, tmp_path)

    def test_a_disk_that_is_full_before_all_is_written(self, smollm_path: Path, tmp_path: Path) -> None:
        """Files that may not grow beyond 60 MB stand for it: the library's own writing fails in the middle."""
        code = (
            "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (60_000_000, 60_000_000))\n"
            "import sys; from pathlib import Path; from assistant.errors import ModelError\n"
            "from assistant.llm.engines.openvino_model import converted; from assistant.settings import Settings\n"
            "try: converted(Path(sys.argv[1]), Settings(data_dir=Path(sys.argv[2]), hub=False), lambda *_: None)\n"
            "except ModelError as error: print(error)\n"
        )
        command = [sys.executable, "-c", code, str(smollm_path), str(tmp_path)]
        root = Path(__file__).parents[1]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120, check=True)
        assert re.search(r"can't be converted for OpenVINO .*; see that disk and memory have room, or set", done.stdout)
        assert not list(tmp_path.rglob("*.bin"))

    def test_a_full_memory(self, smollm_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=1 << 28))
        with pytest.raises(ModelError, match=r"takes 1\.6 GiB of free memory and 0\.2 GiB are free; close other"):
            folder_of(smollm_path, tmp_path)

    def test_a_file_that_is_no_model(self, tmp_path: Path) -> None:
        (tmp_path / "no.gguf").write_bytes(b"not a model")
        with pytest.raises(ModelError, match="is not a GGUF model file"):
            folder_of(tmp_path / "no.gguf", tmp_path)

    def test_a_file_that_ends_within_its_weights(self, smollm_path: Path, tmp_path: Path) -> None:
        half = tmp_path / "half.gguf"
        half.write_bytes(smollm_path.read_bytes()[: 60 << 20])
        with pytest.raises(ModelError, match=r"half\.gguf can't be converted for OpenVINO .*, or set llm\.backend"):
            folder_of(half, tmp_path)


def test_a_stop_is_heard_at_once(smollm_openvino: OpenVino) -> None:
    """The caller is let go within a poll, whatever the engine is in the middle of; this bound is a loose one."""
    stop, since = Event(), 0.0
    for count, _ in enumerate(smollm_openvino.stream(ask("Tell me a long story."), Options(500), stop)):
        if count == 5:
            stop.set()
            since = time.perf_counter()
    assert time.perf_counter() - since < 5
