"""Who is next at a model that several users share."""

from __future__ import annotations

from collections import Counter
from threading import Condition, Event

_POLL = 0.05


class FairQueue:
    """Hands out `seats`, first come first served among those who hold the fewest.

    An owner with many requests (a batch) therefore fills idle seats, but gives way to anyone who holds none: a single
    request waits for one seat to fall free, not for the whole batch before it.
    """

    def __init__(self, seats: int) -> None:
        self._free = seats
        self._held: Counter[object] = Counter()
        self._waiting: list[tuple[object, object]] = []
        self._changed = Condition()

    def enter(self, owner: object, stop: Event) -> bool:
        """Wait for a seat; False if `stop` was set first, and then no seat is held."""
        ticket = (owner, object())
        with self._changed:
            self._waiting.append(ticket)
            try:
                while not stop.is_set():
                    if self._free and self._next() is ticket:
                        self._free -= 1
                        self._held[owner] += 1
                        return True
                    self._changed.wait(_POLL)
                return False
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()

    def leave(self, owner: object) -> None:
        """Give one of the owner's seats back."""
        with self._changed:
            self._free += 1
            self._held[owner] -= 1
            if not self._held[owner]:
                del self._held[owner]
            self._changed.notify_all()

    def _next(self) -> tuple[object, object]:
        # min keeps the earliest of equals, and `_waiting` is in order of arrival.
        return min(self._waiting, key=lambda ticket: self._held[ticket[0]])
