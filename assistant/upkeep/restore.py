"""Puts back what a backup holds: all of it is unpacked and checked beside its place before anything is replaced.

What was there is moved aside and kept. A program that is up keeps its data folder from being replaced.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from assistant.errors import BackupError, SettingsError
from assistant.library.shelves import locked
from assistant.llm.known import FILE as MODELS_FILE
from assistant.settings import Settings, load
from assistant.store import database
from assistant.types import now
from assistant.upkeep.archive import DATABASE, LIBRARIES, MODELS, SETTINGS, Archive, Manifest
from assistant.upkeep.backup import disk_error, kept_database, own_libraries

ASIDE = "settings-of-backup.toml"
_WAIT = 1.0  # seconds for which a library may go on being changed


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored. `kept` are the folders with what was there before; `settings` is where those now lie."""

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
            laid into the data folder for a person to compare.

    Raises:
        SequiturError: the file can't be used, a program uses what would be replaced, or the disk can't be written.
            Nothing has changed then.
    """
    place = kept_database(settings)
    with closing(Archive(file, database.VERSION)) as archive:
        try:
            return _restore(archive, settings, place, settings_place)
        except OSError as error:
            raise disk_error(error, settings.data_dir) from error


def _restore(archive: Archive, settings: Settings, place: Path, settings_place: Path) -> Restored:
    manifest = archive.manifest
    for root in {settings.data_dir, place.parent}:
        root.mkdir(parents=True, exist_ok=True)
    _check_room(manifest, settings.data_dir)
    libraries = sorted({*own_libraries(settings), *manifest.libraries})
    with ExitStack() as stack:
        for name in libraries:
            stack.enter_context(locked(settings.libraries_dir / name, _WAIT))
        unpacked = {
            root: Path(stack.enter_context(TemporaryDirectory(prefix=".restore-", dir=root)))
            for root in {settings.data_dir, place.parent}
        }
        with database.unused(place):
            for entry in manifest.files:
                to = unpacked[place.parent if entry.name == DATABASE else settings.data_dir] / entry.name
                to.parent.mkdir(parents=True, exist_ok=True)
                archive.extract(entry, to)
        mine, other = unpacked[settings.data_dir], unpacked[place.parent]
        target = _settings_target(mine / SETTINGS, settings, settings_place)
        fresh = [
            *(_Move(mine / LIBRARIES / name, settings.libraries_dir / name) for name in manifest.libraries),
            _Move(mine / MODELS, settings.data_dir / MODELS_FILE),
            _Move(mine / SETTINGS, target),
            _Move(other / DATABASE, place),
        ]
        fresh = [move for move in fresh if move.source.exists()]
        old = list(_aside(settings, place))
        _carry_out([*old, *fresh])
    kept = sorted({_root(move.target, settings, place) for move in old})
    return Restored(manifest, tuple(kept), target if SETTINGS in {entry.name for entry in manifest.files} else None)
