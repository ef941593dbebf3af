"""Libraries by name: a folder each under `settings.libraries_dir`, searched alone or together.

Names are lower-case letters, digits, - and _. A name that begins with `user-` is one user's own; nobody else sees it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from filelock import FileLock, Timeout

from assistant.errors import LibraryError, SettingsError, disk_errors_as
from assistant.retrieve.bm25 import Bm25, no_index_in
from assistant.retrieve.opensearch import Cluster
from assistant.settings import Settings
from assistant.store.database import connect, is_postgres

OWN_PREFIX = "user-"
PREBUILT = "prebuilt.md5"  # stands in the folder of a library that was fetched whole, and says of which archive
LOCK_SECONDS = 10.0
FOREVER = -1.0
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def own_library(user: str) -> str:
    """The name of the library that holds this user's own documents."""
    return OWN_PREFIX + sha256(user.encode("utf-8", "replace")).hexdigest()[:16]


def library_folder(name: str, settings: Settings) -> Path:
    """Where a library's index is, or would be.

    Raises:
        LibraryError: the name can't be a library's.
    """
    if not _NAME.fullmatch(name):
        raise LibraryError(f"'{name[:70]}' can't name a library; use up to 64 lower-case letters, digits, - and _.")
    return settings.libraries_dir / name


def is_library(folder: Path) -> bool:
    """Whether an index was ever finished in this folder; whether it can be read is another question."""
    return folder.is_dir() and any(folder.glob("segments_*"))


def is_prebuilt(folder: Path) -> bool:
    """Whether the library in this folder was fetched whole, as somebody else made it, and can be fetched again."""
    return (folder / PREBUILT).exists()


def last_change(name: str, settings: Settings) -> str:
    """Names the last change of a library, which is not opened for that; "" where there is none.

    Raises:
        LibraryError: the name can't be a library's.
    """
    return " ".join(sorted(file.name for file in library_folder(name, settings).glob("segments_*")))


def library_names(settings: Settings, user: str | None = None) -> list[str]:
    """The libraries there are, in alphabetical order; of the users' own, only that of `user`."""
    folders = settings.libraries_dir.iterdir() if settings.libraries_dir.is_dir() else ()
    own_name = own_library(user) if user is not None else ""
    names = sorted(folder.name for folder in folders if _NAME.fullmatch(folder.name) and is_library(folder))
    return [name for name in names if not name.startswith(OWN_PREFIX) or name == own_name]


def check_is_built(name: str, settings: Settings) -> None:
    """See that the library of this name can be opened, as far as can be told without opening it.

    Raises:
        LibraryError: no index was ever finished there; the message says what to do.
    """
    folder = library_folder(name, settings)
    if not is_library(folder):
        raise LibraryError(no_index_in(folder))


def open_library(name: str, settings: Settings) -> Bm25:
    """The library of this name, ready to search.

    Raises:
        LibraryError: there is none, or it can't be read; the message says what to do.
    """
    return _open((library_folder(name, settings),), settings)


def open_shelves(name: str, user: str, settings: Settings) -> Bm25:
    """The library of this name together with the user's own documents, where there are any.

    Raises:
        LibraryError: there is no such library for this user, or one can't be read.
    """
    return _open(
        tuple(library_folder(shelf_name, settings) for shelf_name in shelf_names(name, user, settings)), settings
    )


def open_all(user: str, settings: Settings) -> Bm25:
    """All libraries that this user may search, as one.

    Raises:
        LibraryError: there is none yet, or one can't be read.
    """
    names = library_names(settings, user)
    if not names:
        raise LibraryError("There is nothing to search yet; add documents, or wait until the starter library is made.")
    return _open(tuple(library_folder(name, settings) for name in names), settings)


def is_changing(name: str, settings: Settings) -> bool:
    """Whether this library is being changed right now, by whichever process.

    Raises:
        LibraryError: the name can't be a library's.
    """
    folder = library_folder(name, settings)
    try:
        with FileLock(_lock_of(folder), timeout=0):
            return False
    except Timeout:
        return True
    except OSError:  # a disk that nobody can write to
        return False


