"""A fair queue for the seats of a model that several users share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import count
from threading import Condition, Event

_POLL = 0.05


@dataclass(eq=False, slots=True)
class Ticket:
    """A place in the queue, held until `stop` is set; the smaller `since` is, the longer it has waited."""

    owner: Hashable
    stop: Event
    since: int


class FairQueue:
    """Hands out `seats`, first come first served among those who hold the fewest.

    An owner with many requests (a batch) therefore fills idle seats, but gives way to anyone who holds none: a single
    request waits for one seat to fall free, not for the whole batch before it. Safe to use from several threads.
    """

    def __init__(self, seats: int) -> None:
        self._free = seats
        self._held: Counter[Hashable] = Counter()
        self._waiting: list[Ticket] = []
        self._moments = count()
        self._changed = Condition()

    def enter(self, owner: Hashable, stop: Event) -> bool:
        """Wait for a seat; False if `stop` was set first, and then no seat is held."""
        with self._changed:
            ticket = Ticket(owner, stop, next(self._moments))
            self._waiting.append(ticket)
            try:
                while not stop.is_set():
                    if self._free and self._next() is ticket:
                        self._seat(owner)
                        return True
                    self._changed.wait(_POLL)
                return False
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()

    def leave(self, owner: Hashable) -> None:
        """Give one of the owner's seats back."""
        with self._changed:
            self._free += 1
            self._held[owner] -= 1
            if not self._held[owner]:
                del self._held[owner]
            self._changed.notify_all()

    def _next(self) -> Ticket:
        return min(self._waiting, key=lambda ticket: (self._held[ticket.owner], ticket.since))

    def _seat(self, owner: Hashable) -> None:
        self._free -= 1
        self._held[owner] += 1
