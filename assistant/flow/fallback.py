"""Two strategies as one: the second is tried where the first gives no answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from threading import Event

from assistant.flow.timing import timed
from assistant.protocols import Parts, Step
from assistant.types import Turn


@dataclass(frozen=True, slots=True)
class Fallback:
    """A step that runs `first`, and `second` where that leaves the answer unknown; `told` is the event it adds then."""

    first: Step
    second: Step
    told: str

    def __call__(self, turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
        """Adds what the two steps add."""
        for turn in self.first(turn, parts, stop):
            yield turn
        if turn.answer and turn.answer.unknown and not stop.is_set():
            # An answer that says nothing is none to be shown meanwhile, or kept where this is stopped.
            turn = replace(turn.told(self.told), answer=None, sentences=(), citations=())
            yield from timed("fallback", self.second, turn, parts, stop)
