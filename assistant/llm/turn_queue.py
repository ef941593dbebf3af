"""The queue of turns at a model that several people share: round robin over people, however much each of them asks.

A turn waits here before its first request to the model, or to a judge (`judges/seated.py`), and keeps its seat until it
ends, so that answers that were begun are finished before others begin. `fair_queue.py` orders the requests of the turns
that are under way.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from threading import Event

from assistant.llm.fair_queue import FairQueue, Ticket
from assistant.llm.wrapper import Wrapper
from assistant.protocols import LLM
from assistant.types import Choice, Completion, Messages, Options


class TurnQueue(FairQueue):
    """Hands out seats round robin over people.

    The next seat goes to the person who holds the fewest and, among equals, has waited longest. A person's second turn
    counts as waiting since their first one got its seat.
    """

    def ahead(self, stop: Event) -> int | None:
        """How many other people come before the turn that owns `stop`; None if that turn is not waiting."""
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
        """The waiting turns in the order in which they will be seated."""
        held, keys = self._held.copy(), dict[Ticket, tuple[int, int]]()
        for ticket in self._waiting:  # turns of one person keep the order in which they came
            keys[ticket] = held[ticket.owner], ticket.since
            held[ticket.owner] += 1
        return sorted(keys, key=keys.__getitem__)


class QueuedLLM(Wrapper):
    """An LLM that waits for this person's seat in the queue before the first request; `close` gives the seat back."""

    def __init__(self, llm: LLM, line: TurnQueue, person: str) -> None:
        super().__init__(llm)
        self._line, self._person = line, person
        self._seated = False

    def wait(self, stop: Event) -> None:
        """Wait for the seat, unless it is held already or `stop` is set."""
        if not self._seated:
            self._seated = self._line.enter(self._person, stop)

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        """As the model does it, which ends at once where `stop` was set before there was a seat."""
        self.wait(stop)
        yield from self._llm.stream(messages, options, stop)

    def complete(self, batch: Sequence[Messages], options: Options, stop: Event) -> list[Completion]:
        """As `stream`."""
        self.wait(stop)
        return self._llm.complete(batch, options, stop)

    def choose(self, batch: Sequence[Messages], words: tuple[str, ...], stop: Event) -> list[Choice]:
        """As `stream`."""
        self.wait(stop)
        return self._llm.choose(batch, words, stop)

    def score(self, batch: Sequence[tuple[Messages, str]], stop: Event) -> list[float]:
        """As `stream`."""
        self.wait(stop)
        return self._llm.score(batch, stop)

    def close(self) -> None:
        """The turn is over."""
        if self._seated:
            self._seated = False
            self._line.leave(self._person)
