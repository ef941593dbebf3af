import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event

import numpy as np
import pytest

from assistant.errors import DamagedIndexError, LibraryError, ModelError
from assistant.library.vectors import DenseShelves, MergedRetriever, dense_retriever
from assistant.library.writer import writing
from assistant.parts import load_encoder
from assistant.retrieve import dense, encoded
from assistant.retrieve.bm25 import Bm25, Segment
from assistant.retrieve.dense import Dense, build_dense, read_manifest, update_dense
from assistant.retrieve.retrievers.hybrid import Hybrid
from assistant.settings import RetrieveSettings, Settings
from assistant.types import Passage
from tests.scripted import by_id, library_of

WORDS = ["cat", "dog", "fish", "bird", "tree", "stone", "house", "river"]
PASSAGES = [Passage(word, "", f"{word} {word} animal") for word in WORDS]


class WordEmbedder:
    """One dimension a known word, so that cosines can be told by hand; counts what it is asked to encode."""

    def __init__(self, name: str = "words", fails_after: int = 10**9) -> None:
        self.name = name
        self.encoded: list[str] = []
        self.fails_after = fails_after

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        if len(self.encoded) > self.fails_after:
            raise KeyboardInterrupt
        self.encoded += [text for text in texts if text.strip()]
        vectors = np.array([[text.split().count(word) for word in WORDS] + [0.1] for text in texts], dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def quiet(done: int, total: int) -> None:
    pass


def made(folder: Path, passages: Sequence[Passage] = PASSAGES, state: str = "") -> Dense:
    build_dense(folder, passages, WordEmbedder(), quiet, state)
    return Dense(folder, WordEmbedder(), by_id(passages))


def ids(passages: Sequence[Passage]) -> list[str]:
    return [one.id for one in passages]


def test_the_nearest_passage_comes_first_with_its_cosine(tmp_path):
    found = made(tmp_path).search("dog", 2)
    assert found[0].id == "dog"
    assert found[0].score == pytest.approx((2 + 0.01) / np.sqrt(4.01 * 1.01), abs=1e-4)
    assert found[0].text == "dog dog animal"
    assert found[0].score > found[1].score


@pytest.mark.parametrize(("query", "k", "count"), [("dog", 100, 8), ("dog", 0, 0), ("dog", -1, 0), ("  ", 5, 0)])
def test_odd_questions(tmp_path, query, k, count):
    assert len(made(tmp_path).search(query, k)) == count


def test_an_empty_corpus(tmp_path):
    empty = made(tmp_path, [])
    assert empty.search("dog", 5) == []
    assert len(empty) == 0


def test_a_long_passage_counts_as_its_best_piece(tmp_path):
    long = Passage("long", "", "A house stands here. " * 60 + "The river is near the river. " * 5)
    found = made(tmp_path, [long, *PASSAGES])
    assert len(found) == 9
    assert read_manifest(tmp_path).rows > 9
    assert len(found.search("river", 9)) == len(set(ids(found.search("river", 9)))) == 9
    assert "long" in ids(found.search("river", 2))
    assert "long" in ids(found.search("house", 2))


def test_what_is_longer_than_the_window_is_told(tmp_path):
    assert made(tmp_path / "short").cut == 0
    long = Passage("long", "", "A house stands here. " * 60)
    assert made(tmp_path / "long", [long, *PASSAGES]).cut == 1


def test_a_window_of_its_own_is_kept_to(tmp_path):
    class Narrow(WordEmbedder):
        window = 4

        def count(self, text: str) -> int:
            return len(text.split())

        def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
            return self.encode([f"{text} river" for text in texts])

    passages = [Passage("a", "Title", "A cat cat. A dog dog. A tree tree."), Passage("b", "", "river")]
    build_dense(tmp_path, passages, Narrow(), quiet)
    found = Dense(tmp_path, Narrow(), by_id(passages))
    assert found.pieces == {"a": 3, "b": 1}
    assert ids(found.search("stone", 2)) == ["b", "a"]


def test_many_pieces_of_one_passage_do_not_crowd_out_the_others(tmp_path):
    long = Passage("long", "", "The river is a river here. " * 400)
    passages = [long, *PASSAGES]
    found = made(tmp_path, passages)
    assert found.pieces["long"] > 10
    assert len(found.search("river", 9)) == 9
    assert len(found.search("river", 2)) == 2


def test_two_passages_of_one_text_are_both_found(tmp_path):
    twins = [Passage("a", "", "cat"), Passage("b", "", "cat")]
    assert set(ids(made(tmp_path, twins).search("cat", 2))) == {"a", "b"}


def test_only_new_texts_are_encoded(tmp_path):
    made(tmp_path)
    embedder = WordEmbedder()
    changed = [*PASSAGES[1:], Passage("new", "", "tree river")]
    build_dense(tmp_path, changed, embedder, quiet)
    assert embedder.encoded == ["\ntree river"]
    found = Dense(tmp_path, embedder, by_id(changed))
    assert "cat" not in ids(found.search("cat", 9))
    assert len(found) == 8
    assert len(list(tmp_path.glob("*.faiss"))) == 1


def test_what_was_removed_is_forgotten(tmp_path):
    made(tmp_path)
    build_dense(tmp_path, PASSAGES[:5], WordEmbedder(), quiet)
    assert len((tmp_path / "keys.txt").read_text().split()) == 8, "little would be won"
    build_dense(tmp_path, PASSAGES[5:7], WordEmbedder(), quiet)
    assert len((tmp_path / "keys.txt").read_text().split()) == 2
    embedder = WordEmbedder()
    build_dense(tmp_path, PASSAGES[5:], embedder, quiet)
    assert embedder.encoded == ["\nriver river animal"]
    assert [made(tmp_path, PASSAGES[5:]).search(word, 1)[0].id for word in WORDS[5:]] == WORDS[5:]


KILLED = """
import os, signal, sys
from pathlib import Path
from assistant.retrieve.dense import build_dense
from tests.test_dense import PASSAGES, WordEmbedder
from assistant.retrieve import encoded
encoded.BATCH = 2
when = sys.argv[2]
def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)
if when == "index":
    os.replace = Path.replace = kill
build_dense(Path(sys.argv[1]), PASSAGES, WordEmbedder(), kill if when == "encoding" else lambda done, total: None)
"""


@pytest.mark.parametrize(("when", "left"), [("encoding", 6), ("index", 0)])
def test_a_killed_build_leaves_the_old_index_and_goes_on(tmp_path, when, left):
    made(tmp_path, PASSAGES[:1])
    (tmp_path / "vectors.f32").write_bytes(b"")
    (tmp_path / "keys.txt").write_bytes(b"")
    command = [sys.executable, "-c", KILLED, str(tmp_path), when]
    killed = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert ids(Dense(tmp_path, WordEmbedder(), by_id(PASSAGES)).search("cat", 5)) == ["cat"]
    embedder = WordEmbedder()
    build_dense(tmp_path, PASSAGES, embedder, quiet)
    assert len(embedder.encoded) == left
    assert len(Dense(tmp_path, embedder, by_id(PASSAGES))) == 8
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("lost", ["vectors.f32", "keys.txt"])
def test_vectors_that_were_lost_are_made_again(tmp_path, lost):
    made(tmp_path)
    (tmp_path / lost).unlink()
    embedder = WordEmbedder()
    build_dense(tmp_path, PASSAGES, embedder, quiet)
    assert len(embedder.encoded) == 8
    assert ids(Dense(tmp_path, embedder, by_id(PASSAGES)).search("river", 1)) == ["river"]


def test_a_note_of_the_encoder_that_is_damaged_is_refused(tmp_path):
    made(tmp_path)
    (tmp_path / "encoder.json").write_bytes(b"\xff{")
    with pytest.raises(LibraryError, match="remove the folder"):
        build_dense(tmp_path, PASSAGES, WordEmbedder(), quiet)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="asks Linux what is mapped")
