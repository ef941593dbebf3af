"""The queue of turns at a model that several people share: round robin over people, however much each of them asks.

A turn waits here before its first request to the model, or to a judge (`judges/seated.py`), and keeps its seat until it
ends, so that answers that were begun are finished before others begin. `fair_queue.py` orders the requests of the turns
that are under way.

Until then a turn looks for its first sources, which takes a moment, and those that are under way give way to it: they
ask nothing new of a model or a judge meanwhile, and the engine makes no step for them, if it can rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from threading import Event
from time import monotonic
from typing import Protocol, runtime_checkable

from assistant.llm.fair_queue import FairQueue, Ticket
from assistant.llm.wrapper import Wrapper
from assistant.protocols import LLM
from assistant.types import Choice, Completion, Messages, Options

# Seconds for which a turn that has just begun has the others wait; one that takes longer waits for something else.
NEW_TURN_SECONDS = 5.0
_POLL = 0.05


@runtime_checkable
class Resting(Protocol):
    """An engine whose replies under way can wait."""

    def rest(self, seconds: float) -> None:
        """Let them wait for so many seconds, which leaves the processor to others; 0 ends the rest."""
        ...


class TurnQueue(FairQueue):
    """Hands out seats round robin over people.

    The next seat goes to the person who holds the fewest and, among equals, has waited longest. A person's second turn
    counts as waiting since their first one got its seat.
    """

    def __init__(self, seats: int, rest: Callable[[float], None] = lambda _: None) -> None:
        """`rest` lets the replies that are being written wait for so many seconds; see `Resting`."""
        super().__init__(seats)
        self._rest = rest
        self._start_times: dict[Hashable, float] = {}

    def begin(self, turn: Hashable) -> None:
        """Note that a turn has begun."""
        with self._changed:
            self._start_times[turn] = monotonic()
            self._rest(NEW_TURN_SECONDS)

    def arrive(self, turn: Hashable) -> None:
        """Note that the turn has come here, or is over: nobody has to wait for it any more."""
        with self._changed:
            if self._start_times.pop(turn, None) is not None:
                self._changed.notify_all()
                if not any(map(self._is_new, self._start_times)):
                    self._rest(0)

    def give_way(self, stop: Event) -> None:
        """Wait until the turns that have just begun have come here, or `stop` is set.

        Those that begin meanwhile aren't waited for: where people never cease to ask, no answer would come to its end.
        """
        with self._changed:
            new_turns = set(self._start_times)
            while not stop.is_set() and any(map(self._is_new, new_turns)):
                self._changed.wait(_POLL)

    def _is_new(self, turn: Hashable) -> bool:
        """Whether a turn that began a moment ago has not come here yet; one that takes longer is waited for no more."""
        return monotonic() - self._start_times.get(turn, -math.inf) < NEW_TURN_SECONDS

    def ahead(self, stop: Event) -> int | None:
        """How many other people come before the turn that owns `stop`; None if that turn is not waiting."""
        with self._changed:
            owners_ahead = set[Hashable]()
            for ticket in self._order() if self._waiting else ():
                if ticket.stop is stop:
                    return len(owners_ahead - {ticket.owner})
                owners_ahead.add(ticket.owner)
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
        held_seats, keys = self._held.copy(), dict[Ticket, tuple[int, int]]()
        for ticket in self._waiting:  # turns of one person keep the order in which they came
            keys[ticket] = held_seats[ticket.owner], ticket.since
            held_seats[ticket.owner] += 1
        return sorted(keys, key=keys.__getitem__)


class QueuedLLM(Wrapper):
    """An LLM that waits for this person's seat in the queue before the first request; `close` gives the seat back."""

    def __init__(self, llm: LLM, line: TurnQueue, person: str) -> None:
        super().__init__(llm)
        self._queue, self._person = line, person
        self._seated = False
        line.begin(self)

    def wait(self, stop: Event) -> None:
        """Wait for the seat, unless it is held already or `stop` is set, and for those who have just asked."""
        self._queue.arrive(self)
        if not self._seated:
            self._seated = self._queue.enter(self._person, stop)
        self._queue.give_way(stop)

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
        self._queue.arrive(self)
        if self._seated:
            self._seated = False
            self._queue.leave(self._person)
