"""A cross-encoder at a quarter of its size, so that it can come with Sequitur: int8 weights with a scale for each row.

A packed folder has the tokenizer and the configuration of the model, and `weights.int8.safetensors`. This holds every
matrix as `name` in int8 and `name.scale`, (rows, 1) in fp32, whose product is the weight; everything else is in fp32.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from assistant.errors import DataError, ModelError, disk_errors_as
from assistant.llm.bert import SCALE
from assistant.llm.mapped_tensors import MappedTensors

WEIGHTS, PLAIN = "weights.int8.safetensors", "model.safetensors"
VERSION = "1"
_HIGHEST, _ROWS = 127, 4096


def is_packed(folder: Path) -> bool:
    """Whether the folder holds a packed model."""
    return (folder / WEIGHTS).exists()


def pack(folder: Path, target: Path) -> int:
    """Write the packed form of a model's folder; returns the size of all its files in bytes.

    Raises:
        ModelError: the folder holds no weights.
        DataError: the packed form can't be written.
    """
    try:
        weights = load_file(folder / PLAIN)
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{folder} holds no weights that can be packed ({error}); train a model first.") from error
    packed_weights = {key: value for name, weight in weights.items() for key, value in small(name, weight).items()}
    with disk_errors_as(DataError, f"The model can't be written to {target}", "choose another folder"):
        target.mkdir(parents=True, exist_ok=True)
        copy_texts(folder, target)
        save_file(packed_weights, target / WEIGHTS, metadata={"version": VERSION})
    return sum(file.stat().st_size for file in target.iterdir())


@contextmanager
def unpacked(folder: Path) -> Iterator[Path]:
    """A folder with the model as transformers reads it, for as long as the block lasts.

    Raises:
        ModelError: the packed file is broken, or of another version.
    """
    with TemporaryDirectory() as name:
        plain_folder = Path(name)
        copy_texts(folder, plain_folder)
        save_file(_unpacked_weights(packed(folder)), plain_folder / PLAIN, metadata={"format": "pt"})
        yield plain_folder


def packed(folder: Path) -> MappedTensors:
    """The weights as the packed file has them.

    Raises:
        ModelError: it is broken, or of another version.
    """
    path = folder / WEIGHTS
    try:
        weights = MappedTensors(path)
    except (OSError, SafetensorError) as error:
        raise ModelError(f"The estimator {path} can't be read ({error}); get it again.") from error
    version = weights.notes.get("version")
    if version != VERSION:
        raise ModelError(f"The estimator {path} is of version {version}, not {VERSION}; get one for this release.")
    return weights


def small(name: str, weight: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """A weight as the packed file has it: a matrix in int8 with its scale, anything else as it is."""
    if weight.ndim != 2 or not np.issubdtype(weight.dtype, np.floating):
        return {name: weight}
    exact = weight.astype(np.float32, copy=False)
    largest = np.maximum(exact.max(axis=1, keepdims=True), -exact.min(axis=1, keepdims=True))
    scale = np.maximum(largest, 1e-12).astype(np.float32) / np.float32(_HIGHEST)
    # some rows at a time, since a large table would otherwise take its size several times
    rows = [np.round(exact[n : n + _ROWS] / scale[n : n + _ROWS]).astype(np.int8) for n in range(0, len(exact), _ROWS)]
    return {name: np.concatenate(rows), f"{name}{SCALE}": scale}


def _unpacked_weights(weights: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    names = [name for name in weights if not name.endswith(SCALE)]
    return {name: _restored(weights[name], weights.get(f"{name}{SCALE}")) for name in names}


def _restored(weight: NDArray[Any], scale: NDArray[Any] | None) -> NDArray[Any]:
    return weight if scale is None else weight * scale


def copy_texts(folder: Path, target: Path) -> None:
    """Copy what a model has besides its weights."""
    for file in folder.iterdir():
        if file.suffix in {".json", ".txt"}:
            shutil.copy(file, target / file.name)