@pytest.mark.parametrize("exact", [100, 0], ids=["exact", "lists"])
def test_the_index_is_mapped_not_read(tmp_path, exact):
    build_dense(tmp_path, PASSAGES, WordEmbedder(), quiet, exact=exact)
    found = Dense(tmp_path, WordEmbedder(), by_id(PASSAGES))
    assert str(next(tmp_path.glob("*.faiss"))) in Path("/proc/self/maps").read_text()
    assert ids(found.search("dog", 1)) == ["dog"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LibraryError, match="can't be written"):
        build_dense(tmp_path / "file" / "dense", PASSAGES, WordEmbedder(), quiet)


def test_an_interrupted_build_goes_on_where_it_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(encoded, "BATCH", 2)
    with pytest.raises(KeyboardInterrupt):
        build_dense(tmp_path, PASSAGES, WordEmbedder(fails_after=3), quiet)
    with pytest.raises(LibraryError, match="no dense index"):
        Dense(tmp_path, WordEmbedder(), by_id(PASSAGES))
    with (tmp_path / "vectors.f32").open("ab") as file:
        file.write(b"half a vector")
    embedder, seen = WordEmbedder(), []
    build_dense(tmp_path, PASSAGES, embedder, lambda done, total: seen.append((done, total)))
    assert len(embedder.encoded) == 4
    assert seen == [(2, 4), (4, 4)]
    assert ids(Dense(tmp_path, embedder, by_id(PASSAGES)).search("river", 1)) == ["river"]


