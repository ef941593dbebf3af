"""BM25 (Robertson et al., TREC-3; Lucene's form of it) over library indexes, by Pyserini.

An index is a Lucene index as Pyserini makes it (fields `id`, `contents`, `raw`), whose last commit also states its
format; `assistant.library.index` writes it. It may also have a field `keywords`: words by which a passage is found
without containing them. They are indexed only, so that no search returns them, and their score is added to that of
`contents`.
"""

from __future__ import annotations

import json
import logging
import os
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import time_ns
from typing import Any

import numpy as np

from assistant.errors import LibraryError
from assistant.retrieve import jvm
from assistant.retrieve.external_records import external_passage
from assistant.types import Passage, full_title

_LOG = logging.getLogger(__name__)
FORMAT = "1"
FORMAT_KEY = "sequitur.format"
MANIFEST_KEY = "sequitur.manifest"
CONTENTS, KEYWORDS = "contents", "keywords"
# A query is cut to this many characters and Lucene's limit of unique terms is raised to as many: no query exceeds it.
QUERY_CHARS = 20_000
# Nanoseconds. Modification times are coarse, so that a more recent one can't distinguish two commits.
SETTLED_NANOSECONDS = 2_000_000_000
# How many passages are read at a time, so that searches needn't wait long.
BATCH = 200
_decode = json.JSONDecoder().raw_decode  # what `json.loads` does, in four fifths of its time
REBUILD_HINT = (
    "make it again with: python -m assistant index PATH... --library NAME "
    "(a published one with --prebuilt NAME; the starter library is made again when Sequitur starts)"
)


