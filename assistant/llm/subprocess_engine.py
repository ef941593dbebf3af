"""Runs an engine in a process of its own.

xllamacpp holds the interpreter lock while it loads a model, and openvino-genai during every step. For the 5 to 10
seconds that the default model takes to load, and then for half a second at a time, nothing else in the process would
run, and the page would answer nobody. The other process ends when its input does, so it never outlives this one.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import Any, BinaryIO, Literal

from assistant.errors import ModelError, SequiturError
from assistant.llm.memory_trim import trim_memory
from assistant.llm.turn_queue import Resting
from assistant.protocols import Engine
from assistant.settings import Backend
from assistant.types import Choice, Completion, Messages, Options

_LOG = logging.getLogger(__name__)
_POLL = 0.02
_SECONDS_TO_END = 5.0
_NO_CALL = -1

# An answer to a call: pieces of a stream, then its result, or the error that it raised.
Reply = tuple[Literal["piece", "result", "error"], Any]


class SubprocessEngine:
    """The engine `make(*arguments)`, created in another process.

    Args:
        make: the engine's class.
        arguments: its arguments; they are pickled.

    Raises:
        ModelError: creating the engine failed, or the process ended meanwhile.
    """

    backend: Backend

    def __init__(self, make: Callable[..., Engine], *arguments: Any) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},  # it finds what this one finds
        )
        self._calls = count()
        self._replies: dict[int, SimpleQueue[Reply]] = {}
        self._lock = Lock()
        self._open = True
        self.name, self.context, self.can_score = "The model", 0, False
        creation = self._call(make, arguments)
        self._listener = Thread(target=self._listen, name="engine", daemon=True)
        self._listener.start()
        try:
            self.name, self.backend, self.context, self.can_score = self._result(creation, Event())
        except BaseException:
            self.close()
            raise

    def count(self, messages: Messages) -> int:
        """As the engine does it."""
        return int(self._result(self._call("count", (messages,)), Event()))

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        """As the engine does it; returns as soon as `stop` is set, without waiting for the engine."""
        call, completion = self._call("stream", (messages, options)), Completion("")
        try:
            for piece in self._pieces(call, stop):
                completion = Completion("") if piece.read else piece
                yield piece
            if not completion.finish:
                yield replace(completion, finish="cancelled")
        finally:
            self._leave(call)

    def complete(self, batch: Sequence[Messages], options: Options, stop: Event) -> list[Completion]:
        """As the engine does it."""
        completions: list[Completion] = self._result(self._call("complete", (list(batch), options)), stop)
        return completions

    def choose(self, batch: Sequence[Messages], words: tuple[str, ...], stop: Event) -> list[Choice]:
        """As the engine does it."""
        choices: list[Choice] = self._result(self._call("choose", (list(batch), words)), stop)
        return choices

    def score(self, batch: Sequence[tuple[Messages, str]], stop: Event) -> list[float]:
        """As the engine does it."""
        scores: list[float] = self._result(self._call("score", (list(batch),)), stop)
        return scores

    def rest(self, seconds: float) -> None:
        """As the engine does it, if it can; doesn't wait for it."""
        self._tell(_NO_CALL, "rest", (seconds,))

    def close(self) -> None:
        """Unload the model. Calls under way fail."""
        self._open = False
        assert self._process.stdin  # noqa: S101 - it was asked for
        with self._lock, suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _call(self, method: str | Callable[..., Engine], arguments: tuple[Any, ...]) -> int:
        call = next(self._calls)
        self._replies[call] = SimpleQueue()
        try:
            self._send((call, method, arguments))
        except (OSError, ValueError):
            del self._replies[call]
            raise self._ended_error() from None
        return call

    def _send(self, message: object) -> None:
        assert self._process.stdin  # noqa: S101
        with self._lock:
            _put(self._process.stdin, message)

    def _listen(self) -> None:
        assert self._process.stdout  # noqa: S101
        with suppress(EOFError, OSError, pickle.UnpicklingError):
            while True:
                call, reply = pickle.load(self._process.stdout)  # noqa: S301 - our own process wrote it
                if replies := self._replies.get(call):
                    replies.put(reply)

    def _next(self, call: int) -> Iterator[Reply]:
        """The next reply to a call, if it came soon."""
        has_ended = not self._listener.is_alive()
        try:
            yield self._replies[call].get(timeout=_POLL)
        except Empty:
            if has_ended:
                raise self._ended_error() from None

    def _pieces(self, call: int, stop: Event) -> Iterator[Any]:
        """The pieces of a stream as they come; ends at once when `stop` is set."""
        while not stop.is_set():
            for kind, value in self._next(call):
                if kind == "error":
                    raise value
                if kind == "result":
                    return
                yield value

    def _result(self, call: int, stop: Event) -> Any:
        stop_sent = False
        try:
            while True:
                if stop.is_set() and not stop_sent:
                    stop_sent = True
                    self._stop(call)
                for kind, value in self._next(call):
                    if kind == "error":
                        raise value
                    return value
        finally:
            self._leave(call)

    def _leave(self, call: int) -> None:
        self._replies.pop(call, None)
        self._stop(call)

    def _stop(self, call: int) -> None:
        self._tell(call, "stop", ())

    def _tell(self, call: int, method: str, arguments: tuple[Any, ...]) -> None:
        """Send what has no reply; nothing is done if the process has ended."""
        with suppress(OSError, ValueError):
            self._send((call, method, arguments))

    def _ended_error(self) -> ModelError:
        if not self._open:
            return ModelError(f"{self.name} was unloaded; start again to use it.")
        return ModelError("The language model's process has ended, for instance for want of memory; start again.")