def test_another_encoder_is_refused(tmp_path):
    made(tmp_path)
    with pytest.raises(LibraryError, match="encoder 'words', not with 'other'"):
        Dense(tmp_path, WordEmbedder("other"), by_id(PASSAGES))
    with pytest.raises(LibraryError, match="another encoder"):
        build_dense(tmp_path, PASSAGES, WordEmbedder("other"), quiet)


def test_a_missing_index_says_so(tmp_path):
    with pytest.raises(LibraryError, match="no dense index"):
        Dense(tmp_path / "none", WordEmbedder(), by_id(PASSAGES))


@pytest.mark.parametrize("damage", ["cut", "junk", "gone", "manifest", "rows"])
def test_a_corrupt_index_is_refused(tmp_path, damage):
    made(tmp_path)
    index, manifest = next(tmp_path.glob("*.faiss")), tmp_path / "manifest.json"
    if damage == "cut":
        index.write_bytes(index.read_bytes()[: index.stat().st_size // 2])
    elif damage == "junk":
        index.write_bytes(b"junk" * 100)
    elif damage == "gone":
        index.unlink()
    elif damage == "manifest":
        manifest.write_text("{")
    else:
        rows = next(tmp_path.glob("*[0-9a-f].json"), None) or pytest.fail("there are no rows")
        entries = json.loads(rows.read_text())
        rows.write_text(json.dumps({name: ones[1:] for name, ones in entries.items()}))
    expected = LibraryError if damage == "manifest" else DamagedIndexError
    with pytest.raises(expected, match="remove the folder"):
        Dense(tmp_path, WordEmbedder(), by_id(PASSAGES))


def test_a_passage_that_is_gone_is_left_out(tmp_path):
    build_dense(tmp_path, PASSAGES, WordEmbedder(), quiet)
    found = Dense(tmp_path, WordEmbedder(), by_id(PASSAGES[1:]))
    assert "cat" not in ids(found.search("cat", 3))


def test_the_approximate_index_agrees_with_the_exact_one(tmp_path, monkeypatch):
    generator = np.random.default_rng(7)
    vectors = generator.normal(size=(2000, 32)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

    class Vectors:
        name = "vectors"

        def encode(self, texts: Sequence[str]) -> np.ndarray:
            return np.stack([vectors[int(text.split()[-1])] if text.strip() else vectors[0] for text in texts])

    passages = [Passage(str(n), "", f"number {n}") for n in range(2000)]
    build_dense(tmp_path / "exact", passages, Vectors(), quiet)
    monkeypatch.setattr(dense, "MAX_EXACT_VECTORS", 1000)
    monkeypatch.setattr(dense, "PROBES", 60)
    build_dense(tmp_path / "lists", passages, Vectors(), quiet)
    exact, lists = (Dense(tmp_path / one, Vectors(), by_id(passages)) for one in ("exact", "lists"))
    queries = [f"number {n}" for n in range(0, 2000, 40)]
    shared = [len(set(ids(exact.search(q, 10))) & set(ids(lists.search(q, 10)))) for q in queries]
    assert sum(shared) / (10 * len(queries)) > 0.9
    assert all(lists.search(query, 1)[0].id == query.split()[1] for query in queries)


class Fixed:
    def __init__(self, *passages: Passage) -> None:
        self.passages, self.asked = list(passages), 0

    def search(self, query: str, k: int) -> list[Passage]:
        self.asked = k
        return self.passages[:k]


def test_hybrid_fuses_by_reciprocal_rank():
    one, two = Fixed(PASSAGES[0], PASSAGES[1]), Fixed(PASSAGES[1], PASSAGES[2])
    found = Hybrid({"bm25": one, "dense": two}, depth=7).search("any", 2)
    assert [(passage.id, passage.found_by) for passage in found] == [("dog", ("bm25", "dense")), ("cat", ("bm25",))]
    assert found[0].score == pytest.approx(1 / 61 + 1 / 62)
    assert one.asked == two.asked == 7


def test_hybrid_asks_for_as_many_as_it_is_asked_for():
    one = Fixed(*PASSAGES)
    assert len(Hybrid({"one": one}, depth=2).search("any", 6)) == 6


@pytest.mark.lucene
def test_a_librarys_vectors_follow_its_documents(tmp_path):
    folder = tmp_path / "lucene"
    folder.mkdir()
    with writing(folder) as writer:
        writer.add("first", PASSAGES[:4])
        writer.add("second", PASSAGES[4:])
        writer.commit({})
    library, settings, embedder = Bm25(folder), Settings(data_dir=tmp_path), WordEmbedder("org/words")
    found = dense_retriever("lib", library, settings, embedder, quiet)
    assert ids(found.search("stone", 1)) == ["stone"]
    count = len(embedder.encoded)
    dense_retriever("lib", library, settings, embedder, lambda done, total: pytest.fail("encoded again"))
    assert len(embedder.encoded) == count
    with writing(folder) as writer:
        writer.remove("second")
        writer.add("third", [Passage("new", "New", "river river")])
        writer.commit({})
    found = dense_retriever("lib", library, settings, embedder, quiet)
    assert sorted(ids(list(library.passages()))) == sorted([*ids(PASSAGES[:4]), "new"])
    assert len(found) == 5
    assert found.search("river", 1)[0].title == "New"


@pytest.mark.lucene
@pytest.mark.parametrize("exact", [100, 0], ids=["exact", "lists"])
def test_a_librarys_damaged_index_is_made_again_from_its_vectors(tmp_path, monkeypatch, exact):
    monkeypatch.setattr(dense, "MAX_EXACT_VECTORS", exact)
    settings, embedder = Settings(data_dir=tmp_path), WordEmbedder()
    library_of(settings, "one", PASSAGES)
    shelves = DenseShelves(settings, lambda _progress: embedder)
    shelves.open(["one"], 20)
    count = len(embedder.encoded)
    index = next(tmp_path.rglob("*.faiss"))
    index.write_bytes(index.read_bytes()[:-20])
    assert ids(shelves.open(["one"], 20).search("stone", 1)) == ["stone"]
    assert embedder.encoded[count:] == ["stone"]


@pytest.mark.lucene
def test_why_another_library_could_not_be_encoded_is_not_told(tmp_path):
    class Failing(SlowEmbedder):
        def encode(self, texts: Sequence[str]) -> np.ndarray:
            vectors = super().encode(texts)
            if any("secret" in text for text in texts):
                raise LibraryError("The secret is out.")
            return vectors

    settings, embedder = Settings(data_dir=tmp_path), Failing()
    library_of(settings, "mine", [Passage("secret", "", "secret animal")])
    library_of(settings, "yours", PASSAGES)
    shelves = DenseShelves(settings, lambda _progress: embedder)
    with pytest.raises(LibraryError, match="being encoded"):
        shelves.open(["mine"], 0.1)
    embedder.go.set()
    assert ids(shelves.open(["yours"], 20).search("cat", 1)) == ["cat"]
    with pytest.raises(LibraryError, match="The secret is out"):
        shelves.open(["mine"], 20)


def test_together_goes_by_score():
    high, low = replace(PASSAGES[0], score=0.9), replace(PASSAGES[1], score=0.2)
    both = MergedRetriever([Fixed(low), Fixed(high)])
    assert both.search("any", 5) == [high, low]
    assert both.search("any", 1) == [high]
    assert both.search("any", 0) == []


class SlowEmbedder(WordEmbedder):
    """Waits for `go` before each batch of passages."""

    def __init__(self) -> None:
        super().__init__("slow")
        self.go = Event()

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        if any("animal" in text for text in texts):
            assert self.go.wait(20)
        return super().encode(texts)


@pytest.mark.lucene
def test_libraries_are_encoded_in_the_background_and_searched_as_one(tmp_path):
    settings, embedder = Settings(data_dir=tmp_path), SlowEmbedder()
    library_of(settings, "one", PASSAGES[:4])
    library_of(settings, "two", PASSAGES[4:])
    shelves = DenseShelves(settings, lambda _progress: embedder)
    with pytest.raises(LibraryError, match=r"being encoded.*ask again"):
        shelves.open(["one", "two"], 0.1)
    embedder.go.set()
    found = shelves.open(["one", "two"], 20)
    assert {ids(found.search(word, 1))[0] for word in WORDS} == set(WORDS)
    count = len(embedder.encoded)
    library_of(settings, "two", [*PASSAGES[4:], Passage("new", "", "tree river")])
    assert "new" in ids(shelves.open(["one", "two"], 20).search("tree river", 1))
    assert embedder.encoded[count:] == ["\ntree river", "tree river", "tree river"]


@pytest.mark.lucene
def test_an_encoder_that_cannot_be_had_says_so_each_time(tmp_path):
    settings = Settings(data_dir=tmp_path, retrieve=RetrieveSettings(encoder=str(tmp_path / "none")))
    library_of(settings, "one", PASSAGES)
    shelves = DenseShelves(settings, lambda progress: load_encoder(settings, progress))
    for _ in range(2):
        with pytest.raises(LibraryError, match="There is no model at"):
            shelves.open(["one"], 20)


def test_a_folder_without_an_encoder_is_refused(tmp_path):
    settings = Settings(data_dir=tmp_path, retrieve=RetrieveSettings(encoder=str(tmp_path)))
    with pytest.raises(ModelError, match="holds no complete Sentence-BERT model"):
        load_encoder(settings, quiet)


def test_a_full_disk_is_told_and_the_index_before_stays(tmp_path):
    resource = pytest.importorskip("resource")
    found = made(tmp_path, state="before")
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, most[1]))
    try:
        with pytest.raises(LibraryError, match="free some space"):
            build_dense(tmp_path, PASSAGES[:4], WordEmbedder(), quiet, "after")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)
    again = Dense(tmp_path, WordEmbedder(), by_id(PASSAGES))
    assert again.state == "before"
    assert ids(again.search("cat", 3)) == ids(found.search("cat", 3))