def shelf_names(name: str, user: str, settings: Settings) -> list[str]:
    """The libraries that `open_shelves` opens.

    Raises:
        LibraryError: the library of this name is another user's own.
    """
    own_name = own_library(user)
    if name.startswith(OWN_PREFIX) and name != own_name:
        raise LibraryError(f"There is no library '{name}'; choose one of: {', '.join(library_names(settings, user))}.")
    return list(dict.fromkeys([name, own_name] if is_library(library_folder(own_name, settings)) else [name]))


def remove_library(name: str, settings: Settings) -> None:
    """Delete a library and all that is in it.

    Raises:
        LibraryError: there is none, it is being updated, or it can't be deleted.
    """
    folder = library_folder(name, settings)
    with locked(folder):
        if not is_library(folder):
            raise LibraryError(f"There is no library '{name}'; python -m assistant index --list shows those there are.")
        _delete(folder, settings)


def remove_own(user: str, settings: Settings) -> None:
    """Delete the user's own documents, where there are any, and what was made of them; the caller holds their lock.

    Raises:
        LibraryError: they can't be deleted.
    """
    folder = library_folder(own_library(user), settings)
    if folder.exists():
        _delete(folder, settings)


def _delete(folder: Path, settings: Settings) -> None:
    if settings.retrieve.opensearch.address:
        Cluster(settings.retrieve).forget(folder.name)
    with disk_errors_as(LibraryError, f"{folder} can't be deleted", "check its permissions"):
        for vectors_folder in settings.data_dir.glob(f"dense/*/{folder.name}"):
            shutil.rmtree(vectors_folder)
        remove_vectors(folder.name, settings)
        shutil.rmtree(folder)
    _cached_index.cache_clear()  # or whoever makes one of this name finds what is held open of the old


def remove_vectors(name: str, settings: Settings) -> None:
    """Delete what a database has of the vectors of a library.

    Raises:
        SequiturError: it can't be reached or written.
    """
    if is_postgres(settings.database_url):
        pgvector, engine = pgvector_module(), connect(settings.database_url)
        try:
            pgvector.remove(engine, name)
        finally:
            engine.dispose()


def pgvector_module() -> ModuleType:
    """`assistant.retrieve.pgvector`, which needs what most people don't install.

    Raises:
        SettingsError: that is not installed.
    """
    try:
        from assistant.retrieve import pgvector  # noqa: PLC0415
    except ImportError as error:
        raise SettingsError(
            "Vectors in PostgreSQL need the package pgvector: run `pip install -r requirements-postgres.txt`."
        ) from error
    return pgvector


@contextmanager
def locked(folder: Path, patience: float = LOCK_SECONDS) -> Iterator[None]:
    """Be the only one who changes this library, in all processes.

    Args:
        folder: the library's.
        patience: seconds to wait for others; whoever finds it built by them then needs no other turn.

    Raises:
        LibraryError: somebody else is at it, or the disk can't be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(_lock_of(folder), timeout=patience)
        lock.acquire()
    except Timeout as error:
        raise LibraryError(f"The library '{folder.name}' is being updated elsewhere; try again in a minute.") from error
    except OSError as error:
        raise LibraryError(
            f"{folder.parent} can't be written ({error.strerror}); free space or set data_dir."
        ) from error
    try:
        yield
    finally:
        lock.release()


def _lock_of(folder: Path) -> Path:
    return folder.parent / f".{folder.name}.lock"


def _open(folders: tuple[Path, ...], settings: Settings) -> Bm25:
    return _cached_index(folders, settings.retrieve.k1, settings.retrieve.b)


@lru_cache(maxsize=64)
def _cached_index(folders: tuple[Path, ...], k1: float, b: float) -> Bm25:
    """Opening costs a search or ten, and a searcher sees updates by itself; so it is kept."""
    return Bm25(*folders, k1=k1, b=b)
