"""Vectors that are kept: found again for the same texts and model, made anew for all else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from assistant.llm.disk_vector_cache import DiskVectorCache, Vectors
from assistant.llm.embedder import SentenceEmbedder


class Counter:
    """Encodes texts by their lengths, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, texts: Sequence[str]) -> Vectors:
        self.asked += 1
        return np.array([[len(text), 1] for text in texts], dtype=np.float32)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights").write_text("1")
    return folder


@pytest.fixture
def encode() -> Counter:
    return Counter()


def test_the_same_texts_are_encoded_once(tmp_path: Path, model: Path, encode: Counter) -> None:
    first = DiskVectorCache(tmp_path / "kept", model).of(["a", "bc"], encode)
    again = DiskVectorCache(tmp_path / "kept", model).of(["a", "bc"], encode)
    assert encode.asked == 1
    assert again.tolist() == first.tolist() == [[1, 1], [2, 1]]
    assert again.dtype == np.float32


def test_other_texts_and_another_model_are_encoded_anew(tmp_path: Path, model: Path, encode: Counter) -> None:
    DiskVectorCache(tmp_path / "kept", model).of(["a", "bc"], encode)
    assert DiskVectorCache(tmp_path / "kept", model).of(["bc", "a"], encode).tolist() == [[2, 1], [1, 1]]
    (model / "weights").write_text("12")
    DiskVectorCache(tmp_path / "kept", model).of(["a", "bc"], encode)
    assert encode.asked == 3


@pytest.mark.parametrize("left", [0, 10, -4])
def test_a_file_that_was_cut_short_is_made_again(tmp_path: Path, model: Path, encode: Counter, left: int) -> None:
    DiskVectorCache(tmp_path / "kept", model).of(["a", "bc"], encode)
    [file] = (tmp_path / "kept").iterdir()
    file.write_bytes(file.read_bytes()[:left])
    for _ in range(2):
        assert DiskVectorCache(tmp_path / "kept", model).of(["a", "bc"], encode).tolist() == [[1, 1], [2, 1]]
    assert encode.asked == 2


def test_a_disk_that_takes_no_files_costs_the_time_alone(tmp_path: Path, model: Path, encode: Counter) -> None:
    (tmp_path / "kept").write_text("a file where the folder should be")
    assert DiskVectorCache(tmp_path / "kept", model).of(["a"], encode).tolist() == [[1, 1]]


def test_what_only_earlier_versions_asked_for_goes(tmp_path: Path, model: Path, encode: Counter) -> None:
    DiskVectorCache(tmp_path / "kept", model).of(["old"], encode)
    now = DiskVectorCache(tmp_path / "kept", model)
    now.of(["new"], encode)
    now.tidy()
    assert len(list((tmp_path / "kept").iterdir())) == 1
    DiskVectorCache(tmp_path / "kept", model).of(["new"], encode)
    assert encode.asked == 2


def test_an_embedder_keeps_only_what_it_is_told_to(embedder: SentenceEmbedder, tmp_path: Path) -> None:
    with embedder.caching_in(tmp_path):
        kept = embedder.encode(["I'm vegan."])
    with embedder.caching_in(tmp_path):
        assert embedder.encode(["I'm vegan."]).tolist() == kept.tolist()
    embedder.encode(["I'm a nurse."])
    assert len(list(tmp_path.iterdir())) == 1