def changed(folder: Path, change: str, n: int = 0) -> None:
    """A change of the Lucene index in `folder`, committed."""
    with writing(folder) as writer:
        if change == "add":
            writer.add(f"more{n}", [Passage(f"more{n}-{i}", "", said(100 * n + i)) for i in range(3)])
        elif change == "remove":
            writer.remove(f"more{n}")
        else:
            writer.remove("first")
            writer.add("first", [replace(one, text=f"{one.text} {said(n)}") for one in PASSAGES[:4]])
        writer.commit({"change": f"{change} {n}"})


def said(n: int) -> str:
    """A text that no other number has, and whose vector none has either."""
    return " ".join(word for k, word in enumerate(WORDS, 1) for _ in range((n * k * k + k) % 23))


def same(found: Dense, fresh: Dense) -> bool:
    """Whether both find the same passages with the same scores, whatever is asked for."""
    asked = [*WORDS, "cat river", "dog stone tree", "house bird fish cat"]
    return all(found.search(query, k) == fresh.search(query, k) for query in asked for k in (1, 5, 1000))


@pytest.mark.lucene
def test_after_every_change_the_same_is_found_as_in_an_index_made_anew(tmp_path):
    folder = tmp_path / "lucene"
    folder.mkdir()
    with writing(folder) as writer:
        writer.add("first", PASSAGES[:4])
        writer.add("second", [*PASSAGES[4:], Passage("long", "", "A house stands here. " * 60 + "The river. " * 5)])
        writer.commit({})
    library, embedder = Bm25(folder), WordEmbedder("org/words")
    changes = [
        *(("add", n) for n in range(14)), ("replace", 1), *(("remove", n) for n in range(3, 9)), ("replace", 2),
        *(("add", n) for n in range(20, 32)), *(("remove", n) for n in range(20, 32, 2)),
    ]  # fmt: skip
    for at, change in enumerate([("add", 99), *changes]):
        changed(folder, *change)
        found = dense_retriever("lib", library, Settings(data_dir=tmp_path / "kept"), embedder, quiet)
        fresh = dense_retriever("lib", library, Settings(data_dir=tmp_path / f"anew{at}"), embedder, quiet)
        assert found.pieces == fresh.pieces
        assert set(found.pieces) == {one.id for one in library.passages()}
        assert same(found, fresh), change


