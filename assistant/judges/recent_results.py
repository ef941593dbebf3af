"""Caches a judge's recent results: the steps of one turn ask about the same texts repeatedly."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import Generic, TypeVar

from cachetools import LRUCache

K = TypeVar("K")
V = TypeVar("V")


class RecentResults(Generic[K, V]):
    """A cache of the last `most` results by key. Safe to call from several threads."""

    def __init__(self, most: int) -> None:
        self._known: LRUCache[K, V] = LRUCache(most)
        self._lock = Lock()

    def of(self, keys: Iterable[K], look: Callable[[list[K]], Iterable[tuple[K, V]]]) -> dict[K, V]:
        """The results for these keys; `look` computes those that are not cached, and may leave some out."""
        wanted = list(dict.fromkeys(keys))
        with self._lock:
            found = {key: self._known[key] for key in wanted if key in self._known}
        if new := [key for key in wanted if key not in found]:
            found |= dict(look(new))
            with self._lock:
                self._known.update(found)
        return found
