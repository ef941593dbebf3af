"""`bench retrieval`: what searching costs as a library grows: index time, memory, latency and what is found.

Each is measured in a process of its own. Passages are those of one corpus, those that hold the questions' answers
first, and then pieces of other corpora. Dense vectors come from the encoder of the settings for as many passages as it
can be waited for; beyond, from `WordPieces`, which are thousands of times cheaper and find less: what they show is how
FAISS scales, on real texts.

A row is of one way to search so many passages, with what making its index took and what searching gave (see `search`):

    {"key": "bm25 10000", "retriever": "bm25", "encoder": "", "passages": 10000, "index_seconds": 2.1,
     "building_mib": 310.0, "disk_mib": 9.1, "memory_mib": 120.0, "p50": 3.2, "p95": 6.0, "found": 0.71,
     "found_deep": 0.88}

`index_seconds` leave out the encoding of vectors. `building_mib` is what the process grew by at most while it indexed,
`disk_mib` is the index alone. Hybrid search makes no index of its own; its `disk_mib` are those of the two that it
needs. Other rows are of Anserini's searcher (see `beside_anserini`), encoding and approximate indexes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Annotated, Any, Literal, ParamSpec, TypeVar

import numpy as np
import psutil
import typer

from assistant.commands.experiment import MeasurementOptions, command_line, print_run_folder, print_summary
from assistant.commands.progress_bars import bar
from assistant.errors import DataError
from assistant.experiment.datasets import Question, fingerprint, read_questions, sample
from assistant.experiment.options import Corpus, Out, Questions, Seed
from assistant.experiment.runs import Run
from assistant.library.corpus import load_corpus
from assistant.library.writer import writing
from assistant.protocols import Progress, Retriever, silent
from assistant.retrieve import jvm
from assistant.retrieve.bm25 import Bm25, searchable
from assistant.retrieve.dense import MAX_EXACT_VECTORS, Dense, build_dense, read_manifest
from assistant.retrieve.encoder_pieces import Encoder, pieces_of, text_pieces
from assistant.retrieve.retrievers.hybrid import Hybrid
from assistant.settings import Settings
from assistant.types import Passage
from benchmarks.peak import peak_bytes
from benchmarks.vectors import DEEP, MIB, WORD_PIECES, CachedEncoder, approximations, cache_name, query_encoder

Kind = Literal["bm25", "dense, exact", "dense, approximate", "hybrid"]
SIZES = (10_000, 40_000, 200_000)
SHOWN = 10
BATCH = 1000
# Settings that decide what searching finds.
_SEARCH_SETTINGS = {"k1", "b", "rrf_k", "question_encoder"}
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Material:
    """Passages in the order in which sizes take them, and questions whose gold passages come first."""

    passages: list[Passage]
    questions: list[Question]

    def fingerprint(self) -> str:
        """Tells these passages, in this order, from others."""
        digest = sha256()
        for passage in self.passages:
            digest.update(json.dumps([passage.id, passage.title, passage.text]).encode())
        return digest.hexdigest()[:12]


def prepare(
    corpus: Path, questions: Path, other_corpora: Sequence[Path], words: int, limit: int, seed: int
) -> Material:
    """The material of a run.

    Args:
        corpus: passages that are taken whole.
        questions: with `gold` ids in the corpus; those without are left out.
        other_corpora: corpora that are cut into pieces of at most `words` words.
        words: see `other_corpora`.
        limit: how many questions to ask.
        seed: decides which, and the order of the passages.

    Raises:
        DataError: no question has its gold passages in the corpus.
        LibraryError: a corpus can't be read.
    """
    pool = load_corpus(corpus)
    corpus_ids = {passage.id for passage in pool}
    usable_questions = [
        question for question in read_questions(questions) if question.gold and corpus_ids.issuperset(question.gold)
    ]
    if not usable_questions:
        raise DataError(
            f"No question of {questions} has its gold passages in {corpus}; give those that belong together."
        )
    gold_ids = {id_ for question in usable_questions for id_ in question.gold}
    gold_passages, other_passages = (
        [passage for passage in pool if passage.id in gold_ids],
        [passage for passage in pool if passage.id not in gold_ids],
    )
    pieces = [piece for path in other_corpora for passage in load_corpus(path) for piece in _pieces(passage, words)]
    for part in (other_passages, pieces):
        random.Random(seed).shuffle(part)  # noqa: S311 - an experiment, not a secret
    return Material(_distinct([*gold_passages, *other_passages, *pieces]), sample(usable_questions, limit, seed))


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured where. `encoded` is how many passages the encoder of the settings is given at most.

    `data` is in the names of indexes, so that a run that goes on never searches those of a run on other passages.
    """

    material: Material
    data: str
    sizes: Sequence[int]
    encoded: int
    runs: int
    folder: Path
    settings: Settings

    @staticmethod
    def of(material: Material, sizes: Sequence[int], encoded: int, runs: int, settings: Settings) -> Plan:
        """A plan that keeps indexes and vectors in the data folder; its settings can go to other processes."""
        plain = Settings.model_validate(settings.model_dump())
        return Plan(material, material.fingerprint(), sizes, encoded, runs, settings.data_dir / "bench", plain)

    def encoders(self, size: int) -> list[str]:
        """What so many passages are encoded with."""
        own = Path(self.settings.retrieve.encoder or self.settings.embedder.model).name
        return [*([own] if size <= self.encoded else []), WORD_PIECES]

    def store(self, encoder: str) -> Path:
        """Where the vectors of an encoder are kept, by their texts: runs on any passages share them."""
        return self.folder / cache_name(encoder, self.settings)

    def words(self, size: int) -> Path:
        """Where the BM25 index of so many passages is."""
        return self.folder / f"bm25-{size}-{self.data}"

    def vectors(self, encoder: str, size: int, exact: bool) -> Path:
        """Where the index of the vectors of so many passages is."""
        kind = "exact" if exact else "approximate"
        return self.folder / f"{kind}-{cache_name(encoder, self.settings)}-{size}-{self.data}"

    def tasks(self, progress: Progress) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
        """Everything to measure, each by its key, in an order in which it can be done."""
        for encoder in self.encoders(min(self.sizes)):
            sizes = [size for size in self.sizes if encoder in self.encoders(size)]
            yield f"encode {encoder}", partial(self._encode, encoder, max(sizes), progress)
        for size in self.sizes:
            yield f"bm25 {size}", partial(self._bm25, size)
            yield from ((f"beside {size} {k}", partial(self._beside, size, k)) for k in (SHOWN, DEEP))
            for encoder in self.encoders(size):
                for kind in ("dense, exact", "dense, approximate", "hybrid"):
                    yield f"{kind} {encoder} {size}", partial(self._dense, kind, encoder, size)
                yield f"approximations {encoder} {size}", partial(self._approximations, encoder, size)

    def _encode(self, encoder: str, size: int, progress: Progress) -> dict[str, Any]:
        speed = encode(self.material.passages[:size], self.store(encoder), encoder, self.settings, progress)
        return {"encoder": encoder, "passages": size, "per_second": speed}

    def _bm25(self, size: int) -> dict[str, Any]:
        folder = self.words(size)
        seconds, building = run_in_process(index_words, folder, self.material.passages[:size])
        search_measures = run_in_process(
            search, "bm25", folder, folder, "", self.material.questions, self.runs, self.settings
        )
        index_measures = {"index_seconds": seconds, "building_mib": building, "disk_mib": disk_mib(folder)}
        return {"retriever": "bm25", "encoder": "", "passages": size, **index_measures, **search_measures}

    def _beside(self, size: int, k: int) -> dict[str, Any]:
        return run_in_process(beside_anserini, self.words(size), self.material.questions, k, self.runs, self.settings)

    def _dense(self, kind: Kind, encoder: str, size: int) -> dict[str, Any]:
        exact = kind == "dense, exact" or (kind == "hybrid" and self._few(encoder, size))
        folder = self.vectors(encoder, size, exact)
        passages, store = self.material.passages[:size], self.store(encoder)
        seconds = building = None
        disk = disk_mib(self.words(size)) if kind == "hybrid" else 0.0
        if kind != "hybrid":
            seconds, building = run_in_process(index_vectors, folder, passages, store, encoder, exact, self.settings)
        search_measures = run_in_process(
            search, kind, self.words(size), folder, encoder, self.material.questions, self.runs, self.settings
        )
        index_measures = {
            "index_seconds": seconds,
            "building_mib": building,
            "disk_mib": disk + disk_mib(folder, "*.faiss"),
        }
        return {"retriever": kind, "encoder": encoder, "passages": size, **index_measures, **search_measures}

    def _few(self, encoder: str, size: int) -> bool:
        """Whether so many passages have vectors few enough to be searched exactly by default."""
        return read_manifest(self.vectors(encoder, size, exact=True)).rows <= MAX_EXACT_VECTORS

    def _approximations(self, encoder: str, size: int) -> dict[str, Any]:
        passages, store = self.material.passages[:size], self.store(encoder)
        indexes = run_in_process(approximations, store, passages, self.material.questions, encoder, self.settings)
        return {"indexes": [asdict(index) for index in indexes]}


