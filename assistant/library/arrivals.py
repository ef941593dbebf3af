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
        self._uploads: list[_Upload] = []

    @contextmanager
    def track(self, user: str, names: Sequence[str] = ()) -> Iterator[Progress]:
        """An upload, under way until the block ends; what is yielded is told how far it is. `names`: its documents'."""
        upload = _Upload(user, names)

        def tell(done: int, total: int) -> None:
            with self._lock:
                upload.done, upload.total = done, total

        with self._lock:
            self._uploads.append(upload)
        try:
            yield tell
        finally:
            with self._lock:
                self._uploads = [other for other in self._uploads if other is not upload]

    def wait(self, user: str) -> Wait | None:
        """How far this user's uploads are, in percent; None where there are none."""
        uploads = self._uploads_of(user)
        if not uploads:
            return None
        done, total = sum(upload.done for upload in uploads), sum(upload.total for upload in uploads)
        return Wait("documents", done=100 * done // total, total=100) if total else Wait("documents")

    def names(self, user: str) -> list[str]:
        """What this user's documents are called that are being added."""
        return [name for upload in self._uploads_of(user) for name in upload.names]

    def _uploads_of(self, user: str) -> list[_Upload]:
        with self._lock:
            return [upload for upload in self._uploads if upload.user == user]
