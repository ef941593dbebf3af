"""The files that users uploaded, kept beside the index of their library under the hashes of their content.

The index says which hash a document has, so a file that was written before its commit, or left after one, is nobody's
original, and the next change sweeps it away. They are never opened here.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from contextlib import suppress
from hashlib import file_digest
from pathlib import Path
from tempfile import NamedTemporaryFile

from assistant.errors import LibraryError

FOLDER = "originals"


def is_intact(path: Path) -> bool:
    """Whether a copy that is kept is what it was: its name is the SHA-256 of its content."""
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest() == path.name
    except OSError:
        return False


class Originals:
    """Those of the library whose index is in `folder`. Change them while the library is locked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER

    def path(self, digest: str) -> Path | None:
        """The file whose content has this SHA-256, or None where it isn't kept."""
        path = self._folder / digest
        return path if digest and path.is_file() else None

    def is_intact(self, digest: str) -> bool:
        """Whether the file with this SHA-256 is kept, and nothing of it is missing or changed."""
        path = self.path(digest)
        return path is not None and is_intact(path)

    def store(self, file: Path, digest: str) -> None:
        """Keep a copy, which is there whole or not at all.

        Raises:
            LibraryError: the disk is full or can't be written; the message is the reason.
        """
        if self.is_intact(digest):
            return
        try:
            self._folder.mkdir(exist_ok=True)
            with NamedTemporaryFile(dir=self._folder, delete=False) as copy, file.open("rb") as content:
                shutil.copyfileobj(content, copy)
                copy.flush()
                os.fsync(copy.fileno())
            Path(copy.name).replace(self._folder / digest)
        except OSError as error:
            raise LibraryError(f"no copy of it can be kept ({error.strerror}); free some space") from error

    def sweep(self, digests: Collection[str]) -> None:
        """Remove all but those of these documents."""
        with suppress(FileNotFoundError):  # nothing was ever kept
            for path in self._folder.iterdir():
                if path.name not in digests:
                    path.unlink()
