"""Whose documents are being added right now, and how far that is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

from assistant.protocols import Progress
from assistant.types import Wait


@dataclass(slots=True)
class _Upload:
    user: str
    names: Sequence[str]
    done: int = 0
    total: int = 0


class Arrivals:
    """The uploads under way, of all users. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._under_way: list[_Upload] = []

    @contextmanager
    def of(self, user: str, progress: Progress, names: Sequence[str] = ()) -> Iterator[Progress]:
        """An upload of this user, under way until the block ends. What the yielded `Progress` is told is passed on.

        `names` are what its documents are called.
        """
        upload = _Upload(user, names)

        def tell(done: int, total: int) -> None:
            with self._lock:
                upload.done, upload.total = done, total
            progress(done, total)

        with self._lock:
            self._under_way.append(upload)
        try:
            yield tell
        finally:
            with self._lock:
                self._under_way = [one for one in self._under_way if one is not upload]

    def wait(self, user: str) -> Wait | None:
        """How far this user's uploads are, in percent; None where there are none."""
        own = self._own(user)
        if not own:
            return None
        done, total = sum(one.done for one in own), sum(one.total for one in own)
        return Wait("documents", done=100 * done // total, total=100) if total else Wait("documents")

    def names(self, user: str) -> list[str]:
        """What this user's documents are called that are being added."""
        return [name for one in self._own(user) for name in one.names]

    def _own(self, user: str) -> list[_Upload]:
        with self._lock:
            return [one for one in self._under_way if one.user == user]
