"""Puts back what a backup holds: all of it is unpacked and checked beside its place before anything is replaced.

What was there is kept aside. Programs may use the data folder meanwhile: they can change no library while all of them
are replaced, nor the database, whose rows are replaced in one transaction. What they acknowledge before that is in what
is kept aside, and what they acknowledge later is in the data folder.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.filesize import decimal

from assistant.errors import BackupError, SettingsError, StoreError
from assistant.library.shelves import locked
from assistant.llm.known_models import FILE as MODELS_FILE
from assistant.llm.known_models import file_lock
from assistant.settings import Settings, load
from assistant.store import database
from assistant.store.migrate import VERSION
from assistant.store.replacement import replaced_content
from assistant.types import now
from assistant.upkeep.archive import DATABASE, LIBRARIES, MODELS, SETTINGS, Archive, Manifest
from assistant.upkeep.backup import disk_error, kept_database, own_libraries

RESTORED_SETTINGS = "settings-of-backup.toml"
LOCK_SECONDS = 10.0  # seconds for which a library may go on being changed


@dataclass(frozen=True, slots=True)
class RestoredBackup:
    """What was restored. `kept` are the folders with what was there before; `settings` is where the backup's lie."""

    manifest: Manifest
    kept: tuple[Path, ...]
    settings: Path | None


@dataclass(frozen=True, slots=True)
class _Move:
    source: Path
    target: Path


def restore_backup(file: Path, settings: Settings, settings_file: Path) -> RestoredBackup:
    """Put back a backup: database, libraries and models as they were in it, wherever the settings want them.

    Args:
        file: what `write_backup` wrote.
        settings: say where everything goes.
        settings_file: where the settings file goes if there is none and it means this data folder; otherwise it is
            laid into the data folder, for a person to compare.

    Raises:
        SequiturError: the file can't be used, a program is changing what would be replaced, or the disk can't be
            written; all is as it was then.
    """
    database_path = kept_database(settings)
    with closing(Archive(file, VERSION)) as archive, ExitStack() as stack:
        try:
            return _restore(archive, settings, database_path, settings_file, stack)
        except OSError as error:
            raise disk_error(error, settings.data_dir) from error


def _restore(
    archive: Archive, settings: Settings, database_path: Path, settings_file: Path, stack: ExitStack
) -> RestoredBackup:
    manifest, database_folder = archive.manifest, database_path.parent
    library_names = own_libraries(settings)
    for library in sorted({*library_names, *manifest.libraries}):
        stack.enter_context(locked(settings.libraries_dir / library, LOCK_SECONDS))
    unpacked = {root: _folder_in(root, stack) for root in (settings.data_dir, database_folder)}
    _check_room(manifest, settings.data_dir, database_path)
    for entry in manifest.files:
        target = unpacked[database_folder if entry.name == DATABASE else settings.data_dir] / entry.name
        target.parent.mkdir(parents=True, exist_ok=True)
        archive.extract(entry, target)
    unpacked_data = unpacked[settings.data_dir]
    settings_target = _settings_target(unpacked_data / SETTINGS, settings, settings_file)
    name = f"before-restore-{now():%Y%m%d-%H%M%S-%f}"
    moves = _library_moves(unpacked_data, name, settings, library_names, manifest)
    moves += [_Move(unpacked_data / SETTINGS, settings_target)] if settings_target else []
    with (
        _moving() as carry_out,
        _database_replaced(unpacked[database_folder] / DATABASE, name, settings, database_path) as database_moves,
        file_lock(settings.data_dir / MODELS_FILE),
    ):
        carry_out(move for move in (*moves, *database_moves) if move.source.exists())
    _shrink(settings)
    aside_folders = tuple(root / name for root in unpacked if (root / name).exists())
    return RestoredBackup(manifest, aside_folders, settings_target)


@contextmanager
def _database_replaced(unpacked: Path, name: str, settings: Settings, database_path: Path) -> Iterator[list[_Move]]:
    """Replace the database when the block ends; yields the moves that do so where nothing can be read from the old."""
    aside_folder = database_path.parent / name
    engine = database.open_sound(settings.database_url)
    if engine is None:
        with database.exclusive_lock(database_path):
            files = [database_path.with_name(f"{database_path.name}{suffix}") for suffix in ("", "-wal", "-shm")]
        yield [*(_Move(file, aside_folder / file.name) for file in files), _Move(unpacked, database_path)]
        return
    try:
        with replaced_content(engine, unpacked, aside_folder / database_path.name):
            yield []
    finally:
        engine.dispose()


def _shrink(settings: Settings) -> None:
    """Remove what was replaced from unused parts of the database's file, unless somebody is writing."""
    with suppress(StoreError):
        engine = database.connect(settings.database_url)
        database.shrink(engine)
        engine.dispose()


def _folder_in(root: Path, stack: ExitStack) -> Path:
    """A new folder, on the disk of `root`, which goes in the end."""
    root.mkdir(parents=True, exist_ok=True)
    return Path(stack.enter_context(TemporaryDirectory(prefix=".restore-", dir=root)))


def _check_room(manifest: Manifest, folder: Path, database_path: Path) -> None:
    copy_bytes = database_path.stat().st_size if database_path.exists() else 0  # of the database, to be kept aside
    needed_bytes, free_bytes = manifest.size + copy_bytes, shutil.disk_usage(folder).free
    if free_bytes < needed_bytes:
        raise BackupError(
            f"The backup takes {decimal(needed_bytes)}, and {folder} has {decimal(free_bytes)} free: make room, or "
            "choose another place with --data-dir; nothing was changed."
        )


def _settings_target(file: Path, settings: Settings, current_file: Path) -> Path | None:
    """Where the settings file of the backup goes; None where it has none, or the one that is there."""
    if not file.exists() or (current_file.exists() and current_file.read_bytes() == file.read_bytes()):
        return None
    try:
        backed_up = load(file)
        is_same_data = (backed_up.data_dir, backed_up.database_url) == (settings.data_dir, settings.database_url)
    except SettingsError:
        is_same_data = False
    return current_file if is_same_data and not current_file.exists() else settings.data_dir / RESTORED_SETTINGS


def _library_moves(
    unpacked: Path, name: str, settings: Settings, library_names: Sequence[str], manifest: Manifest
) -> list[_Move]:
    """Libraries and models: what is there goes to a folder of this name beside it, what was unpacked in its place."""
    aside_folder = settings.data_dir / name
    libraries = (
        move
        for library in sorted({*library_names, *manifest.libraries})
        for move in (
            _Move(settings.libraries_dir / library, aside_folder / LIBRARIES / library),
            _Move(unpacked / LIBRARIES / library, settings.libraries_dir / library),
        )
    )
    files = (settings.data_dir / MODELS_FILE, settings.data_dir / RESTORED_SETTINGS)
    return [
        *libraries,
        *(_Move(file, aside_folder / file.name) for file in files),
        _Move(unpacked / MODELS, settings.data_dir / MODELS_FILE),
    ]


@contextmanager
def _moving() -> Iterator[Callable[[Iterable[_Move]], None]]:
    """Yields what makes moves; where one fails, or anything else before the end, those before it are taken back."""
    completed: list[_Move] = []

    def carry_out(moves: Iterable[_Move]) -> None:
        for move in moves:
            move.target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(move.source, move.target)
            completed.append(move)

    try:
        yield carry_out
    except BaseException:
        for move in reversed(completed):
            shutil.move(move.target, move.source)
        raise
