"""The file of a backup: a ZIP archive with a manifest of the names, sizes and SHA-256 of all that it holds.

    sequitur.sqlite3              facts, conversations, logins, hashes of tokens
    libraries/NAME/FILE           documents as they are indexed, a folder a library
    libraries/NAME/originals/...  the files that users uploaded, under the SHA-256 of each
    models.json, settings.toml    where there are any
    manifest.json                 `Manifest`

The hashes tell damage, not who made an archive: whoever can change a file of it can change the manifest, too.
"""

from __future__ import annotations

import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import IO
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from assistant.errors import BackupError
from assistant.library.originals import FOLDER as ORIGINALS

FORMAT = 2  # since the second, uploaded files are in it
DATABASE, MODELS, SETTINGS, LIBRARIES, MANIFEST = (
    "sequitur.sqlite3", "models.json", "settings.toml", "libraries", "manifest.json",
)  # fmt: skip
LONGEST_MANIFEST = 64 * 2**20  # bytes
_CHUNK_BYTES = 2**20
_OWNER_ONLY = 0o600
# All that a backup may hold, so that no name leads out of the folder that it is restored into.
_NAMES = re.compile(
    rf"{re.escape(DATABASE)}|{re.escape(MODELS)}|{re.escape(SETTINGS)}"
    rf"|{LIBRARIES}/[a-z0-9][a-z0-9_-]{{0,63}}/(?:[A-Za-z0-9_][A-Za-z0-9_.]{{0,99}}|{ORIGINALS}/[0-9a-f]{{64}})"
)


class Entry(BaseModel):
    """A file of the archive; `size` in bytes, `sha256` in hexadecimal digits."""

    model_config = ConfigDict(frozen=True)

    name: str
    size: int = Field(ge=0)
    sha256: str


class Version(BaseModel):
    """Which programs can read an archive: the `format` of the archive, and the `tables` of its database."""

    model_config = ConfigDict(frozen=True)

    format: int
    tables: int


class Manifest(Version):
    """What an archive says of itself. `made` is ISO 8601; `keys` says whether it holds keys of servers."""

    made: str
    keys: bool
    files: tuple[Entry, ...]

    @property
    def size(self) -> int:
        """Bytes of all its files together."""
        return sum(entry.size for entry in self.files)

    @property
    def libraries(self) -> list[str]:
        """The names of the libraries in it, sorted."""
        return sorted({entry.name.split("/")[1] for entry in self.files if entry.name.startswith(f"{LIBRARIES}/")})


class ArchiveWriter:
    """Writes an archive to an open file."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._zip = ZipFile(stream, "w", ZIP_DEFLATED)
        self._entries: list[Entry] = []

    def add(self, name: str, source: IO[bytes]) -> None:
        """Add what can be read from `source`.

        Raises:
            OSError: it can't be read, or the archive can't be written.
        """
        digest, size = sha256(), 0
        with self._zip.open(_member(name), "w", force_zip64=True) as target:
            while piece := source.read(_CHUNK_BYTES):
                digest.update(piece)
                size += len(piece)
                target.write(piece)
        self._entries.append(Entry(name=name, size=size, sha256=digest.hexdigest()))

    def finish(self, made: str, tables: int, keys: bool) -> Manifest:
        """Write the manifest and the end of the archive.

        Raises:
            OSError: it can't be written.
        """
        manifest = Manifest(format=FORMAT, tables=tables, made=made, keys=keys, files=tuple(self._entries))
        self._zip.writestr(_member(MANIFEST), manifest.model_dump_json(indent=1))
        self._zip.close()
        return manifest

    def close(self) -> None:
        """Let go of the file, whether the archive is finished or can't be."""
        with suppress(OSError, ValueError):
            self._zip.close()


class Archive:
    """An archive that is read; its manifest was compared with what it holds."""

    def __init__(self, file: Path, tables: int) -> None:
        """`tables` is the newest version of the database that this program knows.

        Raises:
            BackupError: it can't be read, is damaged, of a newer version, or no backup.
        """
        self._file = file
        with self._reading():
            self._zip = ZipFile(file)
        try:
            self.manifest = self._manifest(tables)
        except BaseException:
            self._zip.close()
            raise

    def close(self) -> None:
        """Let go of the file."""
        self._zip.close()

    def extract(self, entry: Entry, destination: Path) -> None:
        """Write a file of the archive to the disk, for its owner alone, once it is whole.

        Raises:
            BackupError: it is not what the manifest says.
            OSError: `destination` can't be written.
        """
        digest, size = sha256(), 0
        with open(destination, "xb", opener=lambda path, flags: os.open(path, flags, _OWNER_ONLY)) as target:
            for piece in self._pieces(entry.name):
                digest.update(piece)
                size += len(piece)
                if size > entry.size:
                    break
                target.write(piece)
            target.flush()
            os.fsync(target.fileno())
        if (size, digest.hexdigest()) != (entry.size, entry.sha256):
            raise self._damaged(f"'{entry.name}' is not what it was")

    def _pieces(self, name: str) -> Iterator[bytes]:
        with self._reading(), self._zip.open(name) as source:
            while piece := source.read(_CHUNK_BYTES):
                yield piece

    def _manifest(self, tables: int) -> Manifest:
        name_counts = Counter(self._zip.namelist())
        if name_counts[MANIFEST] != 1:
            raise BackupError(f"{self._file} is no backup of Sequitur; name a file that `backup` wrote.")
        if self._zip.getinfo(MANIFEST).file_size > LONGEST_MANIFEST:
            raise self._damaged("its manifest is too long")
        text = b"".join(self._pieces(MANIFEST))
        try:
            version = Version.model_validate_json(text)
            if version.format > FORMAT or version.tables > tables:
                raise BackupError(f"{self._file} was written by a newer version of the program; update this one first.")
            manifest = Manifest.model_validate_json(text)
        except ValidationError as error:
            raise self._damaged("its manifest can't be read") from error
        for name in name_counts:
            if name != MANIFEST and not _NAMES.fullmatch(name):
                raise BackupError(f"{self._file} holds '{name[:100]}', which no backup has; don't use it.")
        if name_counts != Counter([MANIFEST, *(entry.name for entry in manifest.files)]):
            raise self._damaged("it does not hold what its manifest names")
        return manifest

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise BackupError(f"{self._file} can't be read ({error.strerror or error}); name another file.") from error
        except (BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, zlib.error) as error:
            raise self._damaged("it was cut short, or is no backup") from error

    def _damaged(self, reason: str) -> BackupError:
        return BackupError(f"{self._file} is damaged ({reason}), and nothing was changed; use another copy of it.")


def is_kept(name: str) -> bool:
    """Whether a file of this name may be in an archive."""
    return _NAMES.fullmatch(name) is not None


def _member(name: str) -> ZipInfo:
    info = ZipInfo(name)
    info.compress_type = ZIP_DEFLATED
    info.external_attr = _OWNER_ONLY << 16
    return info
