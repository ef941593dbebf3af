"""The vectors that come with Sequitur: those of the starter library, whose encoding would take minutes at first.

A file holds, for each text, the beginning of its hash, its vector as whole numbers from -127 to 127, and their scale.
What isn't in it is encoded as ever, so that a text may change, and only the file of the encoder that made it is used.
`python -m assistant train vectors` writes it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from assistant.errors import DataError, disk_errors_as
from assistant.protocols import Progress
from assistant.retrieve.encoded import BATCH, key_of
from assistant.retrieve.encoder_pieces import Encoder

_LOG = logging.getLogger(__name__)
SHIPPED = Path(__file__).with_name("shipped")
_STEPS = 127
# Digits of a text's hash, 64 bits of it: with some ten thousand texts none is taken for another.
_DIGITS = 16


class KnownEncoder:
    """An encoder that looks texts up in a file before it encodes them.

    Without the file, or with one that is damaged, it encodes all.
    """

    def __init__(self, encoder: Encoder, file: Path) -> None:
        self._encoder, self._file = encoder, file
        self.name, self.window, self.count = encoder.name, encoder.window, encoder.count

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), dimension)."""
        rows = [self._row_by_key.get(_key(text)) for text in texts]
        missing = [n for n, row in enumerate(rows) if row is None]
        if len(missing) == len(texts):
            return self._encoder.encode(texts)
        vectors = np.stack([np.zeros_like(self._vectors[0]) if row is None else self._vectors[row] for row in rows])
        if missing:
            vectors[missing] = self._encoder.encode([texts[n] for n in missing])
        return vectors

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), dimension)."""
        return self._encoder.encode_queries(texts)

    @cached_property
    def _row_by_key(self) -> dict[int, int]:
        return {int(key): row for row, key in enumerate(self._contents[0])}

    @property
    def _vectors(self) -> NDArray[np.float32]:
        return self._contents[1]

    @cached_property
    def _contents(self) -> tuple[NDArray[np.uint64], NDArray[np.float32]]:
        try:
            with np.load(self._file, allow_pickle=False) as file:
                return file["keys"], file["vectors"] * file["scales"].astype(np.float32)[:, None]
        except (OSError, ValueError, LookupError, EOFError, BadZipFile) as error:
            _LOG.warning("the vectors in %s can't be used, so all are made (%s)", self._file, error)
            return np.zeros(0, np.uint64), np.zeros((0, 0), np.float32)


def with_known_vectors(encoder: Encoder) -> Encoder:
    """The encoder, looking up what comes with Sequitur if that was made by it."""
    file = SHIPPED / f"{encoder.name}.npz"
    return KnownEncoder(encoder, file) if file.exists() else encoder


def write(file: Path, texts: Iterable[str], encoder: Encoder, progress: Progress) -> int:
    """Encode the texts and write the file; how many there are.

    Raises:
        DataError: the file can't be written.
    """
    distinct = sorted(set(texts))
    batches = list[NDArray[np.float32]]()
    for start in range(0, len(distinct), BATCH):
        progress(start, len(distinct))
        batches.append(encoder.encode(distinct[start : start + BATCH]))
    vectors = np.concatenate(batches)
    scales = (np.abs(vectors).max(axis=1) / _STEPS).astype(np.float16)
    quantised = np.rint(vectors / scales.astype(np.float32)[:, None]).clip(-_STEPS, _STEPS).astype(np.int8)
    keys = np.array([_key(text) for text in distinct], dtype=np.uint64)
    with disk_errors_as(DataError, f"{file} can't be written"):
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(file, keys=keys, vectors=quantised, scales=scales)
    return len(distinct)


def _key(text: str) -> int:
    return int(key_of(text)[:_DIGITS], 16)
