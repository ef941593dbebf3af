"""A lock whose next holder is who needs it for the least work."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from threading import Condition


class ShortestFirst:
    """So many threads hold it at a time: of those who wait the one with the least work, of equals who came first.

    A sentence of somebody who has just asked then waits for the one batch that is being read, and not for all that the
    judges of others have to read.
    """

    def __init__(self, max_holders: int = 1) -> None:
        """`max_holders` may hold it at once, but never two of them for the same thing."""
        self._max_holders = max_holders
        self._waiting: list[tuple[int, int, object]] = []
        self._things_in_use: list[object] = []
        self._moments = count()
        self._changed = Condition()

    @property
    def waiting_count(self) -> int:
        """How many threads wait for it."""
        with self._changed:
            return len(self._waiting)

    @contextmanager
    def hold(self, work: int, thing: object = None) -> Iterator[None]:
        """Wait for it, and hold it for this much work with a thing, in any unit that is the same for all."""
        with self._changed:
            ticket = (work, next(self._moments), thing)
            insort(self._waiting, ticket)
            self._changed.wait_for(lambda: self._next() is ticket)
            self._waiting.remove(ticket)
            self._things_in_use.append(thing)
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._things_in_use.remove(thing)
                self._changed.notify_all()

    def _next(self) -> tuple[int, int, object] | None:
        """Who may hold it now; None while nobody may."""
        if len(self._things_in_use) >= self._max_holders:
            return None
        return next((ticket for ticket in self._waiting if ticket[2] not in self._things_in_use), None)
