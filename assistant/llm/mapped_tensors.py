"""Weights that are read from their file where they are looked at, and needn't stay in memory.

OpenVINO lays the matrices of a network out anew when it first runs, and keeps what they were made of. Where that lies
in a file, its pages can be let go of afterwards, so that the weights are in memory only once.
"""

from __future__ import annotations

import json
import mmap
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

_DTYPES = {"F32": np.float32, "F16": np.float16, "I8": np.int8, "I32": np.int32, "I64": np.int64}


class MappedTensors(Mapping[str, NDArray[Any]]):
    """The tensors of a .safetensors file by their names. Writing into one changes neither the file nor other processes.

    Raises:
        OSError: the file can't be read.
        SafetensorError: it is broken.
        TypeError: a tensor that is looked at is of a type that numpy lacks.
    """

    def __init__(self, file: Path) -> None:
        with safe_open(file, "np") as tensors:
            self.notes: dict[str, str] = tensors.metadata() or {}
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            self._about = json.loads(stream.read(length))
            # OpenVINO takes only what could be written into
            self._pages = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_COPY)
        self._about.pop("__metadata__", None)
        self._start = 8 + length

    def __getitem__(self, name: str) -> NDArray[Any]:
        entry = self._about[name]
        dtype = _DTYPES.get(entry["dtype"])
        if dtype is None:
            raise TypeError(f"{name} is of type {entry['dtype']}")
        shape, offset = entry["shape"], self._start + entry["data_offsets"][0]
        return np.frombuffer(self._pages, dtype, int(np.prod(shape)), offset).reshape(shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._about)

    def __len__(self) -> int:
        return len(self._about)

    def drop_pages(self) -> None:
        """Let the memory go that holds what was looked at: it is read from the file again if need be (on Linux)."""
        if sys.platform == "linux":
            self._pages.madvise(mmap.MADV_DONTNEED)
