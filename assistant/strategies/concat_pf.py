"""Concatenation first; if it gives no answer, post-fusion over the same passages (post-fusion, section 3.3)."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from assistant.clock import timed
from assistant.strategies import concat, post_fusion
from assistant.types import Parts, Turn

FELL_BACK = "The passages together gave no answer, so each was asked alone."


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `answer`, and `pool` and an event when it fell back."""
    for snapshot in concat.run(turn, parts, stop):
        turn = snapshot
        yield turn
    if turn.answer and turn.answer.unknown and not stop.is_set():
        turn = turn.grow(events=(*turn.events, FELL_BACK))
        yield from timed("fallback", post_fusion.run, turn, parts, stop)
