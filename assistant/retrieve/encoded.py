"""The vectors of all texts of a library that were encoded, kept as they come: no text is encoded twice.

They stand in `vectors.f32`, and the hashes of their texts, in the same order, in `keys.txt`. Encoding goes on from
there after an interruption.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from assistant.errors import LibraryError
from assistant.protocols import Embedder, Progress

BATCH = 64
SLICE = 10_000


class VectorStore:
    """Vectors by the hash of their text, appended as they are encoded. What a crash left half written is cut off."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        self._vectors, self._keys = folder / "vectors.f32", folder / "keys.txt"
        self._embedder = embedder
        self.dimension = int(embedder.encode([" "]).shape[1])
        self._check(folder / "encoder.json")
        lines = self._keys.read_text("ascii", "replace").split("\n") if self._keys.exists() else []
        complete_count = (self._vectors.stat().st_size if self._vectors.exists() else 0) // self._width
        self._rows = {key: row for row, key in enumerate(lines[:-1][:complete_count])}
        if self._vectors.exists():
            os.truncate(self._vectors, len(self._rows) * self._width)
        if lines != [*self._rows, ""]:
            self._write_keys()

    def __contains__(self, key: object) -> bool:
        return key in self._rows

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def _width(self) -> int:
        return 4 * self.dimension

    def encode(self, texts: dict[str, str], progress: Progress) -> None:
        """Add the vectors of all texts that are not there yet."""
        missing = [key for key in texts if key not in self._rows]
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            vectors = self._embedder.encode([texts[key] for key in batch])
            with self._vectors.open("ab") as file:
                file.write(np.ascontiguousarray(vectors, dtype="<f4").tobytes())
                flush_to_disk(file)  # before a key vouches for them
            with self._keys.open("a", encoding="ascii") as file:
                file.write("".join(f"{key}\n" for key in batch))
            self._rows |= {key: len(self._rows) + n for n, key in enumerate(batch)}
            progress(start + len(batch), len(missing))

    def slices(self, keys: Sequence[str]) -> Iterator[NDArray[np.float32]]:
        """The vectors of these texts in order, some at a time."""
        if not keys:
            return
        stored = np.memmap(self._vectors, dtype="<f4", mode="r").reshape(-1, self.dimension)
        rows = [self._rows[key] for key in keys]
        for start in range(0, len(rows), SLICE):
            yield np.ascontiguousarray(stored[rows[start : start + SLICE]])

    def forget_all_but(self, keys: Sequence[str]) -> None:
        """Drop the vectors of other texts once they are the most. Killed meanwhile, it loses some, but mixes none."""
        wanted_keys = set(keys)
        kept_keys = [key for key in self._rows if key in wanted_keys]
        if 2 * len(kept_keys) >= len(self._rows):
            return
        part = self._vectors.with_suffix(".part")
        with part.open("wb") as file:
            for vectors in self.slices(kept_keys):
                file.write(vectors.tobytes())
            flush_to_disk(file)
        self._keys.unlink()
        part.replace(self._vectors)
        self._rows = {key: row for row, key in enumerate(kept_keys)}
        self._write_keys()

    def _write_keys(self) -> None:
        write_atomically(self._keys, "".join(f"{key}\n" for key in self._rows))

    def _check(self, file: Path) -> None:
        expected = json.dumps({"encoder": self._embedder.name, "dimension": self.dimension})
        if not file.exists():
            write_atomically(file, expected)
        elif file.read_text("utf-8", "replace") != expected:
            raise LibraryError(
                f"The vectors in {file.parent} are of another encoder; remove the folder to start again."
            )


def key_of(text: str) -> str:
    """The key of a text's vector: the SHA-256 hash of the text."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()


def flush_to_disk(file: BinaryIO) -> None:
    """Flush a file to the disk, so that what was written survives a power cut."""
    file.flush()
    os.fsync(file.fileno())


def write_atomically(file: Path, text: str) -> None:
    """Write a file whole, or leave what was there."""
    part = file.with_name(f"{file.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(file)
