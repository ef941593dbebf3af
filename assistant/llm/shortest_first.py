"""A lock whose next holder is who needs it for the least work."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from threading import Condition


class ShortestFirst:
    """Threads hold it one after the other: of those who wait the one with the least work, of equals who came first.

    A sentence of somebody who has just asked then waits for the one batch that is being read, and not for all that the
    judges of others have to read.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int]] = []
        self._moments = count()
        self._held = False
        self._changed = Condition()

    @contextmanager
    def held(self, work: int) -> Iterator[None]:
        """Wait for it, and hold it for this much work, in any unit that is the same for all."""
        with self._changed:
            place = (work, next(self._moments))
            insort(self._waiting, place)
            self._changed.wait_for(lambda: not self._held and self._waiting[0] == place)
            self._waiting.remove(place)
            self._held = True
        try:
            yield
        finally:
            with self._changed:
                self._held = False
                self._changed.notify_all()