# --- the other process -------------------------------------------------------------------------------------------


def serve() -> None:
    """In the other process: create the engine that the first message names, then answer calls until input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches both processes; the first one ends this one
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no message
    with suppress(EOFError):
        _Server(out).run(sys.stdin.buffer)
    os._exit(0)  # nobody waits for calls that are still running


class _Server:
    def __init__(self, out: BinaryIO) -> None:
        self._out, self._lock = out, Lock()
        self._stops: dict[int, Event] = {}

    def run(self, messages: BinaryIO) -> None:
        call, make, arguments = pickle.load(messages)  # noqa: S301 - the process that began this one wrote it
        self._answer(call, lambda: self._create_engine(make, arguments))
        while True:
            call, method, arguments = pickle.load(messages)  # noqa: S301
            if method == "stop":
                if stop := self._stops.get(call):
                    stop.set()
            elif method == "rest":
                if isinstance(self._llm, Resting):
                    self._llm.rest(*arguments)
            else:
                self._stops[call] = Event()
                Thread(target=self._work, args=(call, method, arguments), daemon=True).start()

    def _create_engine(self, make: Callable[..., Engine], arguments: tuple[Any, ...]) -> tuple[str, Backend, int, bool]:
        self._llm = make(*arguments)
        return self._llm.name, self._llm.backend, self._llm.context, self._llm.can_score

    def _work(self, call: int, method: str, arguments: tuple[Any, ...]) -> None:
        stop = self._stops[call]
        if method == "stream":
            self._answer(call, lambda: self._streamed(call, arguments, stop))
        else:
            call_arguments = arguments if method == "count" else (*arguments, stop)
            self._answer(call, lambda: getattr(self._llm, method)(*call_arguments))
        del self._stops[call]
        trim_memory()

    def _streamed(self, call: int, arguments: tuple[Any, ...], stop: Event) -> None:
        messages, options = arguments
        for piece in self._llm.stream(messages, options, stop):
            self._reply(call, "piece", piece)

    def _answer(self, call: int, work: Callable[[], Any]) -> None:
        try:
            self._reply(call, "result", work())
        except SequiturError as error:
            self._reply(call, "error", error)
        except Exception as error:  # noqa: BLE001 - one call's; the engine goes on, and the log has the details
            _LOG.exception("the engine failed")
            self._reply(call, "error", ModelError(f"The language model failed ({error}); ask again."))

    def _reply(self, call: int, kind: str, value: object) -> None:
        with self._lock:
            _put(self._out, (call, (kind, value)))


def _put(pipe: Any, message: object) -> None:
    pickle.dump(message, pipe)
    pipe.flush()
