"""Reads documents of users, within limits of time and memory (`apart.py`)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any

from assistant.errors import LibraryError
from assistant.library import scans
from assistant.library.apart import answer_apart
from assistant.library.passages import passages_of
from assistant.library.readers import read
from assistant.library.readers.shared.scan import ScanError
from assistant.types import Passage

MEGABYTE = 2**20
# Seconds of a processor for a document, and for each megabyte of it: finding the sentences of a text takes about as
# long.
SECONDS, SECONDS_PER_MEGABYTE = 8.0, 10.0
PASSAGES_MOST = 100_000
_TOO_MANY = f"it makes more than {PASSAGES_MOST:,} passages; split it up"


def read_here(path: Path, document: str, source: str) -> list[Passage]:
    """The passages of a document, of a scan by OCR.

    Args:
        path: the file.
        document: the id that its passages are numbered under.
        source: its name as readers of the library see it.

    Raises:
        LibraryError: the document can't be read; the message is the reason.
    """
    try:
        return passages_of(read(path), document, source)
    except ScanError:
        return passages_of(scans.blocks(path), document, source)


def read_apart(path: Path, document: str, source: str, stop: Event) -> list[Passage]:
    """The same as `read_here`, in processes of their own within limits of time and memory.

    Args:
        path: the file.
        document: the id that its passages are numbered under.
        source: its name as readers of the library see it.
        stop: when this is set, the reading ends at once.

    Raises:
        LibraryError: the document can't be read, not within the limits, or not to its end; the message is the reason.
    """
    asked = {"path": str(path), "document": document, "source": source}
    said = answer_apart(__name__, asked, allowed(path), stop)
    if "scan" in said:
        return passages_of(scans.blocks_apart(path, stop), document, source)
    return [
        Passage(key, title, text, source=where, page=page, heading=heading)
        for key, title, heading, text, where, page in said["passages"]
    ]


def allowed(path: Path) -> float:
    """How many seconds of a processor the reading of a document may take."""
    with suppress(OSError):  # reading it tells what is wrong
        return SECONDS + SECONDS_PER_MEGABYTE * path.stat().st_size / MEGABYTE
    return SECONDS


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """What the process apart says of a document.

    Raises:
        LibraryError: the document can't be read; the message is the reason.
    """
    try:
        passages = passages_of(read(Path(asked["path"])), asked["document"], asked["source"])
    except ScanError:
        return {"scan": True}
    if len(passages) > PASSAGES_MOST:
        raise LibraryError(_TOO_MANY)
    return {"passages": [(one.id, one.title, one.heading, one.text, one.source, one.page) for one in passages]}
