"""Measures how well passages are found, with measures named and computed by ir-measures.

One row: `{"loop": "grg", "id": "q1", "queries": [{"name": "question", "text": "..."}, ...], "ranking": ["p7", "p2"]}`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Annotated

import ir_measures
from ir_measures import AP, RR, Measure, R, Success, nDCG
from pandas import DataFrame
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from typer import Option

from assistant.errors import DataError
from assistant.evaluation.searching import BM25, ITERATIONS, Finder, check_loops
from assistant.experiment.datasets import read_corpus, read_qrels, read_queries
from assistant.experiment.measures import differences, means
from assistant.experiment.options import Corpus, Iterations, Rounds, Sample
from assistant.experiment.runs import Row
from assistant.experiment.task import Rows, Summary, Task, claim_of_fields, non_default_fields
from assistant.protocols import Retriever
from assistant.text.sentences import words
from assistant.types import Passage

MEASURES: tuple[Measure, ...] = (nDCG @ 3, nDCG @ 5, nDCG @ 10, Success @ 1, R @ 100, RR, AP)
Key = tuple[str, str]
Qrels = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Experiment(Sample):
    """What is to be ranked, by which loops; the first loop is the one that the others are compared to."""

    corpus: Corpus
    queries: Annotated[Path, Option(help="Queries: a .jsonl[.gz] file of {id, text}, or of questions.")]
    qrels: Annotated[Path, Option(help="Judgements: TREC's four columns, or a question file with gold ids.")]
    loops: Annotated[
        tuple[str, ...],
        Option("--loop", help="'question', 'draft', 'generate', or a loop; may be repeated, the first is compared to."),
    ] = ("question",)
    query_field: Annotated[str, Option(help="The key of the query's text.", show_default="text")] = ""
    depth: Annotated[int, Option(min=1, max=1000, help="Passages ranked for a query.")] = 100
    rounds: Rounds = 1
    iterations: Iterations = ITERATIONS
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
        self._retriever = retriever

    def search(self, query: str, k: int) -> list[Passage]:
        """At most `k` passages, best first."""
        kept_words = " ".join(word for word in words(query) if word.lower() not in ENGLISH_STOP_WORDS)
        return self._retriever.search(kept_words or query, k)


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
    common_ids = [query for query in queries if query in qrels]
    if not common_ids or not corpus.passages:
        missing = "passage of the corpus" if common_ids else "query of the file"
        raise DataError(f"{experiment.qrels} judges no {missing}; give the three files that belong together.")
    sampled_ids = experiment.draw(common_ids)
    remarks = {
        "queries without judgements, left out": len(queries) - len(common_ids),
        "judged queries that the query file lacks": len(qrels) - len(common_ids),
        "judged passages that the corpus lacks": len(judged) - len(corpus.passages),
        "queries without a text, which find nothing": sum(not queries[query] for query in sampled_ids),
    }
    chosen_queries = {query: queries[query] for query in sampled_ids}
    labels = {query: qrels[query] for query in sampled_ids}
    return Topics(chosen_queries, labels, {missing: count for missing, count in remarks.items() if count})


@dataclass
class Ranking(Task[Key, Finder]):
    """What each loop finds for each query; a loop that comes first is compared to."""

    title = "Rankings"
    experiment: Experiment
    topics: Topics
    model: str

    def __post_init__(self) -> None:
        self.items = {key: key for key in product(self.experiment.loops, self.topics.queries)}

    def key(self, row: Row) -> Key:
        """Loop and query."""
        return row["loop"], row["id"]

    def claim(self) -> Row:
        """See `Task`."""
        decided = claim_of_fields(self.experiment, "corpus", "queries", "query_field", "depth")
        unusual_options = non_default_fields(self.experiment, "iterations", "retriever")
        return {**decided, "model": self.model, "loops": self.experiment.rounds, **unusual_options}

    def row(self, item: Key, finder: Finder) -> Row:
        """See `Task`."""
        loop, query = item
        text = self.topics.queries[query]
        passages = finder.find(loop, text, self.experiment.depth)
        queries = [asdict(search_query) for search_query in finder.queries(loop, text)]
        return {"loop": loop, "id": query, "queries": queries, "ranking": [passage.id for passage in passages]}

    def summarise(self, rows: Rows) -> Summary:
        """The measures of each loop with 95 % intervals, and the paired differences of the others to the first loop."""
        queries, seed, (first_loop, *other_loops) = self.topics.queries, self.experiment.seed, self.experiment.loops
        by_loop = {
            loop: scores({query: rows[loop, query]["ranking"] for query in queries}, self.topics.qrels)
            for loop in (first_loop, *other_loops)
        }
        return {
            "loops": {loop: means(by_measure, seed) for loop, by_measure in by_loop.items()},
            "differences": {loop: differences(by_loop[loop], by_loop[first_loop], seed) for loop in other_loops},
            "base": first_loop,
            "queries": len(queries),
            "remarks": dict(self.topics.remarks),
        }


def scores(rankings: Mapping[str, Sequence[str]], qrels: Qrels, measures: Sequence[Measure] = MEASURES) -> DataFrame:
    """A line for each query, in the order of `rankings`, with each measure; a query that found nothing counts 0."""
    names = list(map(str, measures))
    if not rankings:
        return DataFrame(columns=names)
    # by rank, not by score: equal scores must not let the ids decide
    run = {query: {passage_id: 1 / n for n, passage_id in enumerate(ranking, 1)} for query, ranking in rankings.items()}
    judged = {query: dict(qrels[query]) for query in rankings}
    values = ir_measures.iter_calc(measures, judged, run)
    table = DataFrame((metric.query_id, str(metric.measure), metric.value) for metric in values)
    return table.pivot(index=0, columns=1, values=2).loc[list(rankings), names]
