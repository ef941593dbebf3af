"""Libraries in OpenSearch: brought there, kept in step, searched, and what goes wrong; against a stand-in."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

pytest.importorskip("opensearchpy", reason="needs the extra: pip install -r requirements-opensearch.txt")

from assistant.errors import LibraryError, SettingsError
from assistant.library.making import IndexedShelves
from assistant.library.remote import RemoteShelves, mark_of
from assistant.library.shelves import library_folder, own_library, remove_library
from assistant.library.writer import writing
from assistant.protocols import Progress, Retriever, silent
from assistant.retrieve.opensearch import Cluster, Index, VectorRetriever, WordRetriever
from assistant.settings import OpenSearchSettings, RetrieveSettings, Settings, load
from assistant.types import Choices, Passage
from tests.opensearch import StandIn
from tests.scripted import WORDS
from tests.servers import self_signed
from tests.test_contracts import PASSAGES

MANY = [Passage(f"p{n}", "Oats", f"Oat drink number {n}.", source="s.txt") for n in range(200)]


@pytest.fixture
def there() -> Iterator[StandIn]:
    with StandIn("ann", "oats") as stand_in:
        yield stand_in


def knobs(there: StandIn, **other: object) -> RetrieveSettings:
    login = {"user": "ann", "password": "oats", "seconds": 2.0}
    return RetrieveSettings(opensearch=OpenSearchSettings.model_validate({"address": there.address, **login, **other}))


@pytest.fixture
def cluster(there: StandIn) -> Cluster:
    return Cluster(knobs(there))


def brought(index: Index, passages: list[Passage], mark: str = "one", progress: Progress = silent) -> Index:
    index.synchronise(passages, len(passages), mark, progress)
    return index


class TestBringing:
    def test_only_what_changed_is_sent_and_what_is_gone_is_deleted(self, cluster: Cluster, there: StandIn) -> None:
        index = brought(cluster.index("kitchen"), PASSAGES)
        assert there.sent == ["index"] * 3
        there.sent.clear()
        brought(index, [replace(PASSAGES[0], text="Oat milk is sweet."), PASSAGES[1]], "two")
        assert sorted(there.sent) == ["delete", "index"]
        assert cluster.marks([index]) == {"sequitur.kitchen": "two"}
        assert [one.text for one in WordRetriever(cluster, [index]).search("sweet", 5)] == ["Oat milk is sweet."]
        assert WordRetriever(cluster, [index]).search("calcium", 5) == []

    def test_it_goes_on_where_it_was_broken_off(self, cluster: Cluster, there: StandIn) -> None:
        def breaking() -> Iterator[Passage]:
            yield from MANY[:128]
            raise KeyboardInterrupt

        index, told = cluster.index("oats"), list[tuple[int, int]]()
        there_before = brought(index, MANY[:64])
        assert cluster.marks([there_before])
        with pytest.raises(KeyboardInterrupt):
            index.synchronise(breaking(), 200, "all", silent)
        there.sent.clear()
        brought(index, MANY, "all", lambda done, total: told.append((done, total)))
        assert 0 < len(there.sent) <= 136
        assert len(there.documents["sequitur.oats"]) == 200
        assert told[-1] == (200, 200)
        assert told == sorted(told)

    def test_an_index_that_is_made_otherwise_is_made_anew(self, cluster: Cluster, there: StandIn) -> None:
        brought(cluster.index("kitchen"), PASSAGES)
        other = Cluster(knobs(there).model_copy(update={"k1": 1.2}))
        assert other.marks([other.index("kitchen")]) == {}
        brought(other.index("kitchen"), PASSAGES)
        similarity = there.indexes["sequitur.kitchen"]["settings"]["index"]["similarity"]["default"]
        assert similarity == {"type": "BM25", "k1": 1.2, "b": 0.4}
        assert (
            there.indexes["sequitur.kitchen"]["settings"]["analysis"]["analyzer"]["words"]["filter"][-1]
            == "porter_stem"
        )

    def test_a_passage_comes_back_as_it_went_with_its_heading_and_page(self, cluster: Cluster) -> None:
        passage = Passage("care-1", "Manual", "Rinse the tank.", source="m.pdf", page=3, heading="Care > Cleaning")
        index = brought(cluster.index("manual"), [passage])
        vectors = brought(cluster.index("manual", WORDS), [passage])
        found = [
            *WordRetriever(cluster, [index]).search("cleaning", 1),
            *VectorRetriever(cluster, [vectors], WORDS).search("tank", 1),
        ]
        assert [replace(one, score=0.0) for one in found] == [passage, passage]

    def test_vectors_are_of_one_encoder_and_stand_apart(self, cluster: Cluster, there: StandIn) -> None:
        index = brought(cluster.index("kitchen", WORDS), PASSAGES)
        assert index.name.startswith("sequitur.kitchen.")
        vector = there.indexes[index.name]["mappings"]["properties"]["pieces"]["properties"]["vector"]
        assert (vector["type"], vector["dimension"]) == ("knn_vector", WORDS.encode(["?"]).shape[1])
        best = VectorRetriever(cluster, [index], WORDS).search(
            "Milk\nMilk is a source of calcium. Milk holds lactose.", 1
        )[0]
        assert best.id == "milk"
        assert best.score == pytest.approx(1, abs=1e-4)

    def test_several_are_searched_as_one(self, cluster: Cluster) -> None:
        one, two = brought(cluster.index("a"), PASSAGES[:1]), brought(cluster.index("b"), PASSAGES[1:])
        assert {passage.id for passage in WordRetriever(cluster, [one, two]).search("water", 5)} == {"oats", "rice"}

    def test_a_library_is_forgotten_with_its_vectors_and_no_other(self, cluster: Cluster, there: StandIn) -> None:
        for name in ("a", "ab"):
            brought(cluster.index(name), PASSAGES)
            brought(cluster.index(name, WORDS), PASSAGES)
        cluster.forget("a")
        assert all(name.startswith("sequitur.ab") for name in there.indexes)
        assert len(there.indexes) == 2
        cluster.forget("a")


@pytest.mark.lucene
class TestShelves:
    @pytest.fixture
    def settings(self, tmp_path: Path, there: StandIn) -> Settings:
        settings = Settings(data_dir=tmp_path, library="kitchen", retrieve=knobs(there))
        self.write(settings, PASSAGES)
        return settings

    def write(self, settings: Settings, passages: list[Passage], name: str = "kitchen") -> None:
        folder = library_folder(name, settings)
        folder.mkdir(parents=True, exist_ok=True)
        with writing(folder) as writer:
            writer.clear()
            writer.add("d", passages)
            writer.commit({"documents": {"d": {"passages": len(passages)}}})

    def test_a_library_is_brought_when_it_is_asked_for_and_kept_in_step(
        self, settings: Settings, there: StandIn
    ) -> None:
        shelves: IndexedShelves = RemoteShelves(settings)
        assert [one.id for one in shelves.open(["kitchen"], 120).search("rice", 1)] == ["rice"]
        sent = len(there.sent)
        shelves.open(["kitchen"], 120)
        RemoteShelves(settings).open(["kitchen"], 120)  # another process
        assert len(there.sent) == sent
        before = mark_of("kitchen", settings)
        self.write(settings, PASSAGES[:2])
        assert mark_of("kitchen", settings) != before
        assert {one.id for one in shelves.open(["kitchen"], 120).search("milk rice", 5)} == {"oats", "rice"}
        by_meaning = RemoteShelves(settings, lambda _: WORDS).open(["kitchen"], 120)
        assert by_meaning.search("Rice is boiled in water for twelve minutes.", 1)[0].id == "rice"

    def test_of_own_documents_the_sentences_have_vectors_too(self, settings: Settings, there: StandIn) -> None:
        own = own_library("ann")
        self.write(settings, PASSAGES, own)
        shelves = RemoteShelves(settings, lambda _: WORDS).open(["kitchen", own], 120)
        sources = [(index, one) for index, sources in there.documents.items() for one in sources.values()]
        pieces = {own in index: len(one["pieces"]) for index, one in sources if one["id"] == "milk"}
        assert pieces == {False: 1, True: 3}
        assert shelves.search("Milk holds lactose.", 1)[0].score == pytest.approx(1, abs=1e-4)

    def test_a_deleted_library_is_deleted_there_too(self, settings: Settings, there: StandIn) -> None:
        RemoteShelves(settings).open(["kitchen"], 120)
        there.spoil = lambda method, path: (
            (403, {"error": {"type": "security_exception"}}) if method == "DELETE" else None
        )
        with pytest.raises(LibraryError, match=r"is refused.*right to read, write, make and delete indexes"):
            remove_library("kitchen", settings)
        assert library_folder("kitchen", settings).exists()
        there.spoil = lambda method, path: None
        remove_library("kitchen", settings)
        assert there.indexes == {}

    def test_the_parts_are_made_of_it(self, settings: Settings, there: StandIn) -> None:
        from assistant.parts import Loader

        loader = Loader(settings)
        shelves: Retriever = loader.retriever("me", Choices(library="kitchen"), 120)
        assert [one.id for one in shelves.search("rice", 1)] == ["rice"]
        assert ("POST", "/sequitur.kitchen/_search") in there.asked


class TestWhatGoesWrong:
    def told(self, cluster: Cluster) -> str:
        with pytest.raises(LibraryError) as caught:
            WordRetriever(cluster, [cluster.index("kitchen")]).search("milk", 3)
        return str(caught.value)

    def test_nobody_is_there(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        told = self.told(Cluster(RetrieveSettings(opensearch=OpenSearchSettings(address=address))))
        assert told == f"No OpenSearch answers at {address}; start it, or correct the setting."

    def test_a_wrong_password_is_told_and_not_shown(self, there: StandIn) -> None:
        told = self.told(Cluster(knobs(there, password="barley")))
        assert "User or password is not right" in told
        assert "barley" not in told

    def test_a_certificate_that_is_not_trusted(self, tmp_path: Path) -> None:
        with StandIn(certificate=self_signed(tmp_path)) as there:
            told = self.told(Cluster(RetrieveSettings(opensearch=OpenSearchSettings(address=there.address))))
        assert "retrieve.opensearch.ca" in told

    def test_a_file_of_certificates_that_is_none(self, there: StandIn, tmp_path: Path) -> None:
        (tmp_path / "ca.pem").write_text("no certificate")
        address = there.address.replace("http:", "https:")
        with pytest.raises(LibraryError, match=r"ca\.pem can't be read.*retrieve\.opensearch\.ca"):
            Cluster(knobs(there, address=address, ca=str(tmp_path / "ca.pem")))

    def test_an_index_that_is_gone(self, cluster: Cluster) -> None:
        assert "is gone from the OpenSearch" in self.told(cluster)

    def test_one_that_is_slow(self, there: StandIn) -> None:
        go = Event()

        def wait(method: str, path: str) -> None:
            go.wait(5)

        there.spoil = wait
        told = self.told(Cluster(knobs(there, seconds=0.2)))
        go.set()
        assert "no answer" in told
        assert "0.2 s" in told

    @pytest.mark.parametrize(
        ("status", "kind", "said"),
        [
            (429, "es_rejected_execution_exception", "too much to do"),
            (409, "version_conflict_engine_exception", "Another program changed the library"),
            (403, "cluster_block_exception", r"is refused (cluster_block_exception)"),
            (400, "parsing_exception", "not understood"),
            (503, "master_not_discovered_exception", "not understood"),
        ],
    )
    def test_what_it_refuses(self, cluster: Cluster, there: StandIn, status: int, kind: str, said: str) -> None:
        there.spoil = lambda method, path: (status, {"error": {"type": kind, "reason": "my allergy"}, "status": status})
        told = self.told(cluster)
        assert said in told
        assert "allergy" not in told

    @pytest.mark.parametrize("answer", [(418, "a teapot"), (500, ["a list"]), (200, {"hits": 3}), (200, "not JSON")])
    def test_what_is_no_opensearch(self, cluster: Cluster, there: StandIn, answer: tuple[int, object]) -> None:
        there.spoil = lambda method, path: answer
        assert "not understood" in self.told(cluster)

    def test_shards_that_failed_are_no_empty_answer(self, cluster: Cluster, there: StandIn) -> None:
        shards = {"_shards": {"total": 2, "successful": 1, "failed": 1}, "hits": {"hits": []}}
        there.spoil = lambda method, path: (200, shards)
        assert "shards" in self.told(cluster)

    @pytest.mark.parametrize(
        ("status", "kind", "said"),
        [
            (409, "version_conflict_engine_exception", "Another program changed the library"),
            (400, "mapper_parsing_exception", r"refused a passage \(mapper_parsing_exception\)"),
        ],
    )
    def test_a_passage_that_is_refused(
        self, cluster: Cluster, there: StandIn, status: int, kind: str, said: str
    ) -> None:
        there.refuse = {"status": status, "error": {"type": kind, "reason": "my allergy"}}
        with pytest.raises(LibraryError, match=said):
            brought(cluster.index("kitchen"), PASSAGES)
        assert cluster.marks([cluster.index("kitchen")]) == {}

    @pytest.mark.parametrize("address", ["search:9200", "ftp://search", "https://ann:oats@search:9200"])
    def test_an_address_that_is_none(self, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SEQUITUR_RETRIEVE__OPENSEARCH__ADDRESS", address)
        with pytest.raises(SettingsError, match=r"retrieve\.opensearch\.address") as caught:
            load()
        assert "oats" not in str(caught.value)
