"""Dense retrieval: passages as vectors in a FAISS index, ranked by the inner product with the query's.

For Sentence-BERT vectors (mean pooled, length 1) that is the cosine. Karpukhin et al., "Dense Passage Retrieval",
EMNLP 2020, with any encoder; Johnson et al., "Billion-scale similarity search with GPUs", 2019 (FAISS). Up to
`MAX_EXACT_VECTORS` vectors the search is exact, beyond that by inverted lists (IVF; Sivic and Zisserman, ICCV 2003).

What is indexed comes in segments, as Lucene keeps passages: what is in one never changes, but may be removed, and
small ones are joined to larger ones. Each has an index of its own here, so that a change costs what it changes. A
folder holds the vectors of all texts (`retrieve.encoded`); of each segment its index (`.faiss`), whose passages its
rows are (`.json`) and the keys of their texts (`.keys`); and `manifest.json`, which names them. It is written last:
killed before that, the folder is what it was.
"""

from __future__ import annotations

import json
import logging
import random
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from assistant.errors import DamagedIndexError, LibraryError, disk_errors_as
from assistant.protocols import Embedder, Progress
from assistant.retrieve.encoded import VectorStore, flush_to_disk, key_of, write_atomically
from assistant.retrieve.encoder_pieces import encoded_queries, texts_of
from assistant.types import Passage

_LOG = logging.getLogger(__name__)
MAX_EXACT_VECTORS = 100_000
# In a segment of more, lists of near vectors are searched (IVF). HNSW finds as many or more in the same time, but takes
# ten times as long to build: docs/results/retrieval.md. Lists are this many times the square root of the vectors; a
# search looks into so many of them, and they are learned from so many vectors each.
LISTS_PER_ROOT = 2
PROBES = 256
TRAINING_VECTORS_PER_LIST = 64
MANIFEST = "manifest.json"
_AGAIN = "remove the folder to have it made again"
INDEX, ROWS, KEYS = ".faiss", ".json", ".keys"
# Ids -> the passage of each, None where there is none; all at once, since a question to an index has to wait its turn.
Lookup = Callable[[Sequence[str]], Sequence[Passage | None]]


class Segment(Protocol):
    """A part of what is indexed, as `retrieve.bm25.Segment` has it."""

    @property
    def name(self) -> str:
        """What no other segment is called; "" of one that is always indexed anew."""
        ...

    @property
    def gone(self) -> frozenset[int]:
        """The numbers of the passages that were removed from it."""
        ...

    def passages(self) -> Iterable[tuple[int, Passage]]:
        """The others, each with its number."""
        ...


