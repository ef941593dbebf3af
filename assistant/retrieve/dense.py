"""Dense retrieval: passages as vectors in a FAISS index, ranked by the inner product with the query's.

For Sentence-BERT vectors (mean pooled, length 1) that is the cosine. Karpukhin et al., "Dense Passage Retrieval",
EMNLP 2020, with any encoder; Johnson et al., "Billion-scale similarity search with GPUs", 2019 (FAISS). Up to `EXACT`
vectors the search is exact, beyond that by inverted lists (IVF; Sivic and Zisserman, ICCV 2003).

A folder holds `vectors.f32` and `keys.txt` (every text encoded so far, by its hash: encoding goes on from there after
an interruption, and no text is encoded twice) and, per build, an index whose name `manifest.json` gives.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from assistant.errors import DamagedIndexError, LibraryError
from assistant.protocols import Embedder, Progress
from assistant.retrieve.encoder_pieces import WINDOW_WORDS, pieces_of
from assistant.text.chunks import count_words
from assistant.types import Passage

EXACT = 100_000
# Beyond, lists of near vectors are searched (IVF). HNSW finds as many or more in the same time, but takes ten times as
# long to build, which every changed document asks for: docs/results/retrieval.md. Lists are this many times the square
# root of the vectors; a search looks into so many of them, and they are learned from so many vectors each.
LISTS = 2
PROBES = 256
TRAINED_ON = 64
BATCH = 64
SLICE = 10_000
MANIFEST = "manifest.json"


@runtime_checkable
class Encoder(Embedder, Protocol):
    """An `Embedder` that knows what it is for. Passages beyond its window are encoded in pieces; the best one counts.

    Its vectors may have any length.
    """

    @property
    def window(self) -> int:
        """How many tokens of a text it reads, its own marks included."""
        ...

    def count(self, text: str) -> int:
        """Tokens of a text, its own marks included."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), dimension), in the space of the passages that `encode` encodes."""
        ...


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a build says of itself. `ids[row]` is the passage of that row; `pieces` the most rows of one passage."""

    encoder: str
    dimension: int
    index: str
    state: str
    pieces: int
    ids: list[str]


class Dense:
    """A `Retriever` over a folder that `build_dense` made."""

    def __init__(self, folder: Path, embedder: Embedder, passage: Callable[[str], Passage | None]) -> None:
        """Open the index; it stays on the disk and is mapped into memory.

        Args:
            folder: what `build_dense` wrote to.
            embedder: the encoder that it was built with.
            passage: finds a passage by its id.

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
        self._passage = passage
        self._index = _open(folder, self._manifest)

    @property
    def state(self) -> str:
        """The `state` that the index was built for."""
        return self._manifest.state

    def __len__(self) -> int:
        """How many passages there are."""
        return len(set(self._manifest.ids))

    @property
    def cut(self) -> int:
        """How many passages are longer than the encoder reads at once, and so count as the best of their pieces."""
        return sum(count > 1 for count in Counter(self._manifest.ids).values())

    def search(self, query: str, k: int) -> list[Passage]:
        """At most `k` passages, best first; the score is the inner product. A passage that is gone is left out."""
        if k <= 0 or not query.strip() or not self._manifest.ids:
            return []
        best = list(self._best(_query(self._embedder, query), k).items())[:k]
        passages = ((self._passage(one), score) for one, score in best)
        return [replace(passage, score=score) for passage, score in passages if passage]

    def _best(self, vector: NDArray[np.float32], k: int) -> dict[str, float]:
        """The scores of the nearest passages by id, best first: `k` of them, unless there are fewer.

        One passage may take many rows, so more are looked at until there are enough.
        """
        rows = k if self._manifest.pieces == 1 else 2 * k
        while True:
            rows = min(rows, len(self._manifest.ids))
            scores, found = self._index.search(vector, rows)
            best: dict[str, float] = {}
            for row, score in zip(found[0], scores[0], strict=True):
                if row >= 0:
                    best.setdefault(self._manifest.ids[row], float(score))
            if len(best) >= k or rows == len(self._manifest.ids):
                return best
            rows *= 4


