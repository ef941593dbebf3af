"""A folder that is followed while Sequitur runs: new, changed and deleted files, and a list of what became of each."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from threading import Event, Lock, Thread

from watchfiles import watch

from assistant.errors import LibraryError, SequiturError, disk_errors_as
from assistant.library.index import Outcome, add_documents
from assistant.protocols import Progress, silent
from assistant.settings import Settings
from assistant.types import now

_LOG = logging.getLogger(__name__)
# Seconds after which it is looked again whether the folder is there.
POLL_SECONDS = 1.0
HAPPENINGS_MOST = 200
Reading = Callable[[], AbstractContextManager[Progress]]


@dataclass(frozen=True, slots=True)
class Happening:
    """What became of a file, when (UTC, ISO 8601), and why; of the folder where `name` is its path."""

    when: str
    name: str
    what: str
    why: str = ""

    @property
    def time(self) -> datetime:
        """When it was."""
        return datetime.fromisoformat(self.when)


class Happenings:
    """The latest happenings, kept in the data folder. Safe to use from several threads."""

    def __init__(self, settings: Settings) -> None:
        self._file, self._lock = settings.data_dir / "watched.jsonl", Lock()

    @property
    def mark(self) -> int:
        """Another number as soon as something more has happened."""
        try:
            return self._file.stat().st_mtime_ns
        except OSError:
            return 0

    def all(self) -> list[Happening]:
        """The newest first; a line that can't be read is skipped."""
        with self._lock:
            return self._read()[::-1]

    def add(self, outcomes: Iterable[tuple[str, str, str]]) -> None:
        """Keep what became of files: name, what, why. One skipped again for the same reason is not listed again."""
        with self._lock:
            saved_happenings = self._read()
            last_outcomes = {happening.name: (happening.what, happening.why) for happening in saved_happenings}
            new_happenings = [
                Happening(now().isoformat(), *outcome)
                for outcome in outcomes
                if outcome[1] != "skipped" or last_outcomes.get(outcome[0]) != outcome[1:]
            ]
            if new_happenings:
                self._write([*saved_happenings, *new_happenings][-HAPPENINGS_MOST:])

    def remove(self) -> None:
        """Forget all of them.

        Raises:
            LibraryError: the file can't be removed.
        """
        with self._lock, disk_errors_as(LibraryError, f"{self._file} can't be removed", "remove it yourself"):
            self._file.unlink(missing_ok=True)

    def _read(self) -> list[Happening]:
        try:
            lines = self._file.read_text(encoding="utf-8").splitlines()
        except OSError:
            return []
        happenings = []
        for line in lines:
            try:
                happenings.append(Happening(**json.loads(line)))
            except (ValueError, TypeError):
                _LOG.warning("a line of %s can't be read", self._file)
        return happenings

    def _write(self, happenings: Iterable[Happening]) -> None:
        partial_file = self._file.with_suffix(".part")
        try:
            partial_file.write_text(
                "".join(json.dumps(asdict(happening)) + "\n" for happening in happenings), encoding="utf-8"
            )
            partial_file.replace(self._file)
        except OSError as error:
            _LOG.warning("what became of watched files can't be kept: %s", error)


def chosen_folder(settings: Settings) -> Path | None:
    """The folder to follow: what was chosen on the page, else what the settings say; None for none."""
    try:
        folder = json.loads(_choice_file(settings).read_text(encoding="utf-8"))["folder"]
        return Path(folder) if folder else None
    except (OSError, ValueError, KeyError, TypeError):
        return settings.library_folder


def store_choice(folder: str, settings: Settings) -> None:
    """Follow this folder, or none where it is "", whenever Sequitur starts.

    Raises:
        LibraryError: the choice can't be kept.
    """
    file = _choice_file(settings)
    try:
        file.write_text(json.dumps({"folder": folder}), encoding="utf-8")
    except OSError as error:
        raise LibraryError(
            f"{file} can't be written ({error.strerror}), so the folder is followed until Sequitur ends."
        ) from error


def stop_following(settings: Settings) -> None:
    """Follow no folder any more, and forget what became of the files of the one before.

    Raises:
        LibraryError: a file can't be written or removed.
    """
    if chosen_folder(settings):
        store_choice("", settings)
    Happenings(settings).remove()


def _choice_file(settings: Settings) -> Path:
    return settings.data_dir / "watched.json"


class Watch:
    """Follows a folder into a library, in a thread of its own, until it is closed."""

    def __init__(
        self,
        folder: Path,
        library: str,
        settings: Settings,
        reading: Reading = lambda: nullcontext(silent),
        changed: Callable[[], object] = lambda: None,
    ) -> None:
        """Begin to follow.

        Args:
            folder: with all folders in it, but for hidden ones.
            library: its name.
            settings: say where libraries are.
            reading: entered while files are read; gives what is told how far that is.
            changed: called when the library did.

        Raises:
            LibraryError: what Sequitur writes itself is in the folder, or the folder in that.
        """
        self.folder = folder.expanduser().absolute()
        data_dir = settings.data_dir.absolute()
        if data_dir.is_relative_to(self.folder) or self.folder.is_relative_to(data_dir):
            raise LibraryError(f"{folder} holds what Sequitur writes itself; choose a folder of documents alone.")
        self._library, self._settings, self._reading, self._changed = library, settings, reading, changed
        self._happenings, self._stop = Happenings(settings), Event()
        self._thread = Thread(target=self._run, name="watched folder", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Follow no longer; a file that is being read is let go."""
        self._stop.set()
        self._thread.join(10)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                if self.folder.is_dir():
                    self._follow()
                else:
                    self._record_missing_folder()
            except Exception:  # noqa: BLE001 - the thread is to outlive whatever a file or a disk does
                _LOG.exception("following %s failed", self.folder)
            self._stop.wait(POLL_SECONDS)

    def _follow(self) -> None:
        """Follow the folder until it is gone."""
        needs_update = True  # the first time once changes are heard of, so that none is missed meanwhile
        milliseconds = int(1000 * POLL_SECONDS)
        # told of every change, and every so often of none
        for changes in watch(
            self.folder,
            watch_filter=None,
            stop_event=self._stop,
            rust_timeout=milliseconds,
            yield_on_timeout=True,
            raise_interrupt=False,
        ):
            if not self.folder.is_dir():
                return
            if changes or needs_update:
                needs_update = not self._update_library()

    def _update_library(self) -> bool:
        """Bring the library up to date; whether that was possible."""
        try:
            with self._reading() as progress:
                outcomes = add_documents(self._library, [self.folder], self._settings, progress, stop=self._stop)
        except SequiturError as error:
            self._happenings.add([(str(self.folder), "skipped", str(error))])
            return False
        changed_outcomes = [outcome for outcome in outcomes if outcome.status != "unchanged"]
        if not self._stop.is_set():
            self._happenings.add(map(_fields_of, changed_outcomes))
        if any(outcome.status != "skipped" for outcome in changed_outcomes):
            self._changed()
        return True

    def _record_missing_folder(self) -> None:
        why = "the folder is not there; its documents stay, and it is followed again once it is back"
        self._happenings.add([(str(self.folder), "skipped", why)])


def _fields_of(outcome: Outcome) -> tuple[str, str, str]:
    return outcome.name, outcome.status, outcome.reason