@dataclass(frozen=True, slots=True)
class Part:
    """What is kept of a segment, in files called `file`: how many rows its index has, and which of them are `gone`.

    `pieces` is the most rows of one passage; `removed` is how many passages had been removed from the segment.
    """

    segment: str
    file: str
    rows: int
    pieces: int
    removed: int
    gone: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a folder says of itself."""

    encoder: str
    dimension: int
    state: str
    parts: tuple[Part, ...]

    @property
    def rows(self) -> int:
        """How many vectors are searched."""
        return sum(part.rows - len(part.gone) for part in self.parts)


class Dense:
    """A `Retriever` over a folder that `update_dense` or `build_dense` made."""

    def __init__(self, folder: Path, embedder: Embedder, passages: Lookup) -> None:
        """Open the index; it stays on the disk and is mapped into memory.

        Args:
            folder: what the index was written to.
            embedder: the encoder that it was built with.
            passages: finds passages by their ids.

        Raises:
            LibraryError: the index is missing, or made with another encoder.
            DamagedIndexError: it is corrupt.
        """
        self._manifest = read_manifest(folder)
        if self._manifest.encoder != embedder.name:
            raise LibraryError(
                f"The dense index in {folder} was made with the encoder '{self._manifest.encoder}', not with "
                f"'{embedder.name}'; set retrieve.encoder to the first, or remove the folder to have it made again."
            )
        self._embedder = embedder
        self._passages = passages
        self._parts = [_OpenPart(folder, part, self._manifest.dimension) for part in self._manifest.parts]

    @property
    def state(self) -> str:
        """The `state` that the index was built for."""
        return self._manifest.state

    def __len__(self) -> int:
        """How many passages there are."""
        return len(self.pieces)

    @property
    def pieces(self) -> Mapping[str, int]:
        """How many vectors each passage has, by its id: its best one counts."""
        return Counter(passage_id for part in self._parts for passage_id in part.ids())

    @property
    def cut(self) -> int:
        """How many passages are longer than the encoder reads at once, and so have several vectors."""
        return sum(count > 1 for count in self.pieces.values())

    def search(self, query: str, k: int) -> list[Passage]:
        """At most `k` passages, best first; the score is the inner product. A passage that is gone is left out."""
        if k <= 0 or not query.strip() or not self._manifest.rows:
            return []
        nearest = list(self._best_scores(encoded_queries(self._embedder, [query]), k).items())[:k]
        passages = self._passages([passage_id for passage_id, _ in nearest])
        return [replace(passage, score=score) for passage, (_, score) in zip(passages, nearest, strict=True) if passage]

    def _best_scores(self, vector: NDArray[np.float32], k: int) -> dict[str, float]:
        """The scores of the nearest passages by id, best first: `k` of them, unless there are fewer.

        One passage may take many rows, so more are looked at until there are enough.
        """
        row_count = self._manifest.rows
        rows = 2 * k if any(part.pieces > 1 for part in self._manifest.parts) else k
        while True:
            rows = min(rows, row_count)
            best_scores: dict[str, float] = {}
            for score, passage in self._nearest(vector, rows):
                best_scores.setdefault(passage, score)
            if len(best_scores) >= k or rows == row_count:
                return best_scores
            rows *= 4

    def _nearest(self, vector: NDArray[np.float32], rows: int) -> list[tuple[float, str]]:
        """The scores of the nearest rows of all parts, with their passages' ids."""
        hits = [hit for part in self._parts for hit in part.search(vector, rows)]
        return sorted(hits, key=lambda hit: (-hit[0], hit[1]))[:rows]


class _OpenPart:
    """A part that can be searched."""

    def __init__(self, folder: Path, part: Part, dimension: int) -> None:
        self._rows = _read_rows(folder, part)
        self._gone = frozenset(part.gone)
        self._index = _open(folder, part, dimension)
        self._live = part.rows - len(part.gone)
        self._options = _search_parameters(part, self._index) if part.gone else None

    def ids(self) -> Iterable[str]:
        """The passage of each row that isn't gone."""
        return (passage_id for row, passage_id in enumerate(self._rows.ids) if row not in self._gone)

    def search(self, vector: NDArray[np.float32], rows: int) -> Iterable[tuple[float, str]]:
        """The scores of the nearest rows, at most so many, with their passages' ids."""
        if not self._live:
            return []
        scores, nearest_rows = self._index.search(vector, min(rows, self._live), params=self._options)
        return [
            (float(score), self._rows.ids[row])
            for row, score in zip(nearest_rows[0], scores[0], strict=True)
            if row >= 0
        ]


@dataclass(frozen=True, slots=True)
class Rows:
    """For each row of an index its passage's id, that one's number in its segment, and the key of its text."""

    ids: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _SingleSegment:
    """All that an index is to hold, as one segment."""

    of: Iterable[Passage]
    name: str = ""
    gone: frozenset[int] = frozenset()

    def passages(self) -> Iterable[tuple[int, Passage]]:
        return enumerate(self.of)


def build_dense(
    folder: Path,
    passages: Iterable[Passage],
    embedder: Embedder,
    progress: Progress,
    state: str = "",
    exact: int | None = None,
) -> None:
    """Make the dense index of these passages in `folder`, as one segment; see `update_dense`."""
    update_dense(folder, [_SingleSegment(passages)], embedder, progress, state, exact)


