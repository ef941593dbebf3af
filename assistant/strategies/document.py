"""The text that an ITRG loop wrote, alone (ITRG, section 2.1); after a loop that wrote none, as concat."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.protocols import Parts
from assistant.strategies import concat
from assistant.types import Turn

TITLE = "From the text of a search in rounds"
SUMMARY = "Answers from the text that a search in rounds wrote; after any other search, reads all passages at once."


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `answer`, streamed; its citations point at passages that the text was written from, of any iteration.

    Those of them that the turn no longer has are among its `passages` again where they are cited.
    """
    if not turn.document:
        yield from concat.run(turn, parts, stop)
        return
    kept = {passage.id for passage in turn.passages}
    for grown in concat.read("document", _with_origins(turn), parts, stop, document=turn.document):
        wanted = kept | {citation.passage_id for citation in grown.citations}
        yield replace(grown, passages=tuple(passage for passage in grown.passages if passage.id in wanted))


def _with_origins(turn: Turn) -> Turn:
    """The turn with what its iterations found behind its passages, the latest first, but what was left out."""
    found = (passage for one in reversed(turn.iterations) for passage in one.passages)
    dropped = {one.passage.id for one in turn.dropped}
    passages = {passage.id: passage for passage in turn.passages}
    for passage in found:
        if passage.id not in dropped:
            passages.setdefault(passage.id, passage)
    return replace(turn, passages=tuple(passages.values()))
