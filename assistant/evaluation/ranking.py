"""Measures how well passages are found, with measures named and computed by ir-measures.

One row: `{"loop": "grg", "id": "q1", "queries": [{"name": "question", "text": "..."}, ...], "ranking": ["p7", "p2"]}`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import ir_measures
from ir_measures import AP, RR, Measure, R, Success, nDCG

from assistant.errors import DataError
from assistant.evaluation.searching import BM25, ITERATIONS, Finder, check_loops
from assistant.experiment.datasets import fingerprint, read_corpus, read_qrels, read_queries, sample
from assistant.experiment.measures import mean, paired_difference
from assistant.experiment.runs import Row, Run
from assistant.protocols import Progress, Retriever
from assistant.text.sentences import words
from assistant.types import Passage

MEASURES: tuple[Measure, ...] = (nDCG @ 3, nDCG @ 5, nDCG @ 10, Success @ 1, R @ 100, RR, AP)
Key = tuple[str, str]
Qrels = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Experiment:
    """What is to be ranked, by which loops; the first loop is the one that the others are compared to."""

    corpus: Path
    queries: Path
    qrels: Path
    loops: tuple[str, ...] = ("question",)
    query_field: str = ""
    depth: int = 100
    rounds: int = 1
    limit: int | None = None
    seed: int = 0
    iterations: int = ITERATIONS
    retriever: str = BM25


@dataclass(frozen=True, slots=True)
class Topics:
    """The queries that are asked, their judgements, and counts of what was left out or does not fit, by reason."""

    queries: Mapping[str, str]
    qrels: Qrels
    remarks: Mapping[str, int] = field(default_factory=dict)


class WithoutStopWords:
    """A retriever that is not asked for the 318 common words of scikit-learn's English list.

    Lucene's own list has 33, so that "by the use of" is searched for all but "by", "the" and "of"; engines with a long
    list publish other figures. A query of nothing else is searched for as it is.
    """

    def __init__(self, retriever: Retriever) -> None:
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS  # noqa: PLC0415 - a second to import

        self._retriever = retriever
        self._common = ENGLISH_STOP_WORDS

    def search(self, query: str, k: int) -> list[Passage]:
        """At most `k` passages, best first."""
        said = " ".join(word for word in words(query) if word.lower() not in self._common)
        return self._retriever.search(said or query, k)


def prepare(experiment: Experiment) -> Topics:
    """Read and check everything before a model is loaded.

    Raises:
        DataError: a file that is broken, or no query with a judged passage of the corpus.
        SettingsError: a loop that does not exist.
    """
    check_loops(experiment.loops)
    queries = read_queries(experiment.queries, experiment.query_field)
    qrels = read_qrels(experiment.qrels)
    judged = {passage for passages in qrels.values() for passage in passages}
    corpus = read_corpus(experiment.corpus, judged)
    common = [query for query in queries if query in qrels]
    if not common or not corpus.wanted:
        raise DataError(
            f"{experiment.qrels} judges no {'passage of the corpus' if common else 'query of the file'}; give the three"
            " files that belong together."
        )
    chosen = sample(common, experiment.limit, experiment.seed)
    remarks = {
        "queries without judgements, left out": len(queries) - len(common),
        "judged queries that the query file lacks": len(qrels) - len(common),
        "judged passages that the corpus lacks": len(judged) - len(corpus.wanted),
        "queries without a text, which find nothing": sum(not queries[query] for query in chosen),
    }
    return Topics(
        {query: queries[query] for query in chosen},
        {query: qrels[query] for query in chosen},
        {what: count for what, count in remarks.items() if count},
    )


def open_run(folder: Path, experiment: Experiment, model: str) -> Run[Key]:
    """The folder of this experiment; more loops or queries may be added to it later.

    Raises:
        DataError: the folder holds a run on other data or with another model or depth.
    """
    asked = {
        "corpus": fingerprint(experiment.corpus),
        "queries": fingerprint(experiment.queries),
        "query_field": experiment.query_field,
        "model": model,
        "depth": experiment.depth,
        "loops": experiment.rounds,
    }
    if experiment.iterations != ITERATIONS:
        asked["iterations"] = experiment.iterations
    if experiment.retriever != BM25:
        asked["retriever"] = experiment.retriever
    return Run(folder, asked, lambda row: (row["loop"], row["id"]))


def measure(
    experiment: Experiment, topics: Topics, run: Run[Key], finder: Finder, progress: Progress, jobs: int = 1
) -> None:
    """Rank what the run's rows lack, `jobs` queries at a time."""

    def rank(loop: str, query: str) -> Row:
        passages = finder.find(loop, topics.queries[query], experiment.depth)
        queries = [asdict(one) for one in finder.queries(loop, topics.queries[query])]
        return {"loop": loop, "id": query, "queries": queries, "ranking": [passage.id for passage in passages]}

    rows = [
        ((loop, query), lambda loop=loop, query=query: rank(loop, query))
        for loop in experiment.loops
        for query in topics.queries
    ]
    run.fill(rows, len(rows), progress, jobs)


def summarise(experiment: Experiment, topics: Topics, run: Run[Key]) -> dict[str, Any]:
    """The measures of each loop with 95 % intervals, and the paired differences of the others to the first loop."""
    found = {
        loop: scores({query: run.rows[loop, query]["ranking"] for query in topics.queries}, topics.qrels)
        for loop in experiment.loops
    }
    base = found[experiment.loops[0]]
    return {
        "loops": {loop: _means(by_measure, experiment.seed) for loop, by_measure in found.items()},
        "differences": {
            loop: {
                name: asdict(paired_difference(values, base[name], experiment.seed))
                for name, values in by_measure.items()
            }
            for loop, by_measure in list(found.items())[1:]
        },
        "base": experiment.loops[0],
        "queries": len(topics.queries),
        "remarks": dict(topics.remarks),
    }


def scores(
    rankings: Mapping[str, Sequence[str]], qrels: Qrels, measures: Sequence[Measure] = MEASURES
) -> dict[str, list[float]]:
    """For each measure its value for each query, in the order of `rankings`; a query that found nothing counts 0."""
    # by rank, not by score: equal scores must not let the ids decide
    run = {query: {one: 1 / n for n, one in enumerate(ranking, 1)} for query, ranking in rankings.items()}
    judged = {query: dict(qrels[query]) for query in rankings}
    values = {(str(one.measure), one.query_id): one.value for one in ir_measures.iter_calc(measures, judged, run)}
    return {str(measure): [values[str(measure), query] for query in rankings] for measure in measures}


def _means(by_measure: Mapping[str, Sequence[float]], seed: int) -> dict[str, dict[str, float]]:
    return {name: asdict(mean(values, seed)) for name, values in by_measure.items()}
