"""Indexes that take minutes to make: they are begun in the background when they are first asked for."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from threading import Lock, Thread
from time import monotonic
from typing import ClassVar

from assistant.errors import LibraryError, SequiturError
from assistant.protocols import Progress, Retriever

_LOG = logging.getLogger(__name__)


class IndexedShelves(ABC):
    """Libraries by their names, searched in indexes that are made of them. No search makes one in silence.

    `WAITING` is the sentence for whoever asks before they are there; {progress} in it says how far that is.
    """

    WAITING: ClassVar[str]

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: _IndexBuild | None = None

    @abstractmethod
    def make(self, names: Sequence[str], progress: Progress) -> None:
        """Make or update the indexes of these libraries; what was done before an interruption is kept.

        Raises:
            SequiturError: an index can't be made.
        """

    @abstractmethod
    def ready_retriever(self, names: Sequence[str]) -> Retriever | None:
        """The libraries, if all can be searched as they are now."""

    def open(self, names: Sequence[str], patience: float) -> Retriever:
        """The libraries searched as one; what is missing is begun, and waited for so many seconds.

        Raises:
            LibraryError: an index can't be made, or is still being made; the message says how far it is.
        """
        deadline, progress_text = monotonic() + patience, ""
        while (retriever := self.ready_retriever(names)) is None:
            if monotonic() >= deadline:
                raise LibraryError(self.WAITING.format(progress=progress_text))
            making = self._begin(names)
            making.thread.join(max(deadline - monotonic(), 0))
            if making.names == tuple(names):  # what others' libraries do is not for these to tell
                progress_text = making.progress_text
                if making.error:
                    raise LibraryError(making.error)
        return retriever

    def _begin(self, names: Sequence[str]) -> _IndexBuild:
        """Make the indexes in the background, unless something is being made already."""
        with self._lock:
            if self._running is None or not self._running.thread.is_alive():
                self._running = _IndexBuild(tuple(names), self.make)
            return self._running


class _IndexBuild:
    """Indexes being made in a thread of their own: how far it is, as text, and the `error` that ended it, if any."""

    def __init__(self, names: tuple[str, ...], make: Callable[[Sequence[str], Progress], None]) -> None:
        self.names = names
        self.progress_text = self.error = ""
        self._make = make
        self.thread = Thread(target=self._run, name="index", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self._make(self.names, self._tell)
        except SequiturError as error:
            self.error = str(error)
        except Exception as error:  # noqa: BLE001 - a person is told when they ask
            _LOG.exception("making the indexes of %s failed", ", ".join(self.names))
            self.error = f"The library could not be made ready ({error}); the log has the details."

    def _tell(self, done: int, total: int) -> None:
        self.progress_text = f" ({done / total:.0%})" if total else ""
