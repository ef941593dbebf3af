"""Whose turn is next at a model that several people share: people take turns, whoever of them asks the most.

`queue.py` orders the requests of turns that are under way. Here a turn waits before its first request, and keeps its
seat to its end, so that what is begun is finished before more is begun.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from threading import Event

from assistant.llm.queue import FairQueue, Ticket
from assistant.llm.wrapper import Wrapper
from assistant.protocols import LLM
from assistant.types import Choice, Completion, Messages, Options


class Line(FairQueue):
    """Hands out seats round robin over people.

    Next is whoever holds the fewest seats and, of equals, whoever has waited longest; a person's second turn has waited
    since their first was given its seat.
    """

    def ahead(self, stop: Event) -> int | None:
        """How many other people are before the turn that `stop` ends; None where it doesn't wait."""
        with self._changed:
            before = set[Hashable]()
            for ticket in self._order() if self._waiting else ():
                if ticket.stop is stop:
                    return len(before - {ticket.owner})
                before.add(ticket.owner)
            return None

    def _next(self) -> Ticket:
        return self._order()[0]

    def _seat(self, owner: Hashable) -> None:
        super()._seat(owner)
        for other in self._waiting:
            if other.owner == owner:
                other.since = next(self._moments)

    def _order(self) -> list[Ticket]:
        """Those who wait, next first."""
        held, keys = self._held.copy(), dict[Ticket, tuple[int, int]]()
        for ticket in self._waiting:  # a person's own stand as they came
            keys[ticket] = held[ticket.owner], ticket.since
            held[ticket.owner] += 1
        return sorted(keys, key=keys.__getitem__)


class InLine(Wrapper):
    """Passes everything on to `llm` once there is a seat for this person's turn, which `close` gives back."""

    def __init__(self, llm: LLM, line: Line, person: str) -> None:
        super().__init__(llm)
        self._line, self._person = line, person
        self._seated = False

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        """As the model does it, which ends at once where `stop` was set before there was a seat."""
        self._wait(stop)
        yield from self._llm.stream(messages, options, stop)

    def complete(self, batch: Sequence[Messages], options: Options, stop: Event) -> list[Completion]:
        """As `stream`."""
        self._wait(stop)
        return self._llm.complete(batch, options, stop)

    def choose(self, batch: Sequence[Messages], words: tuple[str, ...], stop: Event) -> list[Choice]:
        """As `stream`."""
        self._wait(stop)
        return self._llm.choose(batch, words, stop)

    def score(self, batch: Sequence[tuple[Messages, str]], stop: Event) -> list[float]:
        """As `stream`."""
        self._wait(stop)
        return self._llm.score(batch, stop)

    def close(self) -> None:
        """The turn is over."""
        if self._seated:
            self._seated = False
            self._line.leave(self._person)

    def _wait(self, stop: Event) -> None:
        if not self._seated:
            self._seated = self._line.enter(self._person, stop)
