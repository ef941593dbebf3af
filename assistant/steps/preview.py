"""First sources for the words as they were typed, on the page before the model has written anything.

A follow-up has to be rewritten before it can be searched well, and so has a message of somebody of whom something is
known; that takes the model a second or more. Until then the utterance is the query, behind the last question if there
is one. What is found is replaced as soon as the question stands alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from assistant.protocols import Parts
from assistant.retrieve.search import search_and_fuse
from assistant.types import Query, Turn


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:  # noqa: ARG001 - it is over in milliseconds
    """Adds provisional `passages`; an utterance that stands alone already is searched for by the loop at once."""
    if turn.history or turn.facts:
        before = f"{turn.history[-1].question} " if turn.history else ""
        turn = search_and_fuse(turn, parts, Query("utterance", before + turn.said))
    yield turn