def build_dense(
    folder: Path,
    passages: Iterable[Passage],
    embedder: Embedder,
    progress: Progress,
    state: str = "",
    exact: int | None = None,
) -> None:
    """Make or update the dense index in `folder`; only texts that it has not seen are encoded.

    Args:
        folder: is made if need be.
        passages: all that the index is to hold.
        embedder: the encoder.
        progress: told texts to encode.
        state: names what is indexed; `Dense.state` gives it back.
        exact: up to so many vectors every search looks at all of them; by default `EXACT`.

    Raises:
        LibraryError: the folder can't be written, or its vectors are of another encoder.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        store = Store(folder, embedder)
        ids, keys, texts = rows_of(passages, store, embedder)
        store.encode(texts, progress)
        index = _filled(store, keys, EXACT if exact is None else exact)
        _write(folder, Manifest(embedder.name, store.dimension, "", state, _most(ids), ids), index, keys)
        store.forget_all_but(keys)
    except OSError as error:
        raise LibraryError(
            f"The dense index in {folder} can't be written ({error.strerror}); free some space."
        ) from error


def read_manifest(folder: Path) -> Manifest:
    """What the build in `folder` says of itself.

    Raises:
        LibraryError: there is none, or it can't be read.
    """
    try:
        return Manifest(**json.loads((folder / MANIFEST).read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise LibraryError(
            f"There is no dense index in {folder}; it is made when dense retrieval is chosen."
        ) from error
    except (OSError, ValueError, TypeError) as error:
        raise LibraryError(
            f"The dense index in {folder} can't be read; remove the folder to have it made again."
        ) from error


class Store:
    """Vectors by the hash of their text, appended as they are encoded. What a crash left half written is cut off."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        self._vectors, self._keys = folder / "vectors.f32", folder / "keys.txt"
        self._embedder = embedder
        self.dimension = int(embedder.encode([" "]).shape[1])
        self._check(folder / "encoder.json")
        lines = self._keys.read_text("ascii", "replace").split("\n") if self._keys.exists() else []
        whole = (self._vectors.stat().st_size if self._vectors.exists() else 0) // self._width
        self._rows = {key: row for row, key in enumerate(lines[:-1][:whole])}
        if self._vectors.exists():
            os.truncate(self._vectors, len(self._rows) * self._width)
        if lines != [*self._rows, ""]:
            self._write_keys()

    def __contains__(self, key: object) -> bool:
        return key in self._rows

    @property
    def _width(self) -> int:
        return 4 * self.dimension

    def encode(self, texts: dict[str, str], progress: Progress) -> None:
        """Add the vectors of all texts that are not there yet."""
        missing = [key for key in texts if key not in self._rows]
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            vectors = self._embedder.encode([texts[key] for key in batch])
            with self._vectors.open("ab") as file:
                file.write(np.ascontiguousarray(vectors, dtype="<f4").tobytes())
                _onto_disk(file)  # before a key vouches for them
            with self._keys.open("a", encoding="ascii") as file:
                file.write("".join(f"{key}\n" for key in batch))
            self._rows |= {key: len(self._rows) + n for n, key in enumerate(batch)}
            progress(start + len(batch), len(missing))

    def slices(self, keys: Sequence[str]) -> Iterator[NDArray[np.float32]]:
        """The vectors of these texts in order, some at a time."""
        if not keys:
            return
        stored = np.memmap(self._vectors, dtype="<f4", mode="r").reshape(-1, self.dimension)
        rows = [self._rows[key] for key in keys]
        for start in range(0, len(rows), SLICE):
            yield np.ascontiguousarray(stored[rows[start : start + SLICE]])

    def forget_all_but(self, keys: Sequence[str]) -> None:
        """Drop the vectors of other texts once they are the most. Killed meanwhile, it loses some, but mixes none."""
        wanted = set(keys)
        kept = [key for key in self._rows if key in wanted]
        if 2 * len(kept) >= len(self._rows):
            return
        part = self._vectors.with_suffix(".part")
        with part.open("wb") as file:
            for vectors in self.slices(kept):
                file.write(vectors.tobytes())
            _onto_disk(file)
        self._keys.unlink()
        part.replace(self._vectors)
        self._rows = {key: row for row, key in enumerate(kept)}
        self._write_keys()

    def _write_keys(self) -> None:
        _put(self._keys, "".join(f"{key}\n" for key in self._rows))

    def _check(self, file: Path) -> None:
        mine = json.dumps({"encoder": self._embedder.name, "dimension": self.dimension})
        if not file.exists():
            _put(file, mine)
        elif file.read_text("utf-8", "replace") != mine:
            raise LibraryError(
                f"The vectors in {file.parent} are of another encoder; remove the folder to start again."
            )


