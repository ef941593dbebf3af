"""The llama.cpp backend: the contract of every LLM, and what is its own (real SmolLM2-135M)."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace

import psutil
import pytest
from llm_contract import StopContract, ask

from assistant.errors import ModelError
from assistant.llm import gguf
from assistant.llm.backends.llama_cpp import LlamaCpp
from assistant.llm.control_tokens import defuse
from assistant.llm.fair_queue import FairQueue
from assistant.protocols import LLM
from assistant.settings import LLMSettings
from assistant.types import Options

ROOT = Path(__file__).parents[1]


def listening() -> set[tuple[str, int]]:
    """Where this process listens."""
    found = psutil.Process().net_connections("tcp")
    return {(one.laddr.ip, one.laddr.port) for one in found if one.status == psutil.CONN_LISTEN}


@pytest.mark.model
class TestContract(StopContract):
    """The rest is in tests/test_subprocess_engine.py: this engine always runs in a process of its own."""

    @pytest.fixture
    def llm(self, smollm: LlamaCpp) -> LLM:
        return smollm


@pytest.mark.model
def test_a_prompt_that_begins_like_the_last_is_read_from_where_it_differs(smollm: LlamaCpp) -> None:
    long = "Bread is made of flour, water, salt and time. " * 60

    def left(text: str) -> int:
        """Tokens that are still to be read when it first tells how far it is."""
        first, *_ = smollm.stream(ask(text), Options(1), Event())
        return smollm.count(ask(text)) - first.read

    assert left(f"{long} What is bread?") > 500
    assert left(f"{long} Who bakes it?") < 20


@pytest.mark.model
def test_how_far_a_long_prompt_is_read_is_told(smollm: LlamaCpp) -> None:
    prompt = ask("A story of a ship that sailed far away. " * 40)
    pieces = list(smollm.stream(prompt, Options(4), Event()))
    reads = [piece.read for piece in pieces if piece.read]
    assert len(reads) >= 4
    assert reads == sorted(reads)
    assert reads[-1] == smollm.count(prompt)


@pytest.mark.model
def test_a_prompt_begins_as_the_model_was_trained_whoever_adds_the_first_token(
    smollm: LlamaCpp, smollm_path: Path, tmp_path: Path
) -> None:
    path, content = tmp_path / "adding.gguf", bytearray(smollm_path.read_bytes())
    key = b"tokenizer.ggml.add_bos_token"
    content[content.index(key) + len(key) + 4] = True
    path.write_bytes(content)
    adding = LlamaCpp(path, LLMSettings(context=1024, slots=1))
    [ours], [usual] = (llm.choose([ask("Hi")], ("Hello", "Bye"), Event()) for llm in (adding, smollm))
    assert ours.prompt_tokens == usual.prompt_tokens == adding.count(ask("Hi")) == smollm.count(ask("Hi"))
    assert ours.probabilities == pytest.approx(usual.probabilities, abs=1e-3)  # rounded otherwise
    adding.close()


@pytest.mark.model
def test_the_engines_port_wants_a_key(smollm_path: Path) -> None:
    from http.client import HTTPConnection

    before = listening()
    llm = LlamaCpp(smollm_path, LLMSettings(context=512, slots=1))
    [(host, port)] = listening() - before
    assert host == "127.0.0.1"
    connection = HTTPConnection(host, port, timeout=10)
    connection.request("POST", "/completion", '{"prompt": "hi"}', {"Content-Type": "application/json"})
    assert connection.getresponse().status == 401
    connection.close()
    llm.close()


@pytest.mark.model
def test_a_closed_model_says_so(smollm_path: Path) -> None:
    llm = LlamaCpp(smollm_path, LLMSettings(context=512, slots=1))
    assert llm.name == smollm_path.stem
    llm.close()
    with pytest.raises(ModelError, match="unloaded"):
        llm.count(ask("Hi"))


@pytest.mark.model
def test_the_process_ends_cleanly_while_the_model_writes(smollm_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from threading import Event\n"
        "from assistant.llm.backends.llama_cpp import LlamaCpp; from assistant.settings import LLMSettings\n"
        "from assistant.types import Message, Options\n"
        f"llm = LlamaCpp(Path({str(smollm_path)!r}), LLMSettings(context=2048, slots=1))\n"
        "stream = llm.stream((Message('user', 'Tell a story.'),), Options(1500), Event())\n"
        "print(next(piece for piece in stream if piece.text).completion_tokens)\n"
    )
    since = time.perf_counter()
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "1"), done.stderr
    assert time.perf_counter() - since < 30


@pytest.mark.model
@pytest.mark.parametrize("length", [100, 100_000, 50_000_000])
def test_a_file_cut_short_is_refused(smollm_path: Path, tmp_path: Path, length: int) -> None:
    cut = tmp_path / "cut.gguf"
    with smollm_path.open("rb") as whole:
        cut.write_bytes(whole.read(length))
    with pytest.raises(ModelError, match="cut short"):
        LlamaCpp(cut, LLMSettings(context=512))


@pytest.mark.model
def test_too_little_memory_is_seen_before_loading(smollm_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=200 << 20))
    with pytest.raises(ModelError, match=r"needs about 0\.\d GiB of free memory and 0\.2 GiB are free"):
        LlamaCpp(smollm_path, LLMSettings(context=512))


@pytest.mark.model
def test_a_context_longer_than_the_models_is_refused(smollm_path: Path) -> None:
    with pytest.raises(ModelError, match="8192 tokens at most"):
        LlamaCpp(smollm_path, LLMSettings(context=10_000))


@pytest.mark.model
def test_the_header_tells_what_a_model_is(smollm_path: Path) -> None:
    header = gguf.header(smollm_path)
    assert header["general.architecture"] == "llama"
    assert header["llama.context_length"] == 8192
    assert "im_start" in str(header["tokenizer.chat_template"])
    # 30 layers, keys and values, 3 heads of 64 numbers, 2 bytes each
    assert gguf.kv_bytes(header) == 30 * 2 * 3 * 64 * 2


@pytest.mark.parametrize("content", [b"", b"GGU", b"PK\x03\x04 a zip", b"\x00" * 5000])
def test_a_file_that_is_not_gguf_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "junk.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="not a GGUF"):
        gguf.header(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"nothing\.gguf can't be read"):
        LlamaCpp(tmp_path / "nothing.gguf", LLMSettings())


def test_a_damaged_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "damaged.gguf"
    path.write_bytes(b"GGUF" + b"\xff" * 5000)
    with pytest.raises(ModelError, match="cut short or damaged"):
        gguf.header(path)


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("a <|im_end|> b", "a < |im_end|> b"),
        ("</s><s>[INST] x [/INST]", "< /s>< s>[ INST] x [ /INST]"),
        ("<start_of_turn>user", "< start_of_turn>user"),
        ("<b>bold</b> 3 < 4 | 5 > 2 [1] [source]", "<b>bold</b> 3 < 4 | 5 > 2 [1] [source]"),
        ("lone \ud800", "lone ?"),
    ],
)
def test_control_strings_are_broken_up(text: str, safe: str) -> None:
    assert defuse(text) == safe


class Asked(Event):
    """A stop that tells when it is first asked for: who waits in the queue asks it."""

    def __init__(self) -> None:
        super().__init__()
        self.once = Event()

    def is_set(self) -> bool:
        self.once.set()
        return super().is_set()


class TestFairQueue:
    @staticmethod
    def _waiting(queue: FairQueue, owner: object, name: str, order: list[str], stop: Asked | None = None) -> Thread:
        stop = stop or Asked()

        def wait() -> None:
            if queue.enter(owner, stop):
                order.append(name)
                queue.leave(owner)

        thread = Thread(target=wait)
        thread.start()
        assert stop.once.wait(5)
        return thread

    def test_first_come_first_served(self) -> None:
        queue, order = FairQueue(1), []
        queue.enter("someone", Event())
        threads = [self._waiting(queue, owner, owner, order) for owner in "abc"]
        queue.leave("someone")
        for thread in threads:
            thread.join(5)
        assert order == ["a", "b", "c"]

    def test_who_holds_a_seat_gives_way(self) -> None:
        queue, order = FairQueue(2), []
        assert queue.enter("batch", Event())
        assert queue.enter("batch", Event())
        threads = [self._waiting(queue, "batch", "batch", order), self._waiting(queue, "single", "single", order)]
        queue.leave("batch")
        for thread in threads:
            thread.join(5)
        assert order == ["single", "batch"]

    def test_stop_ends_the_wait(self) -> None:
        queue, order, stop = FairQueue(1), [], Asked()
        queue.enter("someone", Event())
        thread = self._waiting(queue, "a", "a", order, stop)
        stop.set()
        thread.join(1)
        assert not thread.is_alive()
        assert order == []
        queue.leave("someone")
        assert queue.enter("b", Event())


@pytest.fixture
def small(smollm_path: Path) -> Iterator[LlamaCpp]:
    llm = LlamaCpp(smollm_path, LLMSettings(context=512, slots=2))
    yield llm
    llm.close()


@pytest.mark.model
def test_each_request_has_the_whole_context_whatever_the_slots(small: LlamaCpp) -> None:
    completions = small.complete([ask("word " * 430 + str(n)) for n in range(4)], Options(8), Event())
    assert all(completion.prompt_tokens > 430 for completion in completions)
    assert all(completion.completion_tokens for completion in completions)


@pytest.mark.model
def test_it_tells_how_much_of_a_prompt_it_had_from_an_earlier_one(small: LlamaCpp) -> None:
    shared = "It was a dark and stormy night in the harbour. " * 20
    (first,) = small.complete([ask(shared + "Who came?")], Options(2), Event())
    (second,) = small.complete([ask(shared + "Who left?")], Options(2), Event())
    (choice,) = small.choose([ask(shared + "Was it dark?")], ("Yes", "No"), Event())
    assert first.cached < first.prompt_tokens // 2
    assert second.prompt_tokens - 20 < second.cached < second.prompt_tokens
    assert choice.prompt_tokens - 20 < choice.cached < choice.prompt_tokens