class Bm25:
    """A `Retriever` over one or several indexes, which are searched as one.

    The indexes share their term statistics, so that passages of a small index have neither an advantage nor a
    disadvantage. A commit to any of them is seen by the next search.
    """

    def __init__(self, *folders: Path, k1: float = 0.9, b: float = 0.4) -> None:
        """Open the indexes.

        Raises:
            LibraryError: an index is missing, corrupt or of another version, or Java can't be started.
        """
        self._folders = folders
        self._weights = (k1, b)
        self._modified: list[int] = []
        self._snapshot = jvm.call(_Snapshot, folders, k1, b)

    def search(self, query: str, k: int) -> list[Passage]:
        """At most `k` passages, best first. The query is plain text: Lucene's syntax means nothing in it.

        Raises:
            LibraryError: an index can't be read any more.
        """
        text = searchable(query)
        return jvm.call(lambda: self._current().search(text, k)) if text and k > 0 else []

    def get(self, ids: Sequence[str]) -> list[Passage | None]:
        """The passage of each of these ids, None where there is none."""
        return jvm.call(lambda: self._current().get(ids)) if ids else []

    def passages(self) -> Iterator[Passage]:
        """Every passage, in the order of the index.

        Raises:
            LibraryError: an index can't be read any more.
        """
        snapshot = jvm.call(self._current)
        for start in range(0, snapshot.size, BATCH):
            yield from jvm.call(snapshot.slice, start, min(start + BATCH, snapshot.size))

    def segments(self) -> list[Segment]:
        """The parts that the index is made of now, as Lucene keeps them: a change adds some, and joins small ones.

        Raises:
            LibraryError: an index can't be read any more.
        """
        return jvm.call(lambda: self._current().segments())

    @property
    def state(self) -> str:
        """A text that names the commits which the next search sees; it differs after every change."""
        return " ".join(
            f"{folder.name}/{generation}"
            for folder, generation in zip(self._folders, _generations(self._folders), strict=True)
        )

    def __len__(self) -> int:
        """How many passages there are."""
        return jvm.call(lambda: self._current().count)

    def _current(self) -> _Snapshot:
        """The snapshot of the latest commits. Folders that have not changed for a while are not checked again."""
        modified = [_modified(folder) for folder in self._folders]
        if modified != self._modified or max(modified) > time_ns() - SETTLED_NANOSECONDS:
            if _generations(self._folders) != self._snapshot.generations:
                self._snapshot = _Snapshot(self._folders, *self._weights)
            self._modified = modified
        return self._snapshot


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of an index. What was put into it never changes, but may be removed: `gone` are the numbers of that.

    No other segment has its `name`, in no index. `read` gives its passages from one number to another, those that are
    gone left out.
    """

    name: str
    size: int
    gone: frozenset[int]
    read: Callable[[int, int], Sequence[Passage]]

    def passages(self) -> Iterator[tuple[int, Passage]]:
        """Those that aren't gone, each with its number, from 0 and below `size`.

        Raises:
            LibraryError: the index can't be read any more.
        """
        for start in range(0, self.size, BATCH):
            end = min(start + BATCH, self.size)
            numbers = (n for n in range(start, end) if n not in self.gone)
            yield from zip(numbers, jvm.call(self.read, start, end), strict=True)


class _Snapshot:
    """The indexes at one moment; closed once nothing refers to it. Lives on Java's thread."""

    def __init__(self, folders: Sequence[Path], k1: float, b: float) -> None:
        self.generations = _generations(folders)
        for folder in folders:
            read_manifest(folder)
        self._location = ", ".join(str(folder) for folder in folders)
        with reading(self._location):
            self._searcher = _open(folders)
            fields = _searched_fields(self._searcher)
        self._ranker = Ranker(self._searcher, k1, b, fields)
        self.count = int(self._searcher.object.reader.numDocs())
        self.size = int(self._searcher.object.reader.maxDoc())
        # At exit the process takes everything with it, Java included.
        weakref.finalize(self, jvm.call_later, _close, self._searcher).atexit = False

    def search(self, query: str, k: int) -> list[Passage]:
        with reading(self._location):
            return [_passage(raw, score) for raw, score in self._ranker.search(query, k)]

    def get(self, ids: Sequence[str]) -> list[Passage | None]:
        with reading(self._location):
            records = [self._searcher.object.doc_raw(id_) for id_ in ids]
        return [_passage(raw) if raw else None for raw in records]

    def slice(self, start: int, end: int) -> list[Passage]:
        """The passages with Lucene's document numbers from `start` to `end`, without deleted ones."""
        with reading(self._location):
            reader = self._searcher.object.reader
            live = jvm.java("org.apache.lucene.index.MultiBits").getLiveDocs(reader)
            stored = reader.storedFields()
            return [_passage(stored.document(n).get("raw")) for n in range(start, end) if live is None or live.get(n)]

    def segments(self) -> list[Segment]:
        with reading(self._location):
            leaves = self._searcher.object.reader.leaves()
            return [self._segment(leaves.get(n)) for n in range(leaves.size())]

    def _segment(self, leaf: Any) -> Segment:
        segment_reader = jvm.cast("org.apache.lucene.index.SegmentReader", leaf.reader())
        name = bytes(byte & 0xFF for byte in segment_reader.getSegmentInfo().info.getId()).hex()
        start, size = int(leaf.docBase), int(segment_reader.maxDoc())
        return Segment(name, size, _gone(segment_reader), lambda begin, end: self.slice(start + begin, start + end))


def _gone(segment: Any) -> frozenset[int]:
    """The numbers of what was removed from a segment since it was written; they come from Java 64 at a time."""
    live = segment.getLiveDocs()
    if live is None:
        return frozenset()
    words = jvm.java("org.apache.lucene.util.FixedBitSet").copyOf(live).getBits()
    bits = np.unpackbits(np.array(words, "<i8").view(np.uint8), bitorder="little")[: segment.maxDoc()]
    return frozenset(np.flatnonzero(bits == 0).tolist())


