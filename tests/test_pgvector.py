"""Vectors of libraries in files and in a real PostgreSQL with pgvector: both find the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from sqlalchemy import Engine

from assistant.library.shelves import own_library, remove_vectors
from assistant.library.vectors import DenseShelves, Vectors, vectors_of
from assistant.protocols import silent
from assistant.retrieve import encoded
from assistant.retrieve.bm25 import Bm25, Segment
from assistant.settings import Settings
from assistant.types import Passage

pgvector = pytest.importorskip("assistant.retrieve.pgvector", reason="pip install -r requirements-postgres.txt")
WORDS = ["cat", "dog", "fish", "bird", "tree", "stone", "house", "river"]
PASSAGES = [Passage(word, "", f"{word} {word} animal") for word in WORDS]
LONG = Passage("long", "", "tree " * 150 + "river " * 150)


class Encoding:
    """One dimension a known word; notes what it is asked to encode, and is broken off after so much of it."""

    name = "org/words"

    def __init__(self, most: int = 10**9) -> None:
        self.encoded: list[str] = []
        self._most = most

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        if len(self.encoded) >= self._most:
            raise KeyboardInterrupt
        self.encoded += [text for text in texts if text.strip()]
        vectors = np.array([[text.split().count(word) for word in WORDS] + [0.1] for text in texts], dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class Library:
    """What of a library its vectors are made of."""

    def __init__(self, *passages: Passage, state: str = "1") -> None:
        self._passages, self.state = {one.id: one for one in passages}, state

    def passages(self) -> Iterable[Passage]:
        return self._passages.values()

    def segments(self) -> list[Segment]:
        """Another one with every state."""
        passages = list(self._passages.values())
        return [Segment(self.state, len(passages), frozenset(), lambda start, end: passages[start:end])]

    def get(self, ids: Sequence[str]) -> list[Passage | None]:
        return [self._passages.get(one) for one in ids]


def library(*passages: Passage, state: str = "1") -> Bm25:
    return cast("Bm25", Library(*passages, state=state))


@pytest.fixture
def chosen(database_url: str, tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path, hub=False, database=database_url)


@pytest.fixture
def made(chosen: Settings) -> Callable[..., Vectors]:
    def make(encoder: Any, *passages: Passage, name: str = "lib", state: str = "1") -> Vectors:
        vectors = vectors_of(chosen, encoder)
        vectors.make(name, library(*passages, state=state), silent)
        return vectors

    return make


def ids(vectors: Vectors, query: str, *passages: Passage, name: str = "lib", k: int = 3) -> list[str]:
    return [one.id for one in vectors.open(name, library(*passages)).search(query, k)]


def test_the_nearest_are_found_best_first_each_once(made: Callable[..., Vectors]) -> None:
    every = [*PASSAGES, LONG]
    vectors = made(Encoding(), *every)
    assert vectors.is_current("lib", library(*every))
    [best, second] = vectors.open("lib", library(*every)).search("river", 2)
    assert (best.id, second.id) == ("river", "long")
    assert 0.9 < second.score <= best.score <= 1
    assert ids(vectors, "cat", *every, k=0) == ids(vectors, " ", *every) == []
    assert len(ids(vectors, "stone", *every, k=50)) == len(every)
    assert "cat" not in ids(vectors, "cat", *PASSAGES[1:])  # it is gone from the library


def test_only_what_is_new_is_encoded_and_what_is_gone_is_not_found(made: Callable[..., Vectors]) -> None:
    made(Encoding(), *PASSAGES[:6])
    encoder, moved = Encoding(), Passage("again", "", PASSAGES[2].text)
    after = [moved, *PASSAGES[4:]]
    vectors = made(encoder, *after, state="2")
    assert len(encoder.encoded) == 2
    assert not vectors.is_current("lib", library(*after, state="1"))
    assert vectors.is_current("lib", library(*after, state="2"))
    assert ids(vectors, "fish", *PASSAGES, moved, k=1) == ["again"]
    assert len(ids(vectors, "fish", *PASSAGES, moved, k=50)) == len(after)
    made(encoder, state="3")
    assert ids(vectors, "fish", *PASSAGES, moved) == []


def test_encoding_goes_on_where_it_was_broken_off(
    made: Callable[..., Vectors], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoded, "BATCH", 2)
    monkeypatch.setattr(pgvector, "BATCH", 2)
    with pytest.raises(KeyboardInterrupt):
        made(Encoding(most=4), *PASSAGES)
    encoder = Encoding()
    vectors = made(encoder, *PASSAGES)
    assert len(encoder.encoded) == len(PASSAGES) - 4
    assert ids(vectors, "river", *PASSAGES, k=1) == ["river"]


def test_nobody_finds_what_is_in_the_library_of_somebody_else(
    made: Callable[..., Vectors], chosen: Settings, engine: Engine
) -> None:
    ada, bob, encoder = own_library("ada"), own_library("bob"), Encoding()
    made(encoder, *PASSAGES[:4], name=ada)
    vectors = made(encoder, *PASSAGES[2:], name=bob)
    assert set(ids(vectors, "cat", *PASSAGES, name=ada, k=50)) == {"cat", "dog", "fish", "bird"}
    assert "cat" not in ids(vectors, "cat", *PASSAGES, name=bob, k=50)
    if engine.dialect.name == "postgresql":
        remove_vectors(ada, chosen)
        assert not vectors.is_current(ada, library(*PASSAGES[:4]))
        assert vectors.is_current(bob, library(*PASSAGES[2:]))
        with engine.connect() as connection:
            left = connection.exec_driver_sql("SELECT DISTINCT library FROM passage_vectors").scalars().all()
        assert left == [bob]


def test_of_own_documents_the_sentences_have_vectors_too(made: Callable[..., Vectors]) -> None:
    lease = Passage("lease", "", "The dog barks. A fish swims. The river runs.")
    for name, first in (("lib", "dog"), (own_library("ada"), "lease")):
        vectors = made(Encoding(), *PASSAGES, lease, name=name)
        assert ids(vectors, "The dog barks.", *PASSAGES, lease, name=name, k=1) == [first]


def test_two_that_make_the_same_at_once_encode_it_once(chosen: Settings) -> None:
    encoder = Encoding()

    def make(_: int) -> None:
        vectors_of(chosen, encoder).make("lib", library(*PASSAGES), silent)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(make, range(2)))
    assert len(set(encoder.encoded)) == len(PASSAGES)
    assert ids(vectors_of(chosen, encoder), "river", *PASSAGES, k=1) == ["river"]


def test_shelves_search_where_the_vectors_are(chosen: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    both = {"one": library(*PASSAGES[:4]), "two": library(*PASSAGES[4:])}
    monkeypatch.setattr("assistant.library.vectors.open_library", lambda name, _: both[name])
    shelves = DenseShelves(chosen, lambda _: Encoding())
    assert [one.id for one in shelves.open(["one", "two"], patience=60).search("river", 1)] == ["river"]


def test_a_server_without_pgvector_leaves_the_vectors_in_files(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pgvector, "prepare", lambda _: False)
    vectors = vectors_of(Settings(data_dir=tmp_path, hub=False, database=postgres_url), Encoding())
    vectors.make("lib", library(*PASSAGES), silent)
    assert "no pgvector" in caplog.text
    assert list((tmp_path / "dense").rglob("*.faiss"))
