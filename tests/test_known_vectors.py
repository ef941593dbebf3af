"""The vectors that come with Sequitur are used for the texts that they are of, and for no others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from assistant.errors import DataError
from assistant.library.starter import shelf_entries
from assistant.protocols import silent
from assistant.retrieve.encoded import key_of
from assistant.retrieve.known_vectors import SHIPPED, KnownEncoder, with_known_vectors, write


class Counting:
    """An encoder that counts what it encodes; a text's vector follows from its hash."""

    name, window = "counting", 256

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def count(self, text: str) -> int:
        return len(text.split())

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.encoded += texts
        rows = [np.random.default_rng(int(key_of(text)[:8], 16)).normal(size=16) for text in texts]
        return np.array([row / np.linalg.norm(row) for row in rows], dtype=np.float32)

    encode_queries = encode


def test_texts_that_are_known_are_not_encoded_again(tmp_path: Path) -> None:
    assert write(tmp_path / "v.npz", ["a cat", "a dog", "a cat"], Counting(), silent) == 2
    encoder = Counting()
    found = KnownEncoder(encoder, tmp_path / "v.npz").encode(["a dog", "a bird", "a cat"])
    assert encoder.encoded == ["a bird"]
    assert np.abs(found - Counting().encode(["a dog", "a bird", "a cat"])).max() < 0.01
    assert np.allclose(KnownEncoder(encoder, tmp_path / "v.npz").encode_queries(["a cat"]), encoder.encode(["a cat"]))


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04 cut short"])
def test_without_the_file_or_with_a_damaged_one_all_is_encoded(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "v.npz").write_bytes(content)
    encoder = Counting()
    found = KnownEncoder(encoder, tmp_path / "v.npz").encode(["a cat"])
    assert (encoder.encoded, found.shape) == (["a cat"], (1, 16))


def test_an_encoder_of_another_name_knows_nothing() -> None:
    encoder = Counting()
    assert with_known_vectors(encoder) is encoder


def test_a_file_that_cant_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="can't be written"):
        write(tmp_path / "file" / "v.npz", ["a cat"], Counting(), silent)


def test_every_passage_of_the_shelf_comes_with_its_vector() -> None:
    with np.load(SHIPPED / "all-MiniLM-L6-v2.npz") as file:
        known = {int(key) for key in file["keys"]}
    texts = [f"{entry.passage.full_title}\n{entry.passage.text}" for entry in shelf_entries()]
    lacking = [text[:60] for text in texts if int(key_of(text)[:16], 16) not in known]
    assert not lacking, "run: python -m assistant train vectors"