def run_in_process(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a function of a module in a new process, so that nothing else is in its memory.

    Settings have to be of their own class, not of the one that reads files.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(partial(work, *args, **kwargs)).result()


def index_words(folder: Path, passages: Sequence[Passage]) -> tuple[float, float]:
    """Index for BM25; seconds, and the MiB that the process grew by at most, Java included."""
    memory_before = _rss()
    folder.mkdir(parents=True, exist_ok=True)
    started_at = perf_counter()
    with writing(folder) as writer:
        writer.clear()
        for start in range(0, len(passages), BATCH):
            writer.add("corpus", passages[start : start + BATCH])
        writer.commit({"passages": len(passages)})
    return perf_counter() - started_at, _peak() - memory_before


def encode(passages: Sequence[Passage], store: Path, encoder: str, settings: Settings, progress: Progress) -> float:
    """Encode what `store` lacks of these passages; passages a second, of those that were encoded now (0 if none).

    Raises:
        ModelError: the encoder can't be fetched or loaded.
        LibraryError: the store is of another encoder.
    """
    cache = CachedEncoder(store, query_encoder(encoder, settings))
    missing_passages = [
        passage
        for passage in passages
        if any(not cache.holds(text) for text in pieces_of(passage, cache.window, cache.count))
    ]
    start = perf_counter()
    cache.add(
        [text for passage in missing_passages for text in pieces_of(passage, cache.window, cache.count)], progress
    )
    return len(missing_passages) / (perf_counter() - start) if missing_passages else 0.0


def index_vectors(
    folder: Path, passages: Sequence[Passage], store: Path, encoder: str, exact: bool, settings: Settings
) -> tuple[float, float]:
    """Index vectors that `store` holds; seconds, and the MiB that the process grew by at most."""
    import faiss  # noqa: F401, PLC0415 - its own size doesn't count

    cache = CachedEncoder(store, query_encoder(encoder, settings))
    memory_before = _rss()
    start = perf_counter()
    build_dense(folder, passages, cache, silent, exact=DEEP * len(passages) if exact else 0)
    return perf_counter() - start, _peak() - memory_before


def search(
    kind: Kind, words: Path, vectors: Path, encoder: str, questions: Sequence[Question], runs: int, settings: Settings
) -> dict[str, float]:
    """What searching gives.

    `memory_mib` is what the process grew by from before it opened the index until it had answered. `p50` and `p95` are
    milliseconds for `SHOWN` passages, the encoding of the question included. `found` is the share of questions with a
    gold passage among the first `SHOWN`, `found_deep` among the first `DEEP`.
    """
    loaded_encoder = None if kind == "bm25" else query_encoder(encoder, settings)
    if loaded_encoder:
        loaded_encoder.encode_queries(["The first call prepares what later ones use."])
    memory_before = _rss()
    retriever = _open(kind, words, vectors, loaded_encoder, settings)
    retriever.search(questions[0].text, SHOWN)
    milliseconds = [_milliseconds(retriever, question.text) for _ in range(runs) for question in questions]
    memory = _rss() - memory_before
    rankings = [[passage.id for passage in retriever.search(question.text, DEEP)] for question in questions]
    golds = [set(question.gold) for question in questions]
    return {
        "memory_mib": memory,
        "p50": median(milliseconds),
        "p95": float(np.quantile(milliseconds, 0.95)),
        "found": _share(not gold.isdisjoint(ranking[:SHOWN]) for gold, ranking in zip(golds, rankings, strict=True)),
        "found_deep": _share(not gold.isdisjoint(ranking) for gold, ranking in zip(golds, rankings, strict=True)),
    }


def beside_anserini(
    folder: Path, questions: Sequence[Question], k: int, runs: int, settings: Settings
) -> dict[str, Any]:
    """Our BM25 and Anserini's searcher on the same index in turns, question by question.

    Times are medians over runs of the median milliseconds of a run. `texts` is Anserini's searcher with each hit's id,
    score and text brought to Python, as ours brings them; `hits` has no texts; `java` is the mean of its batch search
    in one thread, where nothing but the whole crosses to Python. `ratio` is ours by `texts`, and `ratios` those of the
    runs; `cpu_ratio` that of the processor time of the process, which other programs on the machine disturb less.
    """
    bm25 = Bm25(folder, k1=settings.retrieve.k1, b=settings.retrieve.b)
    searcher = jvm.call(_anserini_searcher, folder, settings)
    queries = [searchable(question.text) for question in questions]
    searches: dict[str, Callable[[str], object]] = {
        "ours": lambda text: bm25.search(text, k),
        "texts": lambda text: jvm.call(_hits, searcher, text, k, True),
    }
    searches_without_texts = {"hits": lambda text: jvm.call(_hits, searcher, text, k, False)}
    # The first run warms up.
    run_times = [_run(searches, queries, n) | _run(searches_without_texts, queries, n) for n in range(runs + 1)][1:]
    java_times = [jvm.call(_batch, searcher, queries, k) for _ in range(runs + 1)][1:]
    ratios = tuple(times["ours"][0] / times["texts"][0] for times in run_times)
    return {
        "passages": len(bm25),
        "k": k,
        **{name: median(times[name][0] for times in run_times) for name in (*searches, *searches_without_texts)},
        "java": median(java_times),
        "ratio": median(ratios),
        "cpu_ratio": median(times["ours"][1] / times["texts"][1] for times in run_times),
        "ratios": ratios,
    }


def _pieces(passage: Passage, words: int) -> list[Passage]:
    texts = text_pieces(passage.text, words)
    return [Passage(f"{passage.source} {passage.id} {n}", passage.title, text) for n, text in enumerate(texts, 1)]


def _distinct(passages: Iterable[Passage]) -> list[Passage]:
    """The first passage of each text."""
    return list({passage.text: passage for passage in reversed(list(passages)) if passage.text.strip()}.values())[::-1]


def _open(kind: Kind, words: Path, vectors: Path, encoder: Encoder | None, settings: Settings) -> Retriever:
    bm25 = Bm25(words, k1=settings.retrieve.k1, b=settings.retrieve.b)
    if encoder is None:
        return bm25
    dense = Dense(vectors, encoder, bm25.get)
    return Hybrid({"bm25": bm25, "dense": dense}, constant=settings.retrieve.rrf_k) if kind == "hybrid" else dense


def _milliseconds(retriever: Retriever, query: str) -> float:
    start = perf_counter()
    retriever.search(query, SHOWN)
    return (perf_counter() - start) * 1000


def _row(key: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    return {"key": key, **make()}


def _share(hits: Iterable[bool]) -> float:
    return float(np.mean(list(hits)))


# --- Anserini ----------------------------------------------------------------------------------------------------


def _anserini_searcher(folder: Path, settings: Settings) -> Any:
    searcher = jvm.java("io.anserini.search.SimpleSearcher")(str(folder))
    searcher.set_bm25(settings.retrieve.k1, settings.retrieve.b)
    return searcher


def _hits(searcher: Any, query: str, k: int, texts: bool) -> list[tuple[str, float, str]]:
    return [
        (hit.docid, hit.score, hit.lucene_document.get("raw") if texts else "") for hit in searcher.search(query, k)
    ]


def _batch(searcher: Any, queries: Sequence[str], k: int) -> float:
    """Milliseconds a query of Anserini's batch search, on one thread."""
    texts, ids = jvm.java("java.util.ArrayList")(), jvm.java("java.util.ArrayList")()
    for n, query in enumerate(queries):
        texts.add(query)
        ids.add(str(n))
    start = perf_counter()
    searcher.batch_search(texts, ids, k, 1)
    return (perf_counter() - start) * 1000 / len(queries)


def _run(
    searches: Mapping[str, Callable[[str], object]], queries: Sequence[str], rotation: int
) -> dict[str, tuple[float, float]]:
    """The median milliseconds of each search, by the clock and of the processor.

    Which of the searches comes first changes from query to query, and with `rotation` from run to run.
    """
    names = list(searches)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for n, query in enumerate(queries):
        for position in range(len(names)):
            name = names[(position + n + rotation) % len(names)]
            start, cpu = perf_counter(), process_time()
            searches[name](query)
            times[name].append(((perf_counter() - start) * 1000, (process_time() - cpu) * 1000))
    return {
        name: (median(wall for wall, _ in name_times), median(cpu for _, cpu in name_times))
        for name, name_times in times.items()
    }


def disk_mib(folder: Path, pattern: str = "*") -> float:
    """What the files of a folder take."""
    return sum(file.stat().st_size for file in folder.glob(pattern)) / MIB


def _rss() -> float:
    return float(psutil.Process().memory_info().rss / MIB)


def _peak() -> float:
    return peak_bytes() / MIB


def retrieval(  # noqa: PLR0913 - the experiment's knobs
    *,
    corpus: Corpus,
    questions: Questions,
    into: Out,
    more: Annotated[
        list[Path] | None,
        typer.Option(help="More passages, for larger sizes: a .jsonl[.gz] file; may be repeated."),
    ] = None,
    words: Annotated[int, typer.Option(min=5, help="Words that each of those passages is cut to.")] = 40,
    size: Annotated[
        list[int] | None,
        typer.Option(min=100, help="Passages to search; may be repeated.", show_default="10000, 40000, 200000"),
    ] = None,
    encoded: Annotated[
        int,
        typer.Option(
            min=0,
            help="The largest size that the embedder encodes; larger ones have averages of word pieces as vectors.",
        ),
    ] = 10_000,
    limit: Annotated[int, typer.Option(min=2, help="Questions to ask.")] = 300,
    runs: Annotated[int, typer.Option(min=1, help="Times that all questions are asked; the medians count.")] = 3,
    seed: Seed = 0,
    options: MeasurementOptions,
) -> None:
    """Measure BM25 (beside plain Lucene), dense (exact and approximate) and hybrid search at several sizes.

    Indexes and vectors are kept in the data folder, in the folder bench; a run that was broken off is continued.
    """
    from benchmarks import retrieval_report as report  # noqa: PLC0415 - matplotlib

    settings = options.load_settings()
    material = prepare(corpus, questions, more or (), words, limit, seed)
    sizes = sorted(set(size or SIZES))
    if sizes[-1] > len(material.passages):
        raise DataError(
            f"There are {len(material.passages):,} passages, too few for --size {sizes[-1]}; "
            "give more with --more, or cut them shorter with --words."
        )
    data = [fingerprint(path)[:16] for path in (corpus, questions, *(more or ()))]
    claim = {"data": data, "sizes": sizes, "encoded": encoded, "words": words, "limit": limit, "runs": runs,
             "seed": seed, "encoder": settings.retrieve.encoder or settings.embedder.model,
             **settings.retrieve.model_dump(include=_SEARCH_SETTINGS, exclude_defaults=True)}  # fmt: skip
    run = Run(into, claim, lambda row: str(row["key"]))
    plan = Plan.of(material, sizes, encoded, runs, settings)
    with bar("Vectors") as progress:
        tasks = [(key, partial(_row, key, make)) for key, make in plan.tasks(progress)]
        encoding_tasks = [task for task in tasks if task[0].startswith("encode")]
        run.fill(encoding_tasks, len(encoding_tasks), silent)
    with bar("Measures") as progress:
        run.fill(tasks, len(tasks), progress)
    rows = list(run.rows.values())
    report.write(rows, run, command_line())
    print_summary({"rows": rows}, options.as_json, report.tables(rows))
    print_run_folder(run)
