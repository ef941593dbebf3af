"""Vectors for measuring how dense search scales: kept from run to run, or cheap ones; and FAISS indexes compared."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assistant.experiment.datasets import Question
from assistant.llm.catalogue import Catalogue
from assistant.llm.model_folders import name_of
from assistant.parts import load_encoder
from assistant.protocols import Progress, silent
from assistant.retrieve.dense import TRAINING_VECTORS_PER_LIST, inverted
from assistant.retrieve.encoded import VectorStore, key_of
from assistant.retrieve.encoder_pieces import Encoder, pieces_of
from assistant.settings import EmbedderSettings, Settings
from assistant.types import Passage

WORD_PIECES = "word pieces"
FIRST, DEEP = 10, 100
MIB = 1 << 20
VOCABULARY_BATCH = 512
HNSW_BUILD = 200
Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Approximation:
    """A FAISS index beside the exact one: the share of the exact first 10 and 100 that it finds, and its cost.

    `p50` and `p95` are milliseconds for 100 rows on one thread, without the encoding of the question.
    """

    encoder: str
    vectors: int
    index: str
    search: str
    build_seconds: float
    disk_mib: float
    p50: float
    p95: float
    recall_10: float
    recall_100: float


def query_encoder(name: str, settings: Settings) -> Encoder:
    """The encoder of the settings, or the averaged word pieces of it.

    Raises:
        ModelError: it can't be fetched or loaded.
    """
    return WordPieces(settings) if name == WORD_PIECES else load_encoder(settings, silent)


def cache_name(encoder: str, settings: Settings) -> str:
    """The name that vectors are kept under: of averaged word pieces, with the encoder that they come from.

    The usual one goes unnamed, so that runs from before others were told apart go on.

    Raises:
        ModelError: the encoder can't be fetched.
    """
    if encoder != WORD_PIECES:
        return encoder
    source = name_of(_folder(settings))
    return encoder if source == EmbedderSettings().model else f"{encoder} of {source}"


class WordPieces:
    """A text as the mean of what the encoder says of each of its word pieces alone, rarer ones counting more.

    The weights are the logarithm of a piece's rank in the vocabulary, as in Model2Vec (Tulkens and van Dongen, 2024).
    """

    window = 10**9  # a mean has none

    def __init__(self, settings: Settings) -> None:
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415
        from sentence_transformers.sentence_transformer.modules import StaticEmbedding  # noqa: PLC0415
        from tokenizers import Tokenizer  # noqa: PLC0415

        self.name = cache_name(WORD_PIECES, settings)
        folder = _folder(settings)
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        vectors_path = settings.data_dir / "bench" / f"{name_of(folder)}-word-pieces.npy"
        if not vectors_path.exists():
            vectors_path.parent.mkdir(parents=True, exist_ok=True)
            np.save(vectors_path, _of_vocabulary(self._tokenizer, load_encoder(settings, silent)))
        self._model = SentenceTransformer(
            modules=[StaticEmbedding(self._tokenizer, np.load(vectors_path))], device="cpu"
        )

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimension), each row of length 1."""
        vectors = self._model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimension), each row of length 1."""
        return self.encode(texts)

    def count(self, text: str) -> int:
        """Word pieces of a text."""
        return len(self._tokenizer.encode(text))


class CachedEncoder:
    """An `Encoder` that keeps all that it encodes in a folder, and finds it there again."""

    def __init__(self, folder: Path, encoder: Encoder) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name, self.window, self.count = encoder.name, encoder.window, encoder.count
        self.encode_queries = encoder.encode_queries
        self._store = VectorStore(folder, encoder)

    def holds(self, text: str) -> bool:
        """Whether it needs no encoding."""
        return key_of(text) in self._store

    def add(self, texts: Sequence[str], progress: Progress) -> None:
        """Encode what isn't there yet."""
        self._store.encode({key_of(text): text for text in texts}, progress)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimension)."""
        self.add(texts, silent)
        return np.concatenate(list(self._store.slices([key_of(text) for text in texts])))


def approximations(
    store: Path, passages: Sequence[Passage], questions: Sequence[Question], encoder: str, settings: Settings
) -> list[Approximation]:
    """Build HNSW and IVF indexes over the vectors of these passages, and compare them with the exact one."""
    import faiss  # noqa: PLC0415

    cache = CachedEncoder(store, query_encoder(encoder, settings))
    vectors = cache.encode([text for passage in passages for text in pieces_of(passage, cache.window, cache.count)])
    query_vectors = cache.encode_queries([question.text for question in questions])
    exact = faiss.IndexFlatIP(vectors.shape[1])
    exact.add(vectors)
    _, exact_rows = exact.search(query_vectors, DEEP)
    rows = [_compare(exact, query_vectors, exact_rows) | {"index": "exact", "search": "all", "build_seconds": 0.0}]
    for name, build, set_search_cost, values in _configurations(len(vectors)):
        start = perf_counter()
        index = build(vectors)
        seconds = perf_counter() - start
        for value in values:
            set_search_cost(index, value)
            labels = {"index": name, "search": str(value), "build_seconds": seconds}
            rows.append(_compare(index, query_vectors, exact_rows) | labels)
    return [Approximation(encoder=encoder, vectors=len(vectors), **row) for row in rows]


def _folder(settings: Settings) -> Path:
    return Catalogue.load().resolve(settings.retrieve.encoder or settings.embedder.model, settings)


def _of_vocabulary(tokenizer: Any, encoder: Encoder) -> Vectors:
    """Shape (vocabulary, dimension). Word pieces are ranked from frequent to rare in BERT's vocabulary."""
    size = tokenizer.get_vocab_size()
    pieces = [str(tokenizer.id_to_token(n)).removeprefix("##") for n in range(size)]
    batches = range(0, size, VOCABULARY_BATCH)
    vectors = np.concatenate([encoder.encode(pieces[start : start + VOCABULARY_BATCH]) for start in batches])
    weighted = (vectors - vectors.mean(axis=0)) * np.log(2 + np.arange(size))[:, None]
    return np.asarray(weighted, dtype=np.float32)


