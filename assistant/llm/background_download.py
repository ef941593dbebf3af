"""Downloads of models in the background, one at a time."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from threading import Event, Lock, Thread

from assistant.errors import ModelError
from assistant.llm.catalogue import Catalogue
from assistant.llm.downloads import Stopped
from assistant.llm.sources import hub_trouble
from assistant.settings import Settings

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DownloadState:
    """How far a download is: `done` of `total` bytes; a total of 0 isn't known.

    Without a `name` there is no download, or it was stopped. It ends `finished`, with the model fetched and checked, or
    with an `error`, a sentence that says what to do.
    """

    name: str = ""
    done: int = 0
    total: int = 0
    error: str = ""
    finished: bool = False

    @property
    def under_way(self) -> bool:
        """Whether something is being fetched."""
        return bool(self.name) and not self.error and not self.finished

    @property
    def fraction(self) -> float | None:
        """How much of it is here, in [0, 1]; None where that isn't known."""
        return self.done / self.total if self.total else None


class BackgroundDownload:
    """Fetches models of the catalogue, one at a time. Safe to call from several threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = Lock()
        self._state = DownloadState()
        self._stop = Event()
        self._thread: Thread | None = None

    @property
    def state(self) -> DownloadState:
        """How far the download is now."""
        with self._lock:
            return self._state

    def start(self, name: str) -> None:
        """Begin to fetch the model, unless it is being fetched already. A download that broke off is continued.

        Raises:
            ModelError: there is no such model, or another one is being fetched.
        """
        entry = Catalogue.load().entry(name)
        with self._lock:
            if self._state.under_way and self._state.name != entry.name:
                raise ModelError(f"{self._state.name} is being fetched; wait for it, or stop it first.")
            if self._state.under_way:
                return
            self._state, self._stop = DownloadState(entry.name, total=entry.size), Event()
            arguments = (entry.name, self._stop)
            self._thread = Thread(target=self._fetch, args=arguments, name="fetching", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop the download, if there is one; what has been fetched is kept for the next time."""
        with self._lock:
            self._stop.set()
            if self._state.under_way:
                self._state = DownloadState()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for at most so many seconds; whether the download has ended by then."""
        thread = self._thread
        if thread:
            thread.join(timeout)
        return not (thread and thread.is_alive())

    def _fetch(self, name: str, stop: Event) -> None:
        def progress(done: int, total: int) -> None:
            self._set(stop, done=done, total=total)

        hub_trouble.cache_clear()  # it may have been mended since the hub was asked last
        try:
            Catalogue.load().fetch(name, self._settings, progress, stop)
        except Stopped:
            pass  # who stopped it has said so already
        except ModelError as error:
            self._set(stop, error=str(error))
        except Exception as error:  # noqa: BLE001 - whoever looks at the state is told
            _LOG.exception("fetching %s failed", name)
            self._set(stop, error=f"{name} could not be fetched ({error}); the log has the details.")
        else:
            self._set(stop, finished=True)

    def _set(self, stop: Event, **values: object) -> None:
        """Change the state, unless this download was stopped."""
        with self._lock:
            if not stop.is_set():
                self._state = replace(self._state, **values)  # type: ignore[arg-type]