def encoded_library(tmp_path: Path) -> tuple[Path, Bm25, Settings, WordEmbedder]:
    """A library in Lucene with an index of vectors: its folder, itself, and what it was encoded with."""
    folder = tmp_path / "lucene"
    folder.mkdir()
    with writing(folder) as writer:
        writer.add("first", PASSAGES)
        writer.commit({})
    library, settings, embedder = Bm25(folder), Settings(data_dir=tmp_path), WordEmbedder()
    dense_retriever("lib", library, settings, embedder, quiet)
    return folder, library, settings, embedder


@pytest.mark.lucene
def test_of_what_did_not_change_nothing_is_read_encoded_or_written(tmp_path, monkeypatch):
    folder, library, settings, embedder = encoded_library(tmp_path)
    [kept] = tmp_path.rglob("*.faiss")
    before, read = kept.stat().st_ino, []
    passages = Segment.passages
    monkeypatch.setattr(Segment, "passages", lambda one: read.append(one.size) or passages(one))
    encoded = len(embedder.encoded)
    changed(folder, "add", 1)
    dense_retriever("lib", library, settings, embedder, quiet)
    assert read == [3]
    assert len(embedder.encoded) == encoded + 3
    assert kept.stat().st_ino == before
    changed(folder, "remove", 1)
    assert len(dense_retriever("lib", library, settings, embedder, quiet)) == len(PASSAGES)
    assert read == [3]
    assert len(list(tmp_path.rglob("*.faiss"))) == 1


