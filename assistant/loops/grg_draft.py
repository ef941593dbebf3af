"""Generate, retrieve, generate as in its paper: the draft alone is the query (GRG for TREC iKAT, section 2.1).

A draft is written for every question, whatever a search for the question would find: `turn.draft_threshold` applies
only to `grg`.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from assistant.loops.shared import draft
from assistant.protocols import Parts
from assistant.retrieve.search import search_and_fuse, search_text
from assistant.types import Query, Turn

TITLE = "With a draft of the answer alone"
SUMMARY = "Writes a first answer from its own knowledge, and searches with nothing but that; slow, and for comparison."
# The number of its rounds can be chosen (`Choices.loops`).
DRAFTS = True


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `draft`, `queries` and `passages`."""

    def search(turn: Turn) -> Turn:
        # an empty draft would find nothing
        query = Query("draft", turn.draft) if turn.draft else Query("question", search_text(turn))
        return search_and_fuse(turn, parts, query)

    yield from draft.rounds(turn, parts, stop, search)