def update_dense(
    folder: Path,
    segments: Sequence[Segment],
    embedder: Embedder,
    progress: Progress,
    state: str = "",
    exact: int | None = None,
) -> None:
    """Make the dense index in `folder`, or bring it up to date: of segments that it has, no passage is read.

    Args:
        folder: is made if need be.
        segments: all that the index is to hold.
        embedder: the encoder.
        progress: told texts to encode.
        state: names what is indexed; `Dense.state` gives it back.
        exact: in a segment of up to so many vectors every search looks at all of them; by default `MAX_EXACT_VECTORS`.

    Raises:
        LibraryError: the folder can't be written, or its vectors are of another encoder.
        DamagedIndexError: what is kept of a segment is corrupt.
    """
    with disk_errors_as(LibraryError, f"The dense index in {folder} can't be written", "free some space"):
        folder.mkdir(parents=True, exist_ok=True)
        store, kept_parts = VectorStore(folder, embedder), _kept_parts(folder)
        new_rows, texts = dict[int, Rows](), dict[str, str]()
        for n, segment in enumerate(segments):
            if segment.name not in kept_parts:
                new_rows[n], segment_texts = rows_of(segment.passages(), store, embedder)
                texts |= segment_texts
        store.encode(texts, progress)
        exact_limit = MAX_EXACT_VECTORS if exact is None else exact
        parts = [
            _write_part(folder, segment, new_rows[n], store, exact_limit) if n in new_rows
            else _with_removed(folder, kept_parts[segment.name], segment.gone)
            for n, segment in enumerate(segments)
        ]  # fmt: skip
        manifest = Manifest(embedder.name, store.dimension, state, tuple(part for part in parts if part.rows))
        write_atomically(folder / MANIFEST, json.dumps(asdict(manifest)))
        _remove_unused_files(folder, manifest)
        _drop_unused_vectors(folder, manifest, store)


def read_manifest(folder: Path) -> Manifest:
    """What the index in `folder` says of itself.

    Raises:
        LibraryError: there is none, or it can't be read.
    """
    try:
        record = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        parts = tuple(Part(**{**part, "gone": tuple(part["gone"])}) for part in record["parts"])
        return Manifest(record["encoder"], record["dimension"], record["state"], parts)
    except FileNotFoundError as error:
        raise LibraryError(
            f"There is no dense index in {folder}; it is made when dense retrieval is chosen."
        ) from error
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise LibraryError(
            f"The dense index in {folder} can't be read, or is of an earlier version; {_AGAIN}."
        ) from error


def forget_index(folder: Path) -> None:
    """Have the index in `folder` made anew when it is made next; the vectors stay.

    Raises:
        LibraryError: the folder can't be written.
    """
    try:
        (folder / MANIFEST).unlink(missing_ok=True)
    except OSError as error:
        raise LibraryError(f"The dense index in {folder} can't be written ({error.strerror}).") from error


def rows_of(
    passages: Iterable[tuple[int, Passage]], known_keys: Container[str], embedder: Embedder
) -> tuple[Rows, dict[str, str]]:
    """The rows of an index of these passages, each with its number; and their texts by key.

    `known_keys` are those of texts that have a vector already.
    """
    rows, texts = Rows(), dict[str, str]()
    for number, passage in passages:
        for text in texts_of(passage, embedder, known_keys):
            rows.ids.append(passage.id)
            rows.numbers.append(number)
            rows.keys.append(key_of(text))
            texts[rows.keys[-1]] = text
    return rows, texts


def _kept_parts(folder: Path) -> Mapping[str, Part]:
    """The parts that there are, by the names of their segments; none where all has to be made anew."""
    if not (folder / MANIFEST).exists():
        return {}
    try:
        return {part.segment: part for part in read_manifest(folder).parts if part.segment and _is_there(folder, part)}
    except LibraryError:
        _LOG.warning("the dense index in %s can't be read, or is of an earlier version; it is made again", folder)
        return {}


def _is_there(folder: Path, part: Part) -> bool:
    return all((folder / f"{part.file}{kind}").exists() for kind in (INDEX, ROWS, KEYS))


def _write_part(folder: Path, segment: Segment, rows: Rows, store: VectorStore, exact: int) -> Part:
    """The files of a segment, of which nothing is kept yet; the index comes last."""
    import faiss  # noqa: PLC0415

    index = _faiss_index(store, rows.keys, exact)
    identity = [segment.name, type(index).__name__, rows.numbers, rows.ids, rows.keys]
    file = folder / sha256(json.dumps(identity).encode()).hexdigest()[:16]
    write_atomically(file.with_suffix(KEYS), "".join(f"{key}\n" for key in rows.keys))
    write_atomically(file.with_suffix(ROWS), json.dumps({"ids": rows.ids, "numbers": rows.numbers}))
    unfinished = file.with_suffix(f"{INDEX}.part")
    # To Python's own file: of a disk that is full when the last block goes out, FAISS's says nothing.
    with unfinished.open("wb") as output:
        faiss.write_index(index, faiss.PyCallbackIOWriter(output.write))  # type: ignore[attr-defined]
        flush_to_disk(output)
    unfinished.replace(file.with_suffix(INDEX))
    return Part(segment.name, file.name, len(rows.ids), max(Counter(rows.ids).values(), default=1), len(segment.gone))


