"""Reads documents of users, within limits of time and memory (`apart.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

from assistant.errors import LibraryError
from assistant.library import scans
from assistant.library.apart import answer_apart
from assistant.library.passages import passages_of
from assistant.library.readers import read
from assistant.library.readers.shared.scan import ScanError
from assistant.protocols import Progress, silent
from assistant.text.chunks import Block
from assistant.types import Passage

MEGABYTE = 2**20
# Seconds of a processor for a document, and for each megabyte of it: finding the sentences of a text, and the tables
# of a PDF's pages, takes about as long.
SECONDS, SECONDS_PER_MEGABYTE = 8.0, 15.0
PASSAGES_MOST = 100_000
_TOO_MANY = f"it makes more than {PASSAGES_MOST:,} passages; split it up"


class Content(NamedTuple):
    """The passages of a document, and what is told of it besides; "" for nothing."""

    passages: list[Passage]
    note: str = ""


def read_here(path: Path, document: str, source: str, progress: Progress = silent) -> Content:
    """The passages of a document; of a scan, and of scanned pages among others, by OCR.

    Args:
        path: the file.
        document: the id that its passages are numbered under.
        source: its name as readers of the library see it.
        progress: told pages, where it has some.

    Raises:
        LibraryError: the document can't be read; the message is the reason.
    """
    try:
        blocks = read(path, progress)
    except ScanError:
        return Content(passages_of(scans.blocks(path, progress=progress), document, source))
    pages = scans.pictures(path, {block.page for block in blocks})
    scanned_blocks = scans.blocks(path, pages, progress) if _are_readable(pages) else []
    return Content(
        passages_of(_in_order(blocks, scanned_blocks), document, source), scans.note(pages, _are_readable(pages))
    )


def read_apart(path: Path, document: str, source: str, stop: Event, progress: Progress = silent) -> Content:
    """The same as `read_here`, in processes of their own within limits of time and memory.

    Args:
        path: the file.
        document: the id that its passages are numbered under.
        source: its name as readers of the library see it.
        stop: when this is set, the reading ends at once.
        progress: told pages, where it has some.

    Raises:
        LibraryError: the document can't be read, not within the limits, or not to its end; the message is the reason.
    """
    request = {"path": str(path), "document": document, "source": source, "scanned": []}
    reply = answer_apart(__name__, request, time_limit(path), stop, progress=progress)
    if "scan" in reply:
        return Content(passages_of(scans.blocks_apart(path, stop, reply["scan"], progress=progress), document, source))
    pages = reply["pictures"]
    if _are_readable(pages):
        scanned_blocks = scans.blocks_apart(path, stop, len(pages), pages, progress)
        reply = answer_apart(
            __name__, {**request, "scanned": [asdict(block) for block in scanned_blocks]}, time_limit(path), stop
        )
    passages = [
        Passage(key, title, text, source=passage_source, page=page, heading=heading)
        for key, title, heading, text, passage_source, page in reply["passages"]
    ]
    return Content(passages, scans.note(pages, _are_readable(pages)))


def time_limit(path: Path) -> float:
    """How many seconds of a processor the reading of a document may take."""
    with suppress(OSError):  # reading it tells what is wrong
        return SECONDS + SECONDS_PER_MEGABYTE * path.stat().st_size / MEGABYTE
    return SECONDS


def answer(request: dict[str, Any], progress: Progress = silent) -> dict[str, Any]:
    """What the process apart says of a document.

    Raises:
        LibraryError: the document can't be read; the message is the reason.
    """
    path, scanned_blocks = Path(request["path"]), [Block(**fields) for fields in request["scanned"]]
    try:
        blocks = read(path, progress)
    except ScanError:
        return {"scan": scans.count(path)}
    passages = passages_of(_in_order(blocks, scanned_blocks), request["document"], request["source"])
    if len(passages) > PASSAGES_MOST:
        raise LibraryError(_TOO_MANY)
    return {
        "passages": [
            (passage.id, passage.title, passage.heading, passage.text, passage.source, passage.page)
            for passage in passages
        ],
        "pictures": [] if scanned_blocks else scans.pictures(path, {block.page for block in blocks}),
    }


def _are_readable(pages: Sequence[int]) -> bool:
    """Whether OCR can read these pages, and not too many."""
    return 0 < len(pages) <= scans.PAGES_MOST and scans.is_installed()


def _in_order(text_blocks: Sequence[Block], scanned_blocks: Sequence[Block]) -> Sequence[Block]:
    """The blocks of both, as the pages follow each other."""
    return sorted([*text_blocks, *scanned_blocks], key=lambda block: block.page) if scanned_blocks else text_blocks
