"""A cross-encoder in a quarter of its size, so that it can come with the project: int8 weights with a scale a row.

A packed folder has the tokenizer and the configuration of the model, and `weights.int8.safetensors`: of every matrix
`name` in int8 and `name.scale`, (rows, 1) in fp32, so that the weight is their product; everything else in fp32.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from assistant.errors import DataError, ModelError

WEIGHTS, PLAIN = "weights.int8.safetensors", "model.safetensors"
VERSION = "1"
_SCALE = ".scale"
_HIGHEST = 127


def is_packed(folder: Path) -> bool:
    """Whether the folder holds a packed model."""
    return (folder / WEIGHTS).exists()


def pack(folder: Path, into: Path) -> int:
    """Write the packed form of a model's folder; the bytes of all its files.

    Raises:
        ModelError: the folder holds no weights.
        DataError: the packed form can't be written.
    """
    try:
        weights = load_file(folder / PLAIN)
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{folder} holds no weights that can be packed ({error}); train a model first.") from error
    packed = {key: value for name, weight in weights.items() for key, value in _small(name, weight).items()}
    try:
        into.mkdir(parents=True, exist_ok=True)
        _copy(folder, into)
        save_file(packed, into / WEIGHTS, metadata={"version": VERSION})
    except OSError as error:
        raise DataError(f"The model can't be written to {into} ({error.strerror}); choose another folder.") from error
    return sum(file.stat().st_size for file in into.iterdir())


@contextmanager
def unpacked(folder: Path) -> Iterator[Path]:
    """A folder with the model as transformers reads it, for as long as the block lasts.

    Raises:
        ModelError: the packed file is broken, or of another version.
    """
    with TemporaryDirectory() as name:
        plain = Path(name)
        _copy(folder, plain)
        save_file(_large(folder / WEIGHTS), plain / PLAIN, metadata={"format": "pt"})
        yield plain


def _small(name: str, weight: Tensor) -> dict[str, Tensor]:
    if weight.dim() != 2 or not weight.is_floating_point():
        return {name: weight}
    scale = weight.float().abs().amax(1, keepdim=True).clamp(min=1e-12) / _HIGHEST
    return {name: (weight.float() / scale).round().to(torch.int8), f"{name}{_SCALE}": scale}


def _large(path: Path) -> dict[str, Tensor]:
    try:
        with safe_open(path, "pt") as file:
            version = (file.metadata() or {}).get("version")
        packed: dict[str, Tensor] = load_file(path) if version == VERSION else {}
    except (OSError, SafetensorError) as error:
        raise ModelError(f"The estimator {path} can't be read ({error}); get it again.") from error
    if version != VERSION:
        raise ModelError(f"The estimator {path} is of version {version}, not {VERSION}; get one for this release.")
    names = [name for name in packed if not name.endswith(_SCALE)]
    return {name: _restored(packed[name], packed.get(f"{name}{_SCALE}")) for name in names}


def _restored(weight: Tensor, scale: Tensor | None) -> Tensor:
    return weight if scale is None else weight.float() * scale


def _copy(folder: Path, into: Path) -> None:
    for file in folder.iterdir():
        if file.suffix in {".json", ".txt"}:
            shutil.copy(file, into / file.name)