def _with_removed(folder: Path, part: Part, gone: frozenset[int]) -> Part:
    """The part of a segment from which these passages are gone by now."""
    if len(gone) == part.removed:  # what is removed never comes back
        return part
    rows = tuple(row for row, number in enumerate(_read_rows(folder, part).numbers) if number in gone)
    return replace(part, removed=len(gone), gone=rows)


def _read_rows(folder: Path, part: Part) -> Rows:
    """Whose passages the rows of a part are; their keys are left out.

    Raises:
        DamagedIndexError: that can't be read, or is of other rows.
    """
    try:
        rows = Rows(**json.loads((folder / f"{part.file}{ROWS}").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise DamagedIndexError(f"The dense index in {folder} is missing or corrupt; {_AGAIN}.") from error
    if not len(rows.ids) == len(rows.numbers) == part.rows:
        raise DamagedIndexError(f"The dense index in {folder} doesn't fit its manifest; {_AGAIN}.")
    return rows


def _remove_unused_files(folder: Path, manifest: Manifest) -> None:
    """Remove what belongs to no part."""
    current_names = {f"{part.file}{kind}" for part in manifest.parts for kind in (INDEX, ROWS, KEYS)}
    for kind in (INDEX, ROWS, KEYS):
        for file in folder.glob(f"{'[0-9a-f]' * 16}{kind}*"):
            if file.name not in current_names:
                file.unlink()


def _drop_unused_vectors(folder: Path, manifest: Manifest, store: VectorStore) -> None:
    """Have the vectors dropped that no part has any more, where they may be the most."""
    if 2 * sum(part.rows for part in manifest.parts) >= len(store):
        return
    files = (folder / f"{part.file}{KEYS}" for part in manifest.parts)
    store.forget_all_but([key for file in files for key in file.read_text("ascii").split()])


def _faiss_index(store: VectorStore, keys: Sequence[str], exact: int) -> Any:
    """An index of these texts in order."""
    import faiss  # noqa: PLC0415

    index: Any = faiss.IndexFlatIP(store.dimension)
    if len(keys) > exact:
        lists = min(round(LISTS_PER_ROOT * len(keys) ** 0.5), len(keys))
        training_keys = random.Random(0).sample(keys, min(TRAINING_VECTORS_PER_LIST * lists, len(keys)))  # noqa: S311 - no secret
        index = inverted(np.concatenate(list(store.slices(training_keys))), lists)
    for vectors in store.slices(keys):
        index.add(vectors)
    return index


def inverted(vectors: NDArray[np.float32], lists: int) -> Any:
    """An empty index of so many inverted lists, learned from these vectors."""
    import faiss  # noqa: PLC0415

    index: Any = faiss.index_factory(vectors.shape[1], f"IVF{lists},Flat", faiss.METRIC_INNER_PRODUCT)
    index.train(vectors)
    return index


def _open(folder: Path, part: Part, dimension: int) -> Any:
    import faiss  # noqa: PLC0415

    try:
        index = faiss.read_index(str(folder / f"{part.file}{INDEX}"), faiss.IO_FLAG_MMAP_IFC)
    except RuntimeError as error:
        raise DamagedIndexError(f"The dense index in {folder} is missing or corrupt; {_AGAIN}.") from error
    if index.ntotal != part.rows or index.d != dimension:
        raise DamagedIndexError(f"The dense index in {folder} doesn't fit its manifest; {_AGAIN}.")
    if isinstance(index, faiss.IndexIVF):
        index.nprobe = PROBES
    return index


def _search_parameters(part: Part, index: Any) -> Any:
    """The FAISS search parameters by which no row that is gone is found."""
    faiss: Any = import_module("faiss")  # whose stubs know other arguments than it takes

    live = np.ones(part.rows, np.uint8)
    live[list(part.gone)] = 0
    selector = faiss.IDSelectorBitmap(np.packbits(live, bitorder="little"))
    if isinstance(index, faiss.IndexIVF):
        return faiss.SearchParametersIVF(sel=selector, nprobe=PROBES)
    return faiss.SearchParameters(sel=selector)
