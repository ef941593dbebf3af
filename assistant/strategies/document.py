"""Answers from the text alone that an ITRG loop wrote (ITRG, section 2.1); after other loops, as concat does."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from assistant.protocols import Parts
from assistant.strategies import concat
from assistant.strategies.shared.reading import read
from assistant.types import Passage, Turn

TITLE = "From the text of a search in rounds"
SUMMARY = "Answers from the text that a search in rounds wrote; after any other search, reads all passages at once."


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `answer`, streamed."""
    if turn.document:
        yield from read("document", turn, parts, stop, document=turn.document)
    else:
        yield from concat.run(turn, parts, stop)


def sources(turn: Turn) -> tuple[Passage, ...]:
    """The passages that the text was written from and that the turn no longer has, the latest iteration's first.

    Passages that the quality classifier rejected are left out.
    """
    excluded_ids = {passage.id for passage in turn.passages} | {dropped.passage.id for dropped in turn.dropped}
    extra_passages: dict[str, Passage] = {}
    for passage in (passage for iteration in reversed(turn.iterations) for passage in iteration.passages):
        if passage.id not in excluded_ids:
            extra_passages.setdefault(passage.id, passage)
    return tuple(extra_passages.values())