class Ranker:
    """BM25 as in Anserini's `SimpleSearcher`, with the same classes. Lives on Java's thread.

    `SimpleSearcher` returns hits from Java one object at a time, which takes longer than the search; arrays are faster.
    """

    def __init__(self, searcher: Any, k1: float, b: float, fields: Sequence[str] = (CONTENTS,)) -> None:
        """`searcher` is a LuceneSearcher; a passage scores the sum of what it scores in each of the `fields`."""
        reader = jvm.cast("org.apache.lucene.index.IndexReader", searcher.object.reader)
        self._index = jvm.java("org.apache.lucene.search.IndexSearcher")(reader)
        self._index.setSimilarity(jvm.java("org.apache.lucene.search.similarities.BM25Similarity")(k1, b))
        self._generator = jvm.java("io.anserini.search.query.BagOfWordsQueryGenerator")()
        self._analyzer = jvm.java("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()
        self._order = jvm.java("io.anserini.search.SearchCollection").BREAK_SCORE_TIES_BY_DOCID
        self._fields = fields

    def search(self, query: str, k: int) -> list[tuple[str | None, float]]:
        """The stored record and the score of each hit, best first."""
        top = self._index.search(self._lucene_query(query), k, self._order, True)
        hits = jvm.java("io.anserini.search.ScoredDocs").fromTopDocs(top, self._index)
        return [
            (document.get("raw"), score) for document, score in zip(hits.lucene_documents, hits.scores, strict=True)
        ]

    def _lucene_query(self, query: str) -> Any:
        field_queries = [self._generator.buildQuery(field, self._analyzer, query) for field in self._fields]
        if len(field_queries) == 1:
            return field_queries[0]
        builder = jvm.java("org.apache.lucene.search.BooleanQuery$Builder")()
        for field_query in field_queries:
            builder.add(field_query, jvm.java("org.apache.lucene.search.BooleanClause$Occur").SHOULD)
        return builder.build()


def searchable(query: str) -> str:
    """The part of a query that Lucene can search for, "" if there is none."""
    return query[:QUERY_CHARS].encode("utf-8", "replace").decode().strip()


def open_searcher(folder: Path) -> Any:
    """A LuceneSearcher of an index. Call it inside `jvm.call`."""
    jvm.java("org.apache.lucene.search.IndexSearcher").setMaxClauseCount(QUERY_CHARS)
    return jvm.searcher_class()(str(folder), index_reader=_NO_READER)


def read_manifest(folder: Path) -> dict[str, Any]:
    """What the last commit of an index states about its documents, {} if nothing.

    Raises:
        LibraryError: the index is missing, corrupt or of another version.
    """
    return jvm.call(_read_manifest, folder)


def passage_json(passage: Passage) -> str:
    """The JSON that an index stores for a passage; the searched field `contents` is full title, line break, text."""
    contents = f"{passage.full_title}\n{passage.text}" if passage.full_title else passage.text
    record: dict[str, str | int] = {
        "id": passage.id,
        "title": passage.title,
        "source": passage.source,
        "contents": contents,
    }
    if passage.page:
        record["page"] = passage.page
    if passage.heading:
        record["heading"] = passage.heading
    return json.dumps(record, ensure_ascii=False)


def passage_of(record: Mapping[str, Any], score: float = 0.0) -> Passage:
    """The passage in a record that `passage_json` wrote."""
    title, heading, contents = record["title"], record.get("heading", ""), record["contents"]
    head = full_title(title, heading)
    return Passage(
        id=record["id"],
        title=title,
        text=contents[len(head) + 1 :] if head else contents,
        score=score,
        source=record["source"],
        page=record.get("page", 0),
        heading=heading,
    )


@contextmanager
def reading(location: Path | str) -> Iterator[None]:
    """Turns what Java raises while reading an index into a LibraryError with a sentence for a person."""
    try:
        yield
    except jvm.java_exception() as error:
        if not error.classname:
            raise
        kind = str(error.classname).rpartition(".")[2]
        if kind != "IndexNotFoundException":  # there is none yet at the first start, and the sentence says all of it
            _LOG.warning("reading %s failed: %s", location, error)
        raise LibraryError(_sentence(kind, location)) from error


def no_index_in(location: Path | str) -> str:
    """The sentence for a person about a folder without a complete index."""
    return f"There is no complete index in {location}; {REBUILD_HINT}."


def _sentence(kind: str, location: Path | str) -> str:
    if kind in {"IndexNotFoundException", "NoSuchFileException", "FileNotFoundException"}:
        return no_index_in(location)
    if kind.startswith("IndexFormatToo"):
        return f"The index in {location} is of another version; remove that folder and {REBUILD_HINT}."
    return f"The index in {location} can't be read; remove that folder and {REBUILD_HINT}."


def _read_manifest(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise LibraryError(no_index_in(folder))
    with reading(folder):
        directory = jvm.java("org.apache.lucene.store.FSDirectory").open(_java_path(folder))
        try:
            data = jvm.java("org.apache.lucene.index.SegmentInfos").readLatestCommit(directory).getUserData()
        finally:
            directory.close()
    if data.get(FORMAT_KEY) != FORMAT:
        raise LibraryError(_sentence("IndexFormatTooOldException", folder))
    manifest: dict[str, Any] = json.loads(data.get(MANIFEST_KEY) or "{}")
    return manifest


def _modified(folder: Path) -> int:
    """When a file was last added to or removed from the folder, in nanoseconds; 0 if there is no folder."""
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0


def _generations(folders: Sequence[Path]) -> tuple[str, ...]:
    """Each index's latest commit, "" where there is none: its number, and its time, as a library may be made anew."""
    return tuple(_generation(folder) for folder in folders)


def _generation(folder: Path) -> str:
    """Lucene numbers its commits in base 36: `segments_z` comes before `segments_10`."""
    try:
        with os.scandir(folder) as files:
            commits = [file for file in files if file.name.startswith("segments_")]
        newest = max(commits, key=lambda file: (len(file.name), file.name), default=None)
        return f"{newest.name}:{newest.stat().st_mtime_ns}" if newest else ""
    except OSError:
        return ""


def _open(folders: Sequence[Path]) -> Any:
    """A LuceneSearcher over all the folders. It opens one by itself; over several, its reader is replaced."""
    searcher = open_searcher(folders[0])
    if len(folders) > 1:
        readers = [searcher.object.reader, *map(_open_reader, folders[1:])]
        jvm.set_field(searcher.object, "reader", jvm.java("org.apache.lucene.index.MultiReader")(*readers))
    return searcher


def _searched_fields(searcher: Any) -> tuple[str, ...]:
    """The fields to search; an index without keywords is searched as if there were no such field."""
    reader = jvm.cast("org.apache.lucene.index.IndexReader", searcher.object.reader)
    has_keywords = jvm.java("org.apache.lucene.index.MultiTerms").getTerms(reader, KEYWORDS) is not None
    return (CONTENTS, KEYWORDS) if has_keywords else (CONTENTS,)


# Given anything here, LuceneSearcher doesn't open the index a second time for statistics that are not used.
_NO_READER: Mapping[str, str] = {"reader": "none"}


def _open_reader(folder: Path) -> Any:
    directory = jvm.java("org.apache.lucene.store.FSDirectory").open(_java_path(folder))
    reader = jvm.java("org.apache.lucene.index.DirectoryReader").open(directory)
    return jvm.cast("org.apache.lucene.index.IndexReader", reader)


def _close(searcher: Any) -> None:
    searcher.object.close()


def _java_path(folder: Path) -> Any:
    return jvm.java("java.nio.file.Paths").get(str(folder))


def _passage(text: str | None, score: float = 0.0) -> Passage:
    record, _ = _decode(text or "")
    return passage_of(record, score) if "source" in record else external_passage(record, score)