@pytest.mark.lucene
def test_an_index_of_an_earlier_version_is_made_again_from_its_vectors(tmp_path, caplog):
    settings, embedder = Settings(data_dir=tmp_path), WordEmbedder()
    library_of(settings, "one", PASSAGES)
    library = Bm25(settings.libraries_dir / "one")
    dense_retriever("one", library, settings, embedder, quiet)
    [index] = tmp_path.rglob("*.faiss")
    manifest = {"encoder": "words", "dimension": 9, "index": index.name, "pieces": 1, "ids": ids(PASSAGES)}
    (index.parent / "manifest.json").write_text(json.dumps({**manifest, "state": library.state}))
    count = len(embedder.encoded)
    with pytest.raises(LibraryError, match="of an earlier version; remove the folder"):
        Dense(index.parent, embedder, library.get)
    found = dense_retriever("one", library, settings, embedder, lambda *_: pytest.fail("encoded again"))
    assert "of an earlier version; it is made again" in caplog.text
    assert len(embedder.encoded) == count
    assert ids(found.search("stone", 1)) == ["stone"]


KILLED_UPDATE = """
import os, signal, sys
from pathlib import Path
from assistant.library.vectors import dense_retriever
from assistant.retrieve.bm25 import Bm25, Segment
from assistant.settings import Settings
from tests.test_dense import WordEmbedder, quiet
folder, left = Path(sys.argv[1]), int(sys.argv[2])
replace = Path.replace
def counted(*given):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(*given)
Path.replace = counted
dense_retriever("lib", Bm25(folder / "lucene"), Settings(data_dir=folder), WordEmbedder(), quiet)
"""