def _configurations(size: int) -> list[tuple[str, Callable[[Vectors], Any], Callable[[Any, int], None], list[int]]]:
    """Indexes to try: name, how to build one, how to set what a search costs, and to what."""
    efforts, probes = [64, 128, 256, 512, 1024], [4, 16, 64, 128, 256]
    lists = [round(factor * size**0.5) for factor in (1, 2, 4)]
    graphs: list[Any] = [(f"HNSW, {m} links", partial(_hnsw, links=m), _set_effort, efforts) for m in (16, 32)]
    return graphs + [(f"IVF, {n} lists", partial(_ivf, lists=n), _set_probes, probes) for n in lists]


def _hnsw(vectors: Vectors, links: int) -> Any:
    import faiss  # noqa: PLC0415

    index = faiss.IndexHNSWFlat(vectors.shape[1], links, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = HNSW_BUILD
    index.add(vectors)
    return index


def _ivf(vectors: Vectors, lists: int) -> Any:
    training_rows = random.Random(0).sample(range(len(vectors)), min(TRAINING_VECTORS_PER_LIST * lists, len(vectors)))  # noqa: S311 - no secret
    index = inverted(vectors[training_rows], lists)
    index.add(vectors)
    return index


def _set_effort(index: Any, value: int) -> None:
    index.hnsw.efSearch = value


def _set_probes(index: Any, value: int) -> None:
    index.nprobe = value


def _compare(index: Any, queries: Vectors, exact_rows: NDArray[np.int64]) -> dict[str, Any]:
    import faiss  # noqa: PLC0415

    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    rankings, milliseconds = [], []
    for query in queries:
        start = perf_counter()
        _, rows = index.search(query[None], DEEP)
        milliseconds.append((perf_counter() - start) * 1000)
        rankings.append(rows[0])
    faiss.omp_set_num_threads(threads)
    return {
        "disk_mib": len(faiss.serialize_index(index)) / MIB,
        "p50": median(milliseconds),
        "p95": float(np.quantile(milliseconds, 0.95)),
        "recall_10": _overlap(rankings, exact_rows, FIRST),
        "recall_100": _overlap(rankings, exact_rows, DEEP),
    }


def _overlap(rankings: Sequence[NDArray[np.int64]], exact_rows: NDArray[np.int64], k: int) -> float:
    return float(
        np.mean(
            [
                len(set(ranking[:k]) & set(exact_ranking[:k])) / k
                for ranking, exact_ranking in zip(rankings, exact_rows, strict=True)
            ]
        )
    )
