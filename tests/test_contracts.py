"""What every implementation of a Protocol must do, the doubles of the tests included; LLMs have `llm_contract`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, dataclass, replace
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from assistant.errors import LibraryError, SequiturError
from assistant.library.writer import writing
from assistant.parts import Loader
from assistant.protocols import Parts, Retriever, silent
from assistant.registry import variants
from assistant.retrieve import retrievers
from assistant.retrieve.bm25 import Bm25
from assistant.settings import OpenSearchSettings, RetrieveSettings, Settings
from assistant.types import Choices, Digest, Passage, Turn
from assistant.web.library import OwnDocuments
from tests.browser.fake import Loaded, Shelf
from tests.opensearch import StandIn
from tests.scripted import WORDS, FixedRetriever, ScriptedLLM, WordEmbedder, WordJudge

PASSAGES = [
    Passage("oats", "Oat milk", "Oat milk is made from oats and water.", source="kitchen.txt"),
    Passage("rice", "Rice", "Rice is boiled in water for twelve minutes.", source="kitchen.txt"),
    Passage("milk", "Milk", "Milk is a source of calcium. Milk holds lactose.", source="kitchen.txt"),
]
ODD = ["", "   ", "日本語の質問", "كيف حالك", "🥛" * 50, "\x00", 'a:b^2 AND ("', "lone \ud800 surrogate", "x" * 100_000]


@dataclass(frozen=True)
class Kitchen:
    """Indexes of the same passages: by words those of Lucene, and for meaning a double."""

    folder: Path
    settings: Settings

    def words(self) -> Bm25:
        return Bm25(self.folder)

    def meaning(self) -> FixedRetriever:
        return FixedRetriever(PASSAGES)

    def meaning_if_made(self) -> FixedRetriever:
        return self.meaning()


@dataclass(frozen=True)
class Elsewhere:
    """The same passages in a stand-in for OpenSearch."""

    settings: Settings

    def words(self) -> Retriever:
        from assistant.retrieve.opensearch import WordRetriever

        return WordRetriever(*self._brought(None))

    def meaning(self) -> Retriever:
        from assistant.retrieve.opensearch import VectorRetriever

        return VectorRetriever(*self._brought(WORDS), WORDS)

    def meaning_if_made(self) -> Retriever:
        return self.meaning()

    def _brought(self, encoder: WordEmbedder | None):
        from assistant.retrieve.opensearch import Cluster

        cluster = Cluster(self.settings.retrieve)
        index = cluster.index("kitchen", encoder)
        index.synchronise(PASSAGES, len(PASSAGES), "all", silent)
        return cluster, [index]


@pytest.fixture(
    scope="module",
    params=[
        "fixed",
        *(pytest.param(name, marks=pytest.mark.lucene) for name in variants.names("retrievers")),
        *(f"{name} in OpenSearch" for name in variants.names("retrievers")),
    ],
)
def retriever(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Retriever]:
    name, _, elsewhere = request.param.partition(" ")
    if elsewhere:
        pytest.importorskip("opensearchpy", reason="needs the extra: pip install -r requirements-opensearch.txt")
        with StandIn() as there:
            retrieve = RetrieveSettings(opensearch=OpenSearchSettings(address=there.address))
            yield retrievers.retriever_module(name).opened(Elsewhere(Settings(retrieve=retrieve)))
    else:
        yield _here(name, tmp_path_factory)


def _here(name: str, tmp_path_factory: pytest.TempPathFactory) -> Retriever:
    if name == "fixed":
        return FixedRetriever(PASSAGES)
    folder = tmp_path_factory.mktemp("index")
    with writing(folder) as writer:
        writer.add("kitchen", PASSAGES)
        writer.commit({})
    return retrievers.retriever_module(name).opened(Kitchen(folder, Settings(data_dir=folder)))


class TestRetriever:
    def test_at_most_k_best_first_each_once(self, retriever: Retriever) -> None:
        for k in (1, 2, 3, 50):
            found = retriever.search("milk and water", k)
            assert 1 <= len(found) <= k
            assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
            assert len({one.id for one in found}) == len(found)

    def test_passages_come_whole(self, retriever: Retriever) -> None:
        whole = {one.id: (one.title, one.text, one.source) for one in PASSAGES}
        for one in retriever.search("milk", 3):
            assert (one.title, one.text, one.source) == whole[one.id]

    def test_the_same_question_finds_the_same(self, retriever: Retriever) -> None:
        assert retriever.search("milk and water", 3) == retriever.search("milk and water", 3)

    @pytest.mark.parametrize("query", ODD, ids=lambda query: ascii(query[:12]))
    def test_odd_queries_are_no_errors(self, retriever: Retriever, query: str) -> None:
        assert len(retriever.search(query, 2)) <= 2

    def test_none_are_asked_for(self, retriever: Retriever) -> None:
        assert retriever.search("milk", 0) == []

    def test_several_threads(self, retriever: Retriever) -> None:
        expected = retriever.search("milk", 2)
        with ThreadPoolExecutor(8) as pool:
            assert all(found == expected for found in pool.map(lambda _: retriever.search("milk", 2), range(40)))


class TestEmbedder:
    @pytest.fixture(params=["words", pytest.param("embedder", marks=pytest.mark.model)])
    def encoder(self, request: pytest.FixtureRequest):
        return WordEmbedder() if request.param == "words" else request.getfixturevalue("embedder")

    def test_rows_of_length_1(self, encoder) -> None:
        vectors = encoder.encode(["Milk holds lactose.", "Rice is boiled.", "Milk holds lactose."])
        assert vectors.dtype == np.float32
        assert vectors.shape[0] == 3
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
        assert np.allclose(vectors[0], vectors[2], atol=1e-5)
        assert vectors[0] @ vectors[2] > vectors[0] @ vectors[1]

    def test_a_batch_is_as_one_by_one(self, encoder) -> None:
        texts = ["Milk.", "Rice is boiled in water for twelve minutes.", "Oats " * 200]
        assert np.allclose(encoder.encode(texts), np.concatenate([encoder.encode([one]) for one in texts]), atol=1e-4)

    def test_none(self, encoder) -> None:
        assert len(encoder.encode([])) == 0

    @pytest.mark.parametrize("text", ODD[:-1], ids=lambda text: ascii(text[:12]))
    def test_odd_texts_are_no_errors(self, encoder, text: str) -> None:
        assert np.isfinite(encoder.encode([text])).all()

    def test_it_can_be_kept_by(self, encoder) -> None:
        assert {encoder: encoder.name}[encoder]


def steps() -> list[tuple[variants.Kind, str]]:
    kinds: tuple[variants.Kind, ...] = ("loops", "strategies")
    return [(kind, name) for kind in kinds for name in variants.names(kind)]


@pytest.mark.parametrize(("kind", "name"), steps())
class TestStep:
    @pytest.fixture
    def parts(self, settings: Settings) -> Parts:
        llm = ScriptedLLM(replies=["Milk holds lactose."] * 60)
        return Parts(settings, llm, WORDS, FixedRetriever(PASSAGES), support=lambda _: WordJudge())

    @pytest.fixture
    def turn(self, kind: variants.Kind) -> Turn:
        turn = Turn("What does milk hold?", question="What does milk hold?", choices=Choices(k=3))
        digests = tuple(Digest(one.id, one.text) for one in PASSAGES)
        return turn if kind == "loops" else replace(turn, passages=tuple(PASSAGES), digests=digests)

    def test_the_turn_grows(self, kind: variants.Kind, name: str, turn: Turn, parts: Parts) -> None:
        snapshots = list(variants.module(kind, name).run(turn, parts, Event()))
        last = snapshots[-1]
        assert {one.id for one in snapshots} == {turn.id}
        assert last.status == "running"
        assert last.question == turn.question
        assert last.passages if kind == "loops" else last.answer
        with pytest.raises(FrozenInstanceError):
            last.question = "another"  # type: ignore[misc]

    def test_it_has_plain_words_for_menus(self, kind: variants.Kind, name: str, turn: Turn, parts: Parts) -> None:
        shown = {one.name: one for one in variants.menu(kind)}
        assert 0 < len(shown[name].title) <= 40
        assert shown[name].summary.endswith(".")
        assert [one.title for one in shown.values()].count(shown[name].title) == 1

    def test_what_it_adds_can_be_stored(self, kind: variants.Kind, name: str, turn: Turn, parts: Parts) -> None:
        *_, last = variants.module(kind, name).run(turn, parts, Event())
        assert Turn.from_json(last.to_json()) == last

    def test_stopped_before_it_begins_it_ends_at_once(
        self, kind: variants.Kind, name: str, turn: Turn, parts: Parts
    ) -> None:
        stop = Event()
        stop.set()
        *_, last = variants.module(kind, name).run(turn, parts, stop)
        assert not last.citations
        assert (last.draft, last.document, last.reasoning) == ("", "", "")
        assert last.answer is None or last.answer.text in {"", "unknown"}

    def test_nothing_found_is_no_error(self, kind: variants.Kind, name: str, turn: Turn, parts: Parts) -> None:
        empty = replace(turn, passages=(), digests=())
        *_, last = variants.module(kind, name).run(empty, replace(parts, retriever=FixedRetriever([])), Event())
        assert last.status == "running"


class TestDocuments:
    @pytest.fixture(params=["shelf", pytest.param("own", marks=pytest.mark.lucene)])
    def documents(self, request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> OwnDocuments:
        return Shelf(tmp_path / "shelf") if request.param == "shelf" else OwnDocuments(settings)

    def test_added_listed_replaced_removed(self, documents: OwnDocuments, tmp_path: Path) -> None:
        told: list[tuple[int, int]] = []
        for name in ("b.txt", "a.txt"):
            (tmp_path / name).write_text(f"The key of {name} hangs behind the door. " * 3)
        files = [tmp_path / "b.txt", tmp_path / "a.txt"]
        assert list(documents.add("ann", files, lambda done, total: told.append((done, total)), Event())) == []
        assert told
        documents.add("ann", files, lambda done, total: None, Event())
        assert [one.name for one in documents.list("ann")] == ["a.txt", "b.txt"]
        assert all(one.passages >= 1 for one in documents.list("ann"))
        documents.remove("ann", documents.list("ann")[0].id)
        assert [one.name for one in documents.list("ann")] == ["b.txt"]

    def test_the_original_is_kept_until_its_document_goes(self, documents: OwnDocuments, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_text("The key hangs behind the door. " * 3)
        documents.add("ann", [tmp_path / "a.txt"], lambda done, total: None, Event())
        (tmp_path / "a.txt").unlink()
        [document] = documents.list("ann")
        assert document.original
        assert document.original.read_text() == "The key hangs behind the door. " * 3
        documents.remove("ann", document.id)
        assert list(documents.list("ann")) == []

    def test_what_cannot_be_read_is_told_by_name_and_the_rest_added(
        self, documents: OwnDocuments, tmp_path: Path
    ) -> None:
        (tmp_path / "empty.txt").write_text("")
        (tmp_path / "full.txt").write_text("The key hangs behind the door. " * 3)
        [problem] = documents.add(
            "ann", [tmp_path / "empty.txt", tmp_path / "full.txt"], lambda done, total: None, Event()
        )
        assert "empty.txt" in problem
        assert [one.name for one in documents.list("ann")] == ["full.txt"]

    def test_others_see_and_remove_nothing(self, documents: OwnDocuments, tmp_path: Path) -> None:
        (tmp_path / "secret.txt").write_text("The key hangs behind the door. " * 3)
        documents.add("ann", [tmp_path / "secret.txt"], lambda done, total: None, Event())
        assert list(documents.list("bob")) == []
        with pytest.raises(LibraryError):
            documents.remove("bob", documents.list("ann")[0].id)
        assert len(documents.list("ann")) == 1


@pytest.mark.parametrize("make", [lambda settings: Loaded(ready=False), Loader], ids=["fake", "real"])
def test_loading_tells_where_it_is(make: Callable[[Settings], Loader | Loaded], settings: Settings) -> None:
    loading = make(settings)
    assert (loading.ready, loading.error, loading.notice) == (False, "", "")
    assert all(stage.name and (stage.fraction is None or 0 <= stage.fraction <= 1) for stage in loading.stages())


def test_parts_are_refused_while_loading(settings: Settings) -> None:
    with pytest.raises(SequiturError, match="still loading"):
        Loader(settings).parts("me", Choices())
