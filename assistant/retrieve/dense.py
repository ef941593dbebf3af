"""Dense retrieval: passages as vectors in a FAISS index, ranked by the inner product with the query's.

For Sentence-BERT vectors (mean pooled, length 1) that is the cosine. Karpukhin et al., "Dense Passage Retrieval",
EMNLP 2020, with any encoder; Johnson et al., "Billion-scale similarity search with GPUs", 2019 (FAISS). Up to `EXACT`
vectors the search is exact, beyond that by inverted lists (IVF; Sivic and Zisserman, ICCV 2003).

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
from assistant.retrieve.encoded import Store, key_of, onto_disk, put
from assistant.retrieve.encoder_pieces import encoded_queries, texts_of
from assistant.types import Passage

_LOG = logging.getLogger(__name__)
EXACT = 100_000
# In a segment of more, lists of near vectors are searched (IVF). HNSW finds as many or more in the same time, but takes
# ten times as long to build: docs/results/retrieval.md. Lists are this many times the square root of the vectors; a
# search looks into so many of them, and they are learned from so many vectors each.
LISTS = 2
PROBES = 256
TRAINED_ON = 64
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
        self._parts = [_Opened(folder, part, self._manifest.dimension) for part in self._manifest.parts]

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
        return Counter(one for part in self._parts for one in part.ids())

    @property
    def cut(self) -> int:
        """How many passages are longer than the encoder reads at once, and so have several vectors."""
        return sum(count > 1 for count in self.pieces.values())

    def search(self, query: str, k: int) -> list[Passage]:
        """At most `k` passages, best first; the score is the inner product. A passage that is gone is left out."""
        if k <= 0 or not query.strip() or not self._manifest.rows:
            return []
        best = list(self._best(encoded_queries(self._embedder, [query]), k).items())[:k]
        passages = self._passages([one for one, _ in best])
        return [replace(one, score=score) for one, (_, score) in zip(passages, best, strict=True) if one]

    def _best(self, vector: NDArray[np.float32], k: int) -> dict[str, float]:
        """The scores of the nearest passages by id, best first: `k` of them, unless there are fewer.

        One passage may take many rows, so more are looked at until there are enough.
        """
        most = self._manifest.rows
        rows = 2 * k if any(part.pieces > 1 for part in self._manifest.parts) else k
        while True:
            rows = min(rows, most)
            best: dict[str, float] = {}
            for score, passage in self._nearest(vector, rows):
                best.setdefault(passage, score)
            if len(best) >= k or rows == most:
                return best
            rows *= 4

    def _nearest(self, vector: NDArray[np.float32], rows: int) -> list[tuple[float, str]]:
        """The scores of the nearest rows of all parts, with their passages' ids."""
        found = [one for part in self._parts for one in part.search(vector, rows)]
        return sorted(found, key=lambda one: (-one[0], one[1]))[:rows]


class _Opened:
    """A part that can be searched."""

    def __init__(self, folder: Path, part: Part, dimension: int) -> None:
        self._rows = _read_rows(folder, part)
        self._gone = frozenset(part.gone)
        self._index = _open(folder, part, dimension)
        self._live = part.rows - len(part.gone)
        self._options = _leaving_out(part, self._index) if part.gone else None

    def ids(self) -> Iterable[str]:
        """The passage of each row that isn't gone."""
        return (one for row, one in enumerate(self._rows.ids) if row not in self._gone)

    def search(self, vector: NDArray[np.float32], rows: int) -> Iterable[tuple[float, str]]:
        """The scores of the nearest rows, at most so many, with their passages' ids."""
        if not self._live:
            return []
        scores, found = self._index.search(vector, min(rows, self._live), params=self._options)
        return [(float(score), self._rows.ids[row]) for row, score in zip(found[0], scores[0], strict=True) if row >= 0]


