"""Whose documents are being added right now, and how far that is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from assistant.protocols import Progress
from assistant.types import Wait


class Arrivals:
    """The uploads under way, of all users. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._under_way: dict[object, tuple[str, int, int]] = {}

    @contextmanager
    def of(self, user: str, progress: Progress) -> Iterator[Progress]:
        """An upload of this user, under way until the block ends. What the yielded `Progress` is told is passed on."""
        upload = object()

        def tell(done: int, total: int) -> None:
            self._note(upload, (user, done, total))
            progress(done, total)

        self._note(upload, (user, 0, 0))
        try:
            yield tell
        finally:
            with self._lock:
                del self._under_way[upload]

    def wait(self, user: str) -> Wait | None:
        """How far this user's uploads are, in percent; None where there are none."""
        with self._lock:
            own = [(done, total) for whose, done, total in self._under_way.values() if whose == user]
        if not own:
            return None
        done, total = (sum(counts) for counts in zip(*own, strict=True))
        return Wait("documents", done=100 * done // total, total=100) if total else Wait("documents")

    def _note(self, upload: object, state: tuple[str, int, int]) -> None:
        with self._lock:
            self._under_way[upload] = state
