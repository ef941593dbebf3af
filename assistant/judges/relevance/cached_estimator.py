"""Caches estimates: the steps of one turn ask about the same passages and sentences repeatedly."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event, Lock

from cachetools import LRUCache

from assistant.protocols import Estimator
from assistant.types import Passage, Relevance

# A turn asks for one or two hundred. The cache holds their texts as well, some 2 MB in all.
MOST = 1024


class CachedEstimator:
    """An `Estimator` that caches the recent estimates of another. Safe to call from several threads."""

    def __init__(self, estimator: Estimator) -> None:
        self.name, self.calibration = estimator.name, estimator.calibration
        self._estimator = estimator
        self._known: LRUCache[tuple[str, str], Relevance] = LRUCache(MOST)
        self._lock = Lock()

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
        """One estimate for each passage; see `Estimator`. Nothing is cached if `stop` was set."""
        keys = [(question, passage.titled) for passage in passages]
        with self._lock:
            estimates = {key: self._known[key] for key in keys if key in self._known}
        missing = {key: passage for key, passage in zip(keys, passages, strict=True) if key not in estimates}
        if missing:
            estimates |= dict(
                zip(missing, self._estimator.estimate(question, list(missing.values()), stop), strict=True)
            )
        if not stop.is_set():
            with self._lock:
                self._known.update(estimates)
        return [estimates[key] for key in keys]
