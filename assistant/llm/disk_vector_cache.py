"""Embeddings cached on disk, so that the same hundreds of examples needn't be encoded at every start."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_LOG = logging.getLogger(__name__)

Vectors = NDArray[np.float32]


class DiskVectorCache:
    """One file for each list of texts, valid as long as the texts and the files of the model stay the same.

    Args:
        folder: where the vectors are kept; made where it is missing.
        model: the folder of the model that encodes.
    """

    def __init__(self, folder: Path, model: Path) -> None:
        self._folder = folder
        self._model = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in sorted(model.iterdir())]
        self._used: set[Path] = set()

    def of(self, texts: Sequence[str], encode: Callable[[Sequence[str]], Vectors]) -> Vectors:
        """The vectors of the texts, shape (len(texts), dimension), encoded only if they are not cached yet.

        If the folder can't be written, the vectors are encoded each time.
        """
        name = sha256(json.dumps([self._model, list(texts)]).encode()).hexdigest()
        file = self._folder / f"{name[:32]}.npy"
        self._used.add(file)
        with suppress(OSError, ValueError, EOFError):  # a file that was cut short is made again
            vectors: Vectors = np.load(file, allow_pickle=False)
            if len(vectors) == len(texts):
                return vectors
        vectors = encode(texts)
        try:
            self._write(file, vectors)
        except OSError as error:
            _LOG.warning("vectors can't be kept in %s (%s)", self._folder, error)
        return vectors

    def tidy(self) -> None:
        """Delete the files that this process has not asked for: those of earlier versions."""
        with suppress(OSError):
            for file in set(self._folder.glob("*.npy")) - self._used:
                file.unlink()

    def _write(self, file: Path, vectors: Vectors) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(f".{os.getpid()}.new")
        with partial.open("wb") as stream:
            np.save(stream, vectors, allow_pickle=False)
        partial.replace(file)
