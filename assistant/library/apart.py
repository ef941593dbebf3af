"""Looks into documents of users in a process of its own, which may take so much time and memory and no more.

What a document makes the libraries of its format do can't be told beforehand: a few kilobytes can keep them busy for
minutes or fill the memory. Here that ends with the process, and the page goes on meanwhile. What comes back is JSON,
which can hold nothing but text, whoever wrote the document.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event, Thread
from time import monotonic
from typing import IO, Any

from assistant.errors import LibraryError
from assistant.protocols import Progress, silent

# Where others keep the processors busy, or the system can't count their seconds, so many times those by the clock.
CLOCK_FACTOR = 6.0
MEMORY_BYTES = 3 * 2**29
STOPPED = "its reading was stopped"
_POLL_SECONDS = 0.1  # seconds between looks at whether the process is to stop
_EXIT_SECONDS = 2.0  # seconds that it may take to end by itself when it has answered
_TOO_LONG = "it takes too long to read; split it up, or save it anew in a simpler format"
_TOO_LARGE = "it takes too much memory to read; split it up, or save it anew in a simpler format"


def answer_apart(
    module: str,
    request: Mapping[str, Any],
    seconds: float,
    stop: Event,
    memory: int = MEMORY_BYTES,
    progress: Progress = silent,
) -> dict[str, Any]:
    """What a module's `answer(request, progress)` returns, called in a process of its own.

    Args:
        module: its full name.
        request: what it is given, as JSON has it.
        seconds: of a processor, that it may take.
        stop: when this is set, the process ends at once.
        memory: bytes of addresses, that it may take.
        progress: told what `answer` tells, ten times a second at most.

    Raises:
        LibraryError: `answer` raised one, or it took more than it may; the message is the reason.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", f"from {__name__} import serve; from {module} import answer; serve(answer)"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},  # it finds what this one finds
    )
    try:
        payload = json.dumps({"seconds": seconds, "memory": memory, "asked": request})
        reply = _reply_of(process, payload.encode(), seconds, stop, progress)
    finally:
        process.kill()
        process.wait()
    return _parsed_reply(reply, process.returncode)


def serve(answer: Callable[[dict[str, Any], Progress], dict[str, Any]]) -> None:
    """Answer what standard input asks, as JSON, on standard output: this is all that the process does.

    A line is a list of two numbers, how far it is, or the answer, an object.
    """
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no part of the answer
    question = sys.stdin.buffer.read()
    if not question:  # whoever was about to ask was killed
        return
    payload = json.loads(question)
    _limit(payload["seconds"], payload["memory"])
    try:
        reply = answer(payload["asked"], _progress_to(output))
    except MemoryError:
        reply = {"error": _TOO_LARGE}
    except LibraryError as error:
        reply = {"error": _TOO_LARGE if isinstance(error.__cause__, MemoryError) else str(error)}
    with suppress(BrokenPipeError), output:  # whoever asked was killed meanwhile
        output.write(json.dumps(reply).encode())


def _progress_to(output: IO[bytes]) -> Progress:
    """A `Progress` that tells whoever asked, not too often."""
    due = 0.0

    def tell(done: int, total: int) -> None:
        nonlocal due
        if monotonic() >= due:
            output.write(f"[{done}, {total}]\n".encode())
            output.flush()
            due = monotonic() + _POLL_SECONDS

    return tell


def _limit(seconds: float, memory: int) -> None:
    """Bound this process where the system can; it is also to wait behind those that answer."""
    with suppress(ImportError):  # Windows has none of it: there the time alone is bounded, from outside
        import resource  # noqa: PLC0415

        limits = {resource.RLIMIT_AS: memory, resource.RLIMIT_CPU: int(seconds) + 1, resource.RLIMIT_CORE: 0}
        for resource_kind, limit in limits.items():
            with suppress(ValueError, OSError):  # less is allowed already
                resource.setrlimit(resource_kind, (limit, limit))
        os.nice(5)


def _reply_of(
    process: subprocess.Popen[bytes], request: bytes, seconds: float, stop: Event, progress: Progress
) -> bytes:
    """What the process answers."""
    lines: SimpleQueue[bytes | None] = SimpleQueue()
    Thread(target=_exchange, args=(process, request, lines), daemon=True).start()
    deadline, reply = monotonic() + CLOCK_FACTOR * seconds, b""
    while not stop.is_set():
        if monotonic() > deadline:
            raise LibraryError(_TOO_LONG)
        with suppress(Empty):
            line = lines.get(timeout=_POLL_SECONDS)
            if line is None:
                with suppress(subprocess.TimeoutExpired):  # it has said all that it has to say
                    process.wait(_EXIT_SECONDS)
                return reply
            if line.startswith(b"["):
                progress(*json.loads(line))
            else:
                reply = line
    raise LibraryError(STOPPED)


def _exchange(process: subprocess.Popen[bytes], request: bytes, lines: SimpleQueue[bytes | None]) -> None:
    """Ask the process, and pass on what it says, a line at a time; None at the end."""
    if process.stdin and process.stdout:
        with suppress(OSError), process.stdin:  # it may have ended
            process.stdin.write(request)
        with suppress(OSError, ValueError), process.stdout:
            for line in process.stdout:
                lines.put(line)
    lines.put(None)


def _parsed_reply(reply: bytes, exit_code: int) -> dict[str, Any]:
    if _is_signal(exit_code, "SIGXCPU") or (_is_signal(exit_code, "SIGKILL") and not reply):
        raise LibraryError(_TOO_LONG)
    try:
        answer: dict[str, Any] = json.loads(reply)
    except ValueError as error:  # it ended in the middle, for want of memory most likely
        raise LibraryError(_TOO_LARGE) from error
    if "error" in answer:
        raise LibraryError(answer["error"])
    return answer


def _is_signal(exit_code: int, name: str) -> bool:
    """Whether a process ended by this signal, if the system has it: Windows has neither of these."""
    return hasattr(signal, name) and exit_code == -getattr(signal, name)
