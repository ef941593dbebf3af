"""An engine in a process of its own: it does what it does in this one, and the interpreter is free meanwhile."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread

import psutil
import pytest
from llm_contract import LLMContract, ask

from assistant.errors import ChoiceError, ModelError
from assistant.llm.backends.llama_cpp import LlamaCpp
from assistant.llm.backends.openvino import OpenVino
from assistant.llm.engines.openvino_model import converted
from assistant.llm.subprocess_engine import SubprocessEngine
from assistant.protocols import LLM, silent
from assistant.settings import LLMSettings, load
from assistant.types import Choice, Completion, Messages, Options
from tests.scripted import ScriptedLLM

ROOT = Path(__file__).parents[1]


class Breaking(ScriptedLLM):
    """Breaks whatever it is asked for; prints, which is none of its messages."""

    def choose(self, batch: Sequence[Messages], words: tuple[str, ...], stop: Event) -> list[Choice]:
        print("choosing")  # noqa: T201
        if words:
            raise ChoiceError("These words begin alike.")
        raise ZeroDivisionError("nothing to choose from")


def refusing(reason: str) -> LLM:
    raise ModelError(reason)


@pytest.fixture
def scripted() -> Iterator[SubprocessEngine]:
    apart = SubprocessEngine(Breaking, ["one two three"])
    yield apart
    apart.close()


def test_it_answers_as_the_engine_does(scripted: SubprocessEngine) -> None:
    assert (scripted.name, scripted.context, scripted.count(ask("a b"))) == ("scripted", 4096, 7)
    assert [piece.text for piece in scripted.stream(ask("Hi"), Options(), Event())][-2:] == ["one two three"] * 2
    assert not scripted.can_score


class Restful(ScriptedLLM):
    """Has replies wait until a rest of any length was asked for, and says how long it was to be."""

    def __init__(self) -> None:
        super().__init__([])
        self.seconds = SimpleQueue[float]()

    def rest(self, seconds: float) -> None:
        self.seconds.put(seconds)

    def complete(self, batch: Sequence[Messages], options: Options, stop: Event) -> list[Completion]:
        return [Completion(str(self.seconds.get(timeout=5)), finish="stop") for _ in batch]


def test_a_rest_reaches_an_engine_that_can_rest() -> None:
    with closing(SubprocessEngine(Restful)) as engine:
        engine.rest(2.5)
        engine.rest(0)
        assert [one.text for one in engine.complete([ask("Hi")] * 2, Options(), Event())] == ["2.5", "0"]


def test_a_rest_is_nothing_to_one_that_can_not_and_to_one_that_has_ended(scripted: SubprocessEngine) -> None:
    scripted.rest(60)
    assert scripted.complete([ask("Hi")], Options(), Event())[0].text == "one two three"
    scripted.close()
    scripted.rest(60)


def test_errors_come_as_they_were_and_end_nothing(scripted: SubprocessEngine) -> None:
    with pytest.raises(ChoiceError, match="begin alike"):
        scripted.choose([ask("Hi")], ("a", "b"), Event())
    with pytest.raises(ModelError, match="nothing to choose from"):
        scripted.choose([ask("Hi")], (), Event())
    assert scripted.complete([ask("Hi")], Options(), Event())[0].text == "one two three"


def test_an_engine_that_can_not_be_made_says_why() -> None:
    with pytest.raises(ModelError, match=r"^too little memory$"):
        SubprocessEngine(refusing, "too little memory")


def test_one_that_was_closed_says_so(scripted: SubprocessEngine) -> None:
    scripted.close()
    with pytest.raises(ModelError, match="scripted was unloaded"):
        scripted.count(ask("Hi"))


def test_one_that_died_says_so(request: pytest.FixtureRequest) -> None:
    before = psutil.Process().children()
    scripted = request.getfixturevalue("scripted")
    [engine] = set(psutil.Process().children()) - set(before)
    engine.kill()
    engine.wait()
    for _ in range(2):
        with pytest.raises(ModelError, match="process has ended"):
            scripted.count(ask("Hi"))


@pytest.fixture(scope="session")
def llama_apart(smollm_path: Path) -> Iterator[SubprocessEngine]:
    apart = SubprocessEngine(LlamaCpp, smollm_path, LLMSettings(context=1024), "smollm2-135m")
    yield apart
    apart.close()


@pytest.mark.model
class TestContract(LLMContract):
    @pytest.fixture
    def llm(self, llama_apart: SubprocessEngine) -> LLM:
        return llama_apart


@pytest.mark.model
def test_how_far_openvino_reads_is_told(smollm_path: Path) -> None:
    engine = openvino(smollm_path)()
    prompt = ask("A story of a ship that sailed far away. " * 60)
    pieces = list(engine.stream(prompt, Options(4), Event()))
    reads = [piece.read for piece in pieces if piece.read]
    assert reads
    assert reads == sorted(set(reads))
    assert reads[-1] <= engine.count(prompt) == pieces[-1].prompt_tokens
    assert engine.can_score
    assert engine.score([(prompt, "a ship")], Event())[0] < 0
    engine.close()


def llama(path: Path) -> Callable[[], SubprocessEngine]:
    return lambda: SubprocessEngine(LlamaCpp, path, LLMSettings(context=2048))


def openvino(path: Path) -> Callable[[], SubprocessEngine]:
    pytest.importorskip("openvino_genai")
    folder = converted(path, load(), silent)
    return lambda: SubprocessEngine(OpenVino, folder, LLMSettings(context=2048))


@pytest.mark.model
@pytest.mark.parametrize("engine", [llama, openvino])
def test_loading_leaves_the_interpreter_to_others(engine: Callable[..., object], smollm_path: Path) -> None:
    """A thread that wakes every hundredth of a second stands for a page.

    In this process the longest time between two beats is nearly all that loading takes.
    """
    make, beats, over = engine(smollm_path), [time.perf_counter()], Event()

    def beat() -> None:
        while not over.wait(0.01):
            beats.append(time.perf_counter())

    thread = Thread(target=beat)
    thread.start()
    make().close()
    over.set()
    thread.join()
    assert max(later - earlier for earlier, later in pairwise(beats)) < 0.3 * (beats[-1] - beats[0])


@pytest.mark.model
def test_it_ends_with_a_process_that_is_killed(smollm_path: Path) -> None:
    code = (
        "import time; from pathlib import Path\n"
        "from assistant.llm.backends.llama_cpp import LlamaCpp\n"
        "from assistant.llm.subprocess_engine import SubprocessEngine\n"
        "from assistant.settings import LLMSettings\n"
        f"llm = SubprocessEngine(LlamaCpp, Path({str(smollm_path)!r}), LLMSettings(context=512, slots=1))\n"
        "print('ready', flush=True); time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        [engine] = psutil.Process(process.pid).children()
        process.kill()
    _, alive = psutil.wait_procs([engine], timeout=30)
    assert not alive
