"""Vectors of texts that stay the same, kept on disk: hundreds of examples needn't be encoded at every start."""

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


class KeptVectors:
    """A file for each list of texts. It is found again as long as the texts and the files of the model are the same.

    Args:
        folder: where the vectors are kept; made where it is missing.
        model: the folder of the model that encodes.
    """

    def __init__(self, folder: Path, model: Path) -> None:
        self._folder = folder
        self._model = [(one.name, one.stat().st_size, one.stat().st_mtime_ns) for one in sorted(model.iterdir())]
        self._used: set[Path] = set()

    def of(self, texts: Sequence[str], encode: Callable[[Sequence[str]], Vectors]) -> Vectors:
        """The vectors of the texts, shape (len(texts), dimension); encoded where they are not kept yet.

        A disk that takes no files costs the time alone.
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
        """Let go of what was asked for in earlier versions alone."""
        with suppress(OSError):
            for file in set(self._folder.glob("*.npy")) - self._used:
                file.unlink()

    def _write(self, file: Path, vectors: Vectors) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(f".{os.getpid()}.new")
        with new.open("wb") as out:
            np.save(out, vectors, allow_pickle=False)
        new.replace(file)
