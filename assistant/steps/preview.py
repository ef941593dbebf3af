"""Searches for the words as they were typed, so that the page has first sources before the model has written anything.

A follow-up, or a message from somebody with facts, has to be rewritten before it can be searched for well, and this
takes the model a second or more. Until then the query is the last question, if there is one, followed by the utterance.
The passages found are replaced as soon as there is a question that stands alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from assistant.protocols import Parts
from assistant.retrieve.search import search_and_fuse
from assistant.types import Query, Turn


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:  # noqa: ARG001 - it is over in milliseconds
    """Adds provisional `passages`; none if the utterance stands alone, since the loop then searches for it at once."""
    if turn.history or turn.facts:
        context = f"{turn.history[-1].question} " if turn.history else ""
        turn = search_and_fuse(turn, parts, Query("utterance", context + turn.request))
    yield turn
