"""Reads documents of users in a process of its own, which may take so much time and memory and no more.

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
from contextlib import suppress
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

from assistant.errors import LibraryError
from assistant.library.passages import passages_of
from assistant.library.readers import read
from assistant.types import Passage

MEGABYTE = 2**20
# Seconds of a processor for a document, and for each megabyte of it: finding the sentences of a text takes about as
# long. Where others keep the processors busy, or the system can't count them, so many times that by the clock.
SECONDS, SECONDS_PER_MEGABYTE = 8.0, 10.0
BUSY = 6.0
MEMORY_BYTES = 3 * 2**29
PASSAGES_MOST = 100_000
_LOOK = 0.1  # seconds between looks at whether the reading is to stop
_TOO_LONG = "it takes too long to read; split it up, or save it anew in a simpler format"
_TOO_LARGE = "it takes too much memory to read; split it up, or save it anew in a simpler format"
_TOO_MANY = f"it makes more than {PASSAGES_MOST:,} passages; split it up"
STOPPED = "its reading was stopped"


def read_apart(path: Path, document: str, source: str, stop: Event) -> list[Passage]:
    """The passages of a document, as `passages_of` makes them of what `read` gives.

    Args:
        path: the file.
        document: the id that its passages are numbered under.
        source: its name as readers of the library see it.
        stop: when this is set, the reading ends at once.

    Raises:
        LibraryError: the document can't be read, not within the limits, or not to its end; the message is the reason.
    """
    seconds = allowed(path)
    asked = json.dumps({"path": str(path), "document": document, "source": source, "seconds": seconds})
    process = subprocess.Popen(
        [sys.executable, "-c", f"from {__name__} import serve; serve()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},  # it finds what this one finds
    )
    try:
        said = _said(process, asked.encode(), seconds, stop)
    finally:
        process.kill()
        process.wait()
    return _understood(said, process.returncode)


def allowed(path: Path) -> float:
    """How many seconds of a processor the reading of a document may take."""
    with suppress(OSError):  # reading it tells what is wrong
        return SECONDS + SECONDS_PER_MEGABYTE * path.stat().st_size / MEGABYTE
    return SECONDS


def serve() -> None:
    """Read the document that standard input names, and print its passages or why there are none, as JSON."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no part of the answer
    asked = json.loads(sys.stdin.buffer.read())
    _limit(asked["seconds"])
    try:
        answer = _answer(asked)
    except MemoryError:
        answer = {"error": _TOO_LARGE}
    with out:
        out.write(json.dumps(answer).encode())


def _answer(asked: dict[str, Any]) -> dict[str, Any]:
    try:
        passages = passages_of(read(Path(asked["path"])), asked["document"], asked["source"])
    except LibraryError as error:
        return {"error": _TOO_LARGE if isinstance(error.__cause__, MemoryError) else str(error)}
    if len(passages) > PASSAGES_MOST:
        return {"error": _TOO_MANY}
    return {"passages": [(one.id, one.title, one.text, one.source) for one in passages]}


def _limit(seconds: float) -> None:
    """Bound this process where the system can; it is also to wait behind those that answer."""
    with suppress(ImportError):  # Windows has none of it: there the time alone is bounded, from outside
        import resource  # noqa: PLC0415

        limits = {resource.RLIMIT_AS: MEMORY_BYTES, resource.RLIMIT_CPU: int(seconds) + 1, resource.RLIMIT_CORE: 0}
        for kind, most in limits.items():
            with suppress(ValueError, OSError):  # less is allowed already
                resource.setrlimit(kind, (most, most))
        os.nice(5)


def _said(process: subprocess.Popen[bytes], asked: bytes, seconds: float, stop: Event) -> bytes:
    """What the process answers."""
    given: bytes | None = asked
    end = monotonic() + BUSY * seconds
    while not stop.is_set():
        if monotonic() > end:
            raise LibraryError(_TOO_LONG)
        try:
            return process.communicate(given, timeout=_LOOK)[0]
        except subprocess.TimeoutExpired:
            given = None
    raise LibraryError(STOPPED)


def _understood(said: bytes, code: int) -> list[Passage]:
    if code == -getattr(signal, "SIGXCPU", 0) or (code == -signal.SIGKILL and not said):
        raise LibraryError(_TOO_LONG)
    try:
        answer = json.loads(said)
    except ValueError as error:  # it ended in the middle, for want of memory most likely
        raise LibraryError(_TOO_LARGE) from error
    if "error" in answer:
        raise LibraryError(answer["error"])
    return [Passage(key, title, text, source=source) for key, title, text, source in answer["passages"]]
