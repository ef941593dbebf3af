"""Weights that are read from their file where they are looked at."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from safetensors.torch import save_file as save_torch

from assistant.llm.bert import Bert, mean
from assistant.llm.mapped_tensors import MappedTensors

pytest_plugins = ["tests.fixtures_relevance"]
WEIGHTS: dict[str, NDArray[Any]] = {
    "matrix": np.arange(12, dtype=np.float32).reshape(3, 4),
    "small": np.array([[-3], [4]], dtype=np.int8),
    "half": np.array([0.5, 2], dtype=np.float16),
    "one": np.array(7, dtype=np.int64),
}


def in_memory(file: Path) -> int:
    """KB of the file that this process holds."""
    held, here = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split()[0]:
            here = line.endswith(str(file))
        elif here and line.startswith("Rss:"):
            held += int(line.split()[1])
    return held


def test_they_are_what_the_file_holds(tmp_path: Path) -> None:
    save_file(WEIGHTS, tmp_path / "weights", metadata={"version": "3"})
    found = MappedTensors(tmp_path / "weights")
    assert found.notes == {"version": "3"}
    assert set(found) == set(WEIGHTS)
    assert len(found) == 4
    for name, weight in WEIGHTS.items():
        assert found[name].dtype == weight.dtype
        assert np.array_equal(found[name], weight)
    assert "other" not in found


def test_a_broken_file_and_a_type_that_numpy_lacks_are_told(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    save_file(WEIGHTS, file)
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(SafetensorError):
        MappedTensors(file)
    with pytest.raises(OSError, match="No such file"):
        MappedTensors(tmp_path / "none")
    save_torch({"matrix": torch.ones(2, dtype=torch.bfloat16)}, file)
    with pytest.raises(TypeError, match="matrix is of type BF16"):
        MappedTensors(file)["matrix"]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is read")
def test_memory_that_is_let_go_of_is_free_and_the_values_stay(tmp_path: Path) -> None:
    file = tmp_path / "weights"
    save_file({"matrix": np.ones((1024, 1024), dtype=np.float32)}, file)
    found = MappedTensors(file)
    assert found["matrix"].sum() == 1 << 20
    assert in_memory(file) > 4000
    found.drop_pages()
    assert in_memory(file) == 0
    assert found["matrix"].sum() == 1 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is read")
def test_a_network_that_has_read_holds_nothing_of_its_file(tiny_cross_encoder: Path) -> None:
    pytest.importorskip("openvino")
    file, texts = tiny_cross_encoder / "model.safetensors", ["what holds protein", ""]
    copied = Bert(tiny_cross_encoder, load_file(file), 16, mean)
    mapped = Bert(tiny_cross_encoder, MappedTensors(file), 16, mean)
    for _ in range(2):
        assert np.array_equal(mapped(texts), copied(texts))
        assert in_memory(file) == 0
