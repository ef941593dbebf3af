"""Writes a backup while the program may run: nothing that was acknowledged before it is missing.

The database is copied by SQLite's own way for that, at one moment; each library is held still while it is copied. What
can be made again is left out.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import reduce
from io import BytesIO
from operator import getitem
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import IO, Any, cast

import tomlkit

from assistant.errors import BackupError
from assistant.library.shelves import is_library, is_prebuilt, locked
from assistant.library.starter import NAME as STARTER
from assistant.llm.known_models import FILE as MODELS_FILE
from assistant.settings import Settings, secret_settings
from assistant.store import database
from assistant.store.migrate import VERSION
from assistant.types import now
from assistant.upkeep.archive import DATABASE, LIBRARIES, MODELS, SETTINGS, ArchiveWriter, Manifest, is_kept

LOCK_SECONDS = 60.0  # seconds for which a library may go on being changed
# What the data folder holds beside what is kept, by its names there.
DERIVED = (
    "models", f"{LIBRARIES}/{STARTER}", "dense", "corpora", "examples", "likelihoods", "runs", "speeds.json",
)  # fmt: skip
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True, slots=True)
class WrittenBackup:
    """A backup that was written: the bytes of its file, and of what could be made again and was left out."""

    manifest: Manifest
    size: int
    left_out: int


def write_backup(settings: Settings, target: Path, settings_file: Path | None, *, keys: bool = False) -> WrittenBackup:
    """Write all that people told and added to one new file, which only its owner can read.

    Args:
        settings: say where everything is.
        target: the file; it appears under this name once it is whole.
        settings_file: where the settings came from, if from a file.
        keys: whether the keys of servers go with it.

    Raises:
        SequiturError: there is nothing to back up, something can't be read, or the file can't be written.
    """
    source = kept_database(settings)
    if not source.exists():
        raise BackupError(f"There is no database {source}, so there is nothing to back up; check --data-dir.")
    if target.exists():
        raise BackupError(f"{target} is there already; choose another name, or move it away first.")
    with _atomic_file(target) as stream, closing(ArchiveWriter(stream)) as writer:
        with TemporaryDirectory(prefix=".backup-", dir=target.parent) as folder:
            copy = Path(folder) / DATABASE
            database.snapshot(settings.database_url, copy)
            _log_out(copy)
            _add(writer, DATABASE, copy)
        _add_libraries(writer, settings)
        _add_models(writer, settings.data_dir / MODELS_FILE, keys)
        _add_settings(writer, settings_file, keys)
        manifest = writer.finish(now().isoformat(), VERSION, keys)
    derived = [*(settings.data_dir / name for name in DERIVED), *filter(is_prebuilt, _libraries(settings))]
    left_out = sum(map(_size, derived))
    return WrittenBackup(manifest, target.stat().st_size, left_out)


def _log_out(copy: Path) -> None:
    """Leave out who is logged in: who logs out later must not be let in again by what a backup brings back."""
    with closing(sqlite3.connect(copy)) as connection, connection:
        connection.execute("DELETE FROM sessions")


def kept_database(settings: Settings) -> Path:
    """The file of the database that is backed up, whether it is there or not.

    Raises:
        BackupError: it is no file of SQLite.
    """
    file = database.database_file(settings.database_url)
    if file is None:
        raise BackupError(
            "The setting 'database' names no file of SQLite: back that database up with its own program, such as "
            f"pg_dump, and copy the folder {settings.libraries_dir} for the documents."
        )
    return file


def own_libraries(settings: Settings) -> list[str]:
    """The libraries that people made, all users' own among them, sorted."""
    return sorted(folder.name for folder in _libraries(settings) if folder.name != STARTER and not is_prebuilt(folder))


def _libraries(settings: Settings) -> list[Path]:
    folders = settings.libraries_dir.iterdir() if settings.libraries_dir.is_dir() else ()
    return [folder for folder in folders if is_library(folder) and not folder.name.startswith(".")]


def disk_error(error: OSError, path: Path) -> BackupError:
    """The sentence for what could not be written."""
    if error.errno in _FULL:
        return BackupError(f"The disk has no room for {path}: free some space or choose another; nothing was changed.")
    return BackupError(f"{path} can't be written ({error.strerror or error}); choose another place.")


@contextmanager
def _atomic_file(target: Path) -> Iterator[IO[bytes]]:
    """A file that gets its name once it is whole; one that isn't leaves nothing behind."""
    try:
        with NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as partial:
            try:
                yield partial
                partial.flush()
                os.fsync(partial.fileno())
                Path(partial.name).replace(target)
            except BaseException:
                Path(partial.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise disk_error(error, target) from error


def _add_libraries(writer: ArchiveWriter, settings: Settings) -> None:
    for name in own_libraries(settings):
        folder = settings.libraries_dir / name
        with locked(folder, LOCK_SECONDS):
            for file in sorted(folder.rglob("*")):
                member = f"{LIBRARIES}/{name}/{file.relative_to(folder).as_posix()}"
                if is_kept(member) and file.is_file() and file.name != "write.lock":
                    _add(writer, member, file)


def _add_models(writer: ArchiveWriter, file: Path, keys: bool) -> None:
    """What was added and chosen on the page, its keys only where they are wanted."""
    if not file.exists():
        return
    text = _read(file)
    try:
        models = json.loads(text)
        for server in models.get("servers", ()) if not keys else ():
            server["key"] = ""
    except (ValueError, AttributeError, TypeError) as error:
        raise BackupError(f"{file} is damaged, so that no backup was written; mend it, or move it away.") from error
    writer.add(MODELS, BytesIO(json.dumps(models, indent=2).encode()))


def _add_settings(writer: ArchiveWriter, file: Path | None, keys: bool) -> None:
    if file is None:
        return
    text = _read(file).decode()
    if not keys:
        document = tomlkit.parse(text)
        for *sections, name in secret_settings():
            with suppress(KeyError):
                del reduce(getitem, sections, cast("Any", document))[name]
        text = tomlkit.dumps(document)
    writer.add(SETTINGS, BytesIO(text.encode()))


def _add(writer: ArchiveWriter, name: str, file: Path) -> None:
    try:
        source = file.open("rb")
    except OSError as error:
        raise _unreadable(file, error) from error
    with source:
        writer.add(name, source)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: OSError) -> BackupError:
    return BackupError(
        f"{file} can't be read ({error.strerror}), so that no backup was written; check its permissions."
    )


def _size(path: Path) -> int:
    """Bytes of a file, or of all files in a folder; 0 where there is none."""
    total = 0
    for file in (path, *path.rglob("*")):
        with suppress(OSError):
            total += file.stat().st_size if file.is_file() else 0
    return total
