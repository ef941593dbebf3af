"""The text that an ITRG loop wrote, alone (ITRG, section 2.1); after a loop that wrote none, as concat."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from assistant.strategies import concat
from assistant.types import Parts, Turn

TITLE = "From the text of a search in rounds"
SUMMARY = "Answers from the text that a search in rounds wrote; after any other search, reads all passages at once."


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `answer`, streamed; its citations point at the passages of the last iteration."""
    if turn.document:
        yield from concat.read("document", turn, parts, stop, document=turn.document)
    else:
        yield from concat.run(turn, parts, stop)
