"""Puts back what a backup holds: all of it is unpacked and checked beside its place before anything is replaced.

What was there is moved aside and kept. A program that is up keeps its data folder from being replaced.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.filesize import decimal

from assistant.errors import BackupError, SettingsError
from assistant.library.shelves import locked
from assistant.llm.known_models import FILE as MODELS_FILE
from assistant.settings import Settings, load
from assistant.store import database
from assistant.store.migrate import VERSION
from assistant.types import now
from assistant.upkeep.archive import DATABASE, LIBRARIES, MODELS, SETTINGS, Archive, Manifest
from assistant.upkeep.backup import disk_error, kept_database, own_libraries

ASIDE = "settings-of-backup.toml"
_WAIT = 1.0  # seconds for which a library may go on being changed


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored. `kept` are the folders with what was there before; `settings` is where the backup's lie."""

    manifest: Manifest
    kept: tuple[Path, ...]
    settings: Path | None


@dataclass(frozen=True, slots=True)
class _Move:
    source: Path
    target: Path


def restore_backup(file: Path, settings: Settings, settings_place: Path) -> Restored:
    """Put back a backup: database, libraries and models as they were in it, wherever the settings want them.

    Args:
        file: what `write_backup` wrote.
        settings: say where everything goes.
        settings_place: where the settings file goes if there is none and it means this data folder; otherwise it is
            laid into the data folder, for a person to compare.

    Raises:
        SequiturError: the file can't be used, a program uses what would be replaced, or the disk can't be written;
            all is as it was then.
    """
    database_place = kept_database(settings)
    with closing(Archive(file, VERSION)) as archive, ExitStack() as stack:
        try:
            return _restore(archive, settings, database_place, settings_place, stack)
        except OSError as error:
            raise disk_error(error, settings.data_dir) from error


def _restore(
    archive: Archive, settings: Settings, database_place: Path, settings_place: Path, stack: ExitStack
) -> Restored:
    manifest, beside = archive.manifest, database_place.parent
    own = own_libraries(settings)
    for library in {*own, *manifest.libraries}:
        stack.enter_context(locked(settings.libraries_dir / library, _WAIT))
    unpacked = {root: _folder_in(root, stack) for root in (settings.data_dir, beside)}
    _check_room(manifest, settings.data_dir)
    with database.unused(database_place):
        for entry in manifest.files:
            to = unpacked[beside if entry.name == DATABASE else settings.data_dir] / entry.name
            to.parent.mkdir(parents=True, exist_ok=True)
            archive.extract(entry, to)
    mine = unpacked[settings.data_dir]
    settings_target = _settings_target(mine / SETTINGS, settings, settings_place)
    fresh = [
        *(_Move(mine / LIBRARIES / name, settings.libraries_dir / name) for name in manifest.libraries),
        _Move(mine / MODELS, settings.data_dir / MODELS_FILE),
        _Move(unpacked[beside] / DATABASE, database_place),
        *([_Move(mine / SETTINGS, settings_target)] if settings_target else []),
    ]
    name = f"before-restore-{now():%Y%m%d-%H%M%S-%f}"
    aside = _aside(name, settings, database_place, own)
    _carry_out([move for move in (*aside, *fresh) if move.source.exists()])
    kept = tuple(root / name for root in unpacked if (root / name).exists())
    return Restored(manifest, kept, settings_target)


def _folder_in(root: Path, stack: ExitStack) -> Path:
    """A new folder, on the disk of `root`, which goes in the end."""
    root.mkdir(parents=True, exist_ok=True)
    return Path(stack.enter_context(TemporaryDirectory(prefix=".restore-", dir=root)))


def _check_room(manifest: Manifest, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < manifest.size:
        raise BackupError(
            f"The backup takes {decimal(manifest.size)}, and {folder} has {decimal(free)} free: make room, or choose "
            "another place with --data-dir; nothing was changed."
        )


def _settings_target(file: Path, settings: Settings, place: Path) -> Path | None:
    """Where the settings file of the backup goes; None where it has none, or the one that is there."""
    if not file.exists() or (place.exists() and place.read_bytes() == file.read_bytes()):
        return None
    try:
        meant = load(file)
        here = (meant.data_dir, meant.database_url) == (settings.data_dir, settings.database_url)
    except SettingsError:
        here = False
    return place if here and not place.exists() else settings.data_dir / ASIDE


def _aside(name: str, settings: Settings, database_place: Path, libraries: Sequence[str]) -> list[_Move]:
    """Where everything goes that a backup replaces: to a folder of this name beside it."""
    files = [settings.data_dir / MODELS_FILE, settings.data_dir / ASIDE]
    files += [database_place.with_name(f"{database_place.name}{end}") for end in ("", "-wal", "-shm")]
    moves = [_Move(file, file.parent / name / file.name) for file in files]
    kept = settings.data_dir / name
    return [*moves, *(_Move(settings.libraries_dir / one, kept / LIBRARIES / one) for one in libraries)]


def _carry_out(moves: Sequence[_Move]) -> None:
    """Make all moves, or none: where one fails, those before it are taken back."""
    done: list[_Move] = []
    try:
        for move in moves:
            move.target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(move.source, move.target)
            done.append(move)
    except BaseException:
        for move in reversed(done):
            shutil.move(move.target, move.source)
        raise