@pytest.mark.lucene
@pytest.mark.parametrize("left", range(4), ids=["keys", "rows", "index", "manifest"])
def test_an_update_that_is_killed_at_any_file_leaves_what_was_and_goes_on(tmp_path, left):
    folder = tmp_path / "lucene"
    folder.mkdir()
    with writing(folder) as writer:
        writer.add("first", PASSAGES)
        writer.commit({})
    library, settings, embedder = Bm25(folder), Settings(data_dir=tmp_path), WordEmbedder()
    before = dense_retriever("lib", library, settings, embedder, quiet)
    changed(folder, "replace", 1)
    changed(folder, "add", 1)
    command = [sys.executable, "-c", KILLED_UPDATE, str(tmp_path), str(left)]
    killed = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    kept = next(tmp_path.rglob("manifest.json")).parent
    assert Dense(kept, embedder, library.get).pieces == before.pieces
    found = dense_retriever("lib", library, settings, embedder, quiet)
    anew = dense_retriever("lib", library, Settings(data_dir=tmp_path / "anew"), WordEmbedder(), quiet)
    assert same(found, anew)
    named = {part.file for part in read_manifest(kept).parts}
    assert {file.name.partition(".")[0] for file in kept.glob("*.faiss*")} == named
    assert len(list(kept.iterdir())) == 4 + 3 * len(named)


@pytest.mark.lucene
@pytest.mark.parametrize("kind", [".faiss", ".json", ".keys"])
def test_a_file_of_a_segment_that_is_lost_is_made_again(tmp_path, kind):
    folder, library, settings, embedder = encoded_library(tmp_path)
    [index] = tmp_path.rglob("*.faiss")
    index.with_suffix(kind).unlink()
    changed(folder, "add", 1)
    found = dense_retriever("lib", library, settings, embedder, quiet)
    assert same(found, dense_retriever("lib", library, Settings(data_dir=tmp_path / "anew"), WordEmbedder(), quiet))


def test_lists_leave_out_what_is_gone(tmp_path):
    @dataclass(frozen=True)
    class Part:
        name: str
        gone: frozenset[int]

        def passages(self) -> list[tuple[int, Passage]]:
            return list(enumerate(PASSAGES))

    for gone in ((), (0, 3), range(8)):
        update_dense(tmp_path, [Part("one", frozenset(gone))], WordEmbedder(), quiet, exact=0)
        left = [one.id for n, one in enumerate(PASSAGES) if n not in gone]
        found = Dense(tmp_path, WordEmbedder(), by_id(PASSAGES))
        assert sorted(ids(found.search("cat", 8))) == sorted(left)
        assert len(found) == len(left)
