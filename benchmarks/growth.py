"""Measures how a library grows: what indexing, searching and adding one document take at each size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import ParamSpec
from zlib import crc32

import numpy as np
import psutil
from numpy.typing import NDArray

from assistant.experiment.task import Summary
from assistant.library.index import add_documents, remove_documents
from assistant.library.shelves import library_folder, open_library
from assistant.library.vectors import dense_retriever
from assistant.library.writer import Writer, writing
from assistant.protocols import Retriever, silent
from assistant.settings import Settings
from assistant.types import Passage

STEP = 1_000  # passages of a document
SIZES = (1_000, 10_000, 30_000, 100_000)
SHOWN = 4
ONES = 12  # documents that are added one by one, so that Lucene joins small segments meanwhile
MIB = 1 << 20
LIBRARY = "grown"
P = ParamSpec("P")


class ReadyMade:
    """Vectors that cost nothing and mean nothing, the same for the same text: for what is done with vectors."""

    name = "ready-made"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, as long as MiniLM's: shape (len(texts), 384)."""
        seeds = (crc32(text.encode()) for text in texts)
        vectors = np.stack([np.random.default_rng(seed).standard_normal(384, np.float32) for seed in seeds])
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def growth(passages: Sequence[Passage], queries: Sequence[str], largest: int) -> Summary:
    """A line for each size up to the largest: the library, made of copies of these passages, in a folder of its own.

    Each copy has words of its own, since Lucene keeps what repeats in less. Times are by the clock: of 1,000 passages
    more, in the mean since the line before, and of a search in milliseconds (half of them, and 95 of 100). Documents of
    a few passages are added and removed one by one, and the vectors brought up to date after each: half of the times,
    and the longest. Vectors are ready-made: what they take is the reading of passages, the index and its writing.
    """
    rows: Summary = {}
    process = psutil.Process()
    supply = _copies(passages)
    with TemporaryDirectory() as folder:
        settings, memory_before = Settings(data_dir=Path(folder)), process.memory_info().rss
        previous_size = 0
        for size in [candidate for candidate in SIZES if candidate <= largest]:
            seconds = _seconds_of(_grow, settings, supply, previous_size, size)
            per_step, previous_size = seconds * STEP / (size - previous_size), size
            word_ms = _latency(open_library(LIBRARY, settings), queries)
            vector_seconds = _seconds_of(_by_meaning, settings)
            meaning_ms = _latency(_by_meaning(settings), queries)
            memory = process.memory_info().rss - memory_before
            add_seconds, add_vector_seconds = _one_by_one(
                settings, [partial(_add_one, settings, size, n) for n in range(ONES)]
            )
            _, removal_vector_seconds = _one_by_one(
                settings, [partial(_remove_one, settings, size, n) for n in range(ONES)]
            )
            rows[f"{size:,}"] = {
                "1,000 more, s": per_step, "memory, MiB": memory / MIB, "by words, ms": word_ms,
                "one document more, s": add_seconds, "vectors kept, s": vector_seconds, "by meaning, ms": meaning_ms,
                "vectors after it, s": add_vector_seconds, "after one removed, s": removal_vector_seconds,
            }  # fmt: skip
    return rows


def _copies(passages: Sequence[Passage]) -> Iterator[Passage]:
    for n, passage in enumerate(cycle(passages)):
        yield replace(passage, id=f"{n // STEP}-{n % STEP}", text=f"{passage.text} Copy {n:x} of {n % 997:x}.")


def _grow(settings: Settings, supply: Iterator[Passage], previous_size: int, size: int) -> None:
    folder = library_folder(LIBRARY, settings)
    folder.mkdir(parents=True, exist_ok=True)
    with writing(folder) as writer:
        for start in range(previous_size, size, STEP):
            writer.add(f"{start // STEP}", list(islice(supply, STEP)))
            _commit(writer, start + STEP)


def _commit(writer: Writer, size: int) -> None:
    entries = {f"{n}": {"name": f"{n}.txt", "passages": STEP, "hash": f"{n}"} for n in range(size // STEP)}
    writer.commit({"documents": entries})


def _one_by_one(settings: Settings, changes: Sequence[Callable[[], object]]) -> tuple[list[float], list[float]]:
    """Seconds of changes, and of bringing up the vectors after each: half of them at most, and the longest."""
    seconds = [(_seconds_of(change), _seconds_of(_by_meaning, settings)) for change in changes]
    change_seconds, vector_seconds = ([median(column), max(column)] for column in zip(*seconds, strict=True))
    return change_seconds, vector_seconds


def _add_one(settings: Settings, size: int, number: int) -> None:
    file = _document_path(settings, size, number)
    file.write_text("\n\n".join(f"Paragraph {n} of {file.name}. {'It says a little. ' * 40}" for n in range(5)))
    add_documents(LIBRARY, [file], settings)


def _remove_one(settings: Settings, size: int, number: int) -> None:
    remove_documents(LIBRARY, [_document_path(settings, size, number)], settings)


def _document_path(settings: Settings, size: int, number: int) -> Path:
    return settings.data_dir / f"one more at {size}, {number}.txt"


def _by_meaning(settings: Settings) -> Retriever:
    return dense_retriever(LIBRARY, open_library(LIBRARY, settings), settings, ReadyMade(), silent)


def _latency(retriever: Retriever, queries: Sequence[str]) -> list[float]:
    """Milliseconds for half of the searches at most, and for 95 of 100; of two of each the second counts."""
    milliseconds = []
    for query in queries:
        retriever.search(query, SHOWN)
        milliseconds.append(1000 * _seconds_of(retriever.search, query, SHOWN))
    cut_points = quantiles(milliseconds, n=20, method="inclusive")
    return [cut_points[9], cut_points[18]]


def _seconds_of(function: Callable[P, object], *arguments: P.args, **options: P.kwargs) -> float:
    start = perf_counter()
    function(*arguments, **options)
    return perf_counter() - start
