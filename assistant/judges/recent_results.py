"""Caches a judge's recent results: the steps of one turn ask about the same texts repeatedly."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from typing import Generic, TypeVar

from cachetools import LRUCache

K = TypeVar("K")
V = TypeVar("V")


class RecentResults(Generic[K, V]):
    """A cache of the last `capacity` results by key. Safe to call from several threads."""

    def __init__(self, capacity: int) -> None:
        self._known: LRUCache[K, V] = LRUCache(capacity)
        self._lock = Lock()

    def of(self, keys: Iterable[K], compute: Callable[[list[K]], Iterable[tuple[K, V]]]) -> dict[K, V]:
        """The results for these keys; `compute` returns those that are not cached, and may leave some out."""
        unique_keys = list(dict.fromkeys(keys))
        with self._lock:
            results = {key: self._known[key] for key in unique_keys if key in self._known}
        if missing_keys := [key for key in unique_keys if key not in results]:
            results |= dict(compute(missing_keys))
            with self._lock:
                self._known.update(results)
        return results
