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
    found: Summary = {}
    process = psutil.Process()
    supply = _copies(passages)
    with TemporaryDirectory() as folder:
        settings, before = Settings(data_dir=Path(folder)), process.memory_info().rss
        there = 0
        for size in [one for one in SIZES if one <= largest]:
            seconds = _took(_grown, settings, supply, there, size)
            per_step, there = seconds * STEP / (size - there), size
            words = _latency(open_library(LIBRARY, settings), queries)
            made = _took(_by_meaning, settings)
            near = _latency(_by_meaning(settings), queries)
            memory = process.memory_info().rss - before
            more, again = _one_by_one(settings, [partial(_add_one, settings, size, n) for n in range(ONES)])
            _, fewer = _one_by_one(settings, [partial(_remove_one, settings, size, n) for n in range(ONES)])
            found[f"{size:,}"] = {
                "1,000 more, s": per_step, "memory, MiB": memory / MIB, "by words, ms": words,
                "one document more, s": more, "vectors kept, s": made, "by meaning, ms": near,
                "vectors after it, s": again, "after one removed, s": fewer,
            }  # fmt: skip
    return found


def _copies(passages: Sequence[Passage]) -> Iterator[Passage]:
    for n, one in enumerate(cycle(passages)):
        yield replace(one, id=f"{n // STEP}-{n % STEP}", text=f"{one.text} Copy {n:x} of {n % 997:x}.")


def _grown(settings: Settings, supply: Iterator[Passage], there: int, size: int) -> None:
    folder = library_folder(LIBRARY, settings)
    folder.mkdir(parents=True, exist_ok=True)
    with writing(folder) as writer:
        for start in range(there, size, STEP):
            writer.add(f"{start // STEP}", list(islice(supply, STEP)))
            _commit(writer, start + STEP)


def _commit(writer: Writer, size: int) -> None:
    entries = {f"{n}": {"name": f"{n}.txt", "passages": STEP, "hash": f"{n}"} for n in range(size // STEP)}
    writer.commit({"documents": entries})


def _one_by_one(settings: Settings, changes: Sequence[Callable[[], object]]) -> tuple[list[float], list[float]]:
    """Seconds of changes, and of bringing up the vectors after each: half of them at most, and the longest."""
    taken = [(_took(change), _took(_by_meaning, settings)) for change in changes]
    changing, bringing = ([median(ones), max(ones)] for ones in zip(*taken, strict=True))
    return changing, bringing


def _add_one(settings: Settings, size: int, number: int) -> None:
    file = _one(settings, size, number)
    file.write_text("\n\n".join(f"Paragraph {n} of {file.name}. {'It says a little. ' * 40}" for n in range(5)))
    add_documents(LIBRARY, [file], settings)


def _remove_one(settings: Settings, size: int, number: int) -> None:
    remove_documents(LIBRARY, [_one(settings, size, number)], settings)


def _one(settings: Settings, size: int, number: int) -> Path:
    return settings.data_dir / f"one more at {size}, {number}.txt"


def _by_meaning(settings: Settings) -> Retriever:
    return dense_retriever(LIBRARY, open_library(LIBRARY, settings), settings, ReadyMade(), silent)


def _latency(retriever: Retriever, queries: Sequence[str]) -> list[float]:
    """Milliseconds for half of the searches at most, and for 95 of 100; of two of each the second counts."""
    taken = []
    for query in queries:
        retriever.search(query, SHOWN)
        taken.append(1000 * _took(retriever.search, query, SHOWN))
    cuts = quantiles(taken, n=20)
    return [cuts[9], cuts[18]]


def _took(do: Callable[P, object], *arguments: P.args, **named: P.kwargs) -> float:
    start = perf_counter()
    do(*arguments, **named)
    return perf_counter() - start