@dataclass(frozen=True, slots=True)
class Rows:
    """For each row of an index its passage's id, that one's number in its segment, and the key of its text."""

    ids: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Whole:
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
    update_dense(folder, [_Whole(passages)], embedder, progress, state, exact)


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
        exact: in a segment of up to so many vectors every search looks at all of them; by default `EXACT`.

    Raises:
        LibraryError: the folder can't be written, or its vectors are of another encoder.
        DamagedIndexError: what is kept of a segment is corrupt.
    """
    with disk_errors_as(LibraryError, f"The dense index in {folder} can't be written", "free some space"):
        folder.mkdir(parents=True, exist_ok=True)
        store, before = Store(folder, embedder), _kept_parts(folder)
        new, texts = dict[int, Rows](), dict[str, str]()
        for n, segment in enumerate(segments):
            if segment.name not in before:
                new[n], more = rows_of(segment.passages(), store, embedder)
                texts |= more
        store.encode(texts, progress)
        most = EXACT if exact is None else exact
        parts = [
            _written(folder, segment, new[n], store, most) if n in new
            else _without(folder, before[segment.name], segment.gone)
            for n, segment in enumerate(segments)
        ]  # fmt: skip
        manifest = Manifest(embedder.name, store.dimension, state, tuple(part for part in parts if part.rows))
        put(folder / MANIFEST, json.dumps(asdict(manifest)))
        _sweep(folder, manifest)
        _forget(folder, manifest, store)


def read_manifest(folder: Path) -> Manifest:
    """What the index in `folder` says of itself.

    Raises:
        LibraryError: there is none, or it can't be read.
    """
    try:
        said = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        parts = tuple(Part(**{**one, "gone": tuple(one["gone"])}) for one in said["parts"])
        return Manifest(said["encoder"], said["dimension"], said["state"], parts)
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
    passages: Iterable[tuple[int, Passage]], known: Container[str], embedder: Embedder
) -> tuple[Rows, dict[str, str]]:
    """The rows of an index of these passages, each with its number; and the texts by key. `known` has a vector of."""
    rows, texts = Rows(), dict[str, str]()
    for number, passage in passages:
        for text in texts_of(passage, embedder, known):
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
        return {one.segment: one for one in read_manifest(folder).parts if one.segment and _is_there(folder, one)}
    except LibraryError:
        _LOG.warning("the dense index in %s can't be read, or is of an earlier version; it is made again", folder)
        return {}


def _is_there(folder: Path, part: Part) -> bool:
    return all((folder / f"{part.file}{kind}").exists() for kind in (INDEX, ROWS, KEYS))


def _written(folder: Path, segment: Segment, rows: Rows, store: Store, exact: int) -> Part:
    """The files of a segment, of which nothing is kept yet; the index comes last."""
    import faiss  # noqa: PLC0415

    index = _filled(store, rows.keys, exact)
    what = [segment.name, type(index).__name__, rows.numbers, rows.ids, rows.keys]
    file = folder / sha256(json.dumps(what).encode()).hexdigest()[:16]
    put(file.with_suffix(KEYS), "".join(f"{key}\n" for key in rows.keys))
    put(file.with_suffix(ROWS), json.dumps({"ids": rows.ids, "numbers": rows.numbers}))
    unfinished = file.with_suffix(f"{INDEX}.part")
    # To Python's own file: of a disk that is full when the last block goes out, FAISS's says nothing.
    with unfinished.open("wb") as out:
        faiss.write_index(index, faiss.PyCallbackIOWriter(out.write))  # type: ignore[attr-defined]
        onto_disk(out)
    unfinished.replace(file.with_suffix(INDEX))
    return Part(segment.name, file.name, len(rows.ids), max(Counter(rows.ids).values(), default=1), len(segment.gone))


def _without(folder: Path, part: Part, gone: frozenset[int]) -> Part:
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


def _sweep(folder: Path, manifest: Manifest) -> None:
    """Remove what belongs to no part."""
    named = {f"{part.file}{kind}" for part in manifest.parts for kind in (INDEX, ROWS, KEYS)}
    for kind in (INDEX, ROWS, KEYS):
        for file in folder.glob(f"{'[0-9a-f]' * 16}{kind}*"):
            if file.name not in named:
                file.unlink()


def _forget(folder: Path, manifest: Manifest, store: Store) -> None:
    """Have the vectors dropped that no part has any more, where they may be the most."""
    if 2 * sum(part.rows for part in manifest.parts) >= len(store):
        return
    files = (folder / f"{part.file}{KEYS}" for part in manifest.parts)
    store.forget_all_but([key for file in files for key in file.read_text("ascii").split()])


def _filled(store: Store, keys: Sequence[str], exact: int) -> Any:
    """An index of these texts in order."""
    import faiss  # noqa: PLC0415

    index: Any = faiss.IndexFlatIP(store.dimension)
    if len(keys) > exact:
        lists = min(round(LISTS * len(keys) ** 0.5), len(keys))
        some = random.Random(0).sample(keys, min(TRAINED_ON * lists, len(keys)))  # noqa: S311 - no secret
        index = inverted(np.concatenate(list(store.slices(some))), lists)
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


def _leaving_out(part: Part, index: Any) -> Any:
    """What a search is told, so that it finds no row that is gone."""
    faiss: Any = import_module("faiss")  # whose stubs know other arguments than it takes

    live = np.ones(part.rows, np.uint8)
    live[list(part.gone)] = 0
    chosen = faiss.IDSelectorBitmap(np.packbits(live, bitorder="little"))
    if isinstance(index, faiss.IndexIVF):
        return faiss.SearchParametersIVF(sel=chosen, nprobe=PROBES)
    return faiss.SearchParameters(sel=chosen)
