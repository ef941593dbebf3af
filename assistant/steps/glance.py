"""First sources for the words as they were typed, on the page before the model has written anything.

A follow-up has to be rewritten before it can be searched well, and that takes the model seconds. Until then the last
question and the new utterance together are the query. What is found is replaced as soon as the question stands alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from assistant.retrieve.search import look
from assistant.types import Parts, Query, Turn


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:  # noqa: ARG001 - it is over in milliseconds
    """Adds provisional `passages` to a follow-up; a first utterance is searched for by the loop at once."""
    if turn.history:
        turn = look(turn, parts, Query("utterance", f"{turn.history[-1].question} {turn.said}"))
    yield turn