def rows_of(
    passages: Iterable[Passage], known: Container[str], embedder: Embedder
) -> tuple[list[str], list[str], dict[str, str]]:
    """For each row of an index the passage's id and the text's key; and the texts by key. `known` has a vector of."""
    ids, keys, texts = [], [], {}
    window, count = WINDOW_WORDS, count_words
    if isinstance(embedder, Encoder):
        window, count = embedder.window, embedder.count
    for passage in passages:
        whole = [f"{passage.full_title}\n{passage.text}"]
        # what was encoded whole before needs no counting, which takes a tenth as long as encoding does
        for text in whole if key_of(whole[0]) in known else pieces_of(passage, window, count):
            ids.append(passage.id)
            keys.append(key_of(text))
            texts[keys[-1]] = text
    return ids, keys, texts


def _write(folder: Path, manifest: Manifest, index: Any, keys: Sequence[str]) -> None:
    """Write the index, then the manifest that names it: a build that is broken off leaves the one before."""
    import faiss  # noqa: PLC0415 - heavy

    what = [manifest.state, type(index).__name__, *keys]
    name = f"{sha256(json.dumps(what).encode()).hexdigest()[:16]}.faiss"
    part = folder / f"{name}.part"
    # To Python's own file: of a disk that is full when the last block goes out, FAISS's says nothing.
    with part.open("wb") as file:
        faiss.write_index(index, faiss.PyCallbackIOWriter(file.write))  # type: ignore[attr-defined]
        _onto_disk(file)
    part.replace(folder / name)
    _put(folder / MANIFEST, json.dumps(asdict(replace(manifest, index=name))))
    for old in folder.glob("*.faiss*"):
        if old.name != name:
            old.unlink()


def key_of(text: str) -> str:
    """What a text's vector is kept under."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()


def _onto_disk(file: BinaryIO) -> None:
    """What was written, kept through a power cut."""
    file.flush()
    os.fsync(file.fileno())


def _put(file: Path, text: str) -> None:
    """Write a file whole, or leave what was there."""
    part = file.with_name(f"{file.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(file)


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


def _open(folder: Path, manifest: Manifest) -> Any:
    import faiss  # noqa: PLC0415

    again = "remove the folder to have it made again"
    try:
        index = faiss.read_index(str(folder / manifest.index), faiss.IO_FLAG_MMAP_IFC)
    except RuntimeError as error:
        raise DamagedIndexError(f"The dense index in {folder} is missing or corrupt; {again}.") from error
    if index.ntotal != len(manifest.ids) or index.d != manifest.dimension:
        raise DamagedIndexError(f"The dense index in {folder} doesn't fit its manifest; {again}.")
    if isinstance(index, faiss.IndexIVF):
        index.nprobe = PROBES
    return index


def _query(embedder: Embedder, query: str) -> NDArray[np.float32]:
    """Shape (1, dimension)."""
    return embedder.encode_queries([query]) if isinstance(embedder, Encoder) else embedder.encode([query])


def _most(ids: Sequence[str]) -> int:
    """How many rows the passage with the most of them has."""
    return max(Counter(ids).values(), default=1)
