"""What weighing answers by relevance gains, and what reranking does (RE-RAG, sections 4.3, 5.1 and table 6).

Every question's candidates are answered from once, each alone, and estimated once; all methods are computed from that.
One row, its lists in BM25's order:

    {"id": "nqo0001", "passages": ["nq00001", ...], "scores": [2.31, ...], "answers": ["May 18, 2018", ...],
     "logs": [-0.4, ...], "unknown": [false, ...], "own": "2018", "gold_at": [0], "gold": ["May 18, 2018"]}

`scores` are s_j, calibrated if the estimator is; `logs` the log-probability of each answer; `own` the model's answer
without passages; `gold_at` the places of passages that hold the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from threading import Event

from pandas import DataFrame, Series
from sklearn.metrics import f1_score

from assistant.errors import DataError, UtteranceError
from assistant.evaluation.thresholds import THRESHOLDS, check_odds, of_other_half
from assistant.experiment.datasets import Question, fingerprint, read_questions, sample
from assistant.experiment.grid import INTERVAL, grid, table
from assistant.experiment.measures import differences, exact_match, means
from assistant.experiment.runs import Row
from assistant.experiment.task import Rows, Summary, Task
from assistant.judges.relevance.weights import weights
from assistant.judges.uncertainty import WORD
from assistant.prompting.budget import fit
from assistant.protocols import Estimator, Parts
from assistant.strategies.post_fusion import replies
from assistant.strategies.shared.reading import FACTOID_ROOM
from assistant.text.sentences import normalise
from assistant.types import Choices, Options, Relevance, Turn

BASE, FULL = "post_fusion", "re_rag"


@dataclass(frozen=True, slots=True)
class Experiment:
    """What is asked: `depth` BM25 candidates of each question, the best `k` of which are answered from.

    `uncertainty` is how "unknown" is told, with its threshold where it has one. `thresholds` are those of the set's
    confidence that are tried.
    """

    corpus: Path
    questions: Path
    depth: int = 10
    k: int = 5
    limit: int | None = None
    seed: int = 0
    skip: int = 0
    uncertainty: str = WORD
    thresholds: tuple[float, ...] = THRESHOLDS


def prepare(experiment: Experiment) -> dict[str, Question]:
    """The questions by their ids, those with answers and gold passages.

    Raises:
        DataError: a broken file, no such question, fewer candidates than are answered from, or a threshold that is
            not between 0 and 1.
    """
    check_odds(*experiment.thresholds)
    if experiment.k > experiment.depth:
        raise DataError(f"k is {experiment.k}, but only {experiment.depth} passages are asked; raise the depth.")
    sampled = sample(read_questions(experiment.questions), experiment.limit, experiment.seed, experiment.skip)
    chosen = {one.id: one for one in sampled if one.answers and one.gold}
    if not chosen:
        raise DataError(f"No question of {experiment.questions} has answers and gold passages; give another file.")
    return chosen


@dataclass(frozen=True)
class Weighing(Task[Question, Parts]):
    """The candidates of each question answered from one by one, and estimated by `estimator`.

    `made_with` says under what conditions, `model` is the language model's own name.
    """

    experiment: Experiment
    items: Mapping[str, Question]
    made_with: str
    model: str
    estimator: Estimator

    def claim(self) -> Row:
        """See `Task`."""
        return {
            "corpus": fingerprint(self.experiment.corpus),
            "questions": fingerprint(self.experiment.questions),
            "depth": self.experiment.depth,
            "model": self.made_with,
            "estimator": f"{self.estimator.name} {self.estimator.calibration}".strip(),
            "uncertainty": self.experiment.uncertainty,
        }

    def row(self, item: Question, given: Parts) -> Row:
        """See `Task`."""
        passages = tuple(given.retriever.search(item.text, self.experiment.depth))
        choices = Choices(BASE, k=self.experiment.depth, form="factoid")
        turn = Turn(item.text, question=item.text, passages=passages, choices=choices)
        try:
            found = _found(turn, given, self.estimator)
        except UtteranceError as refusal:
            # a question too long for the model must not end the run each time it is resumed; it counts as wrong
            found = {**_nothing(len(passages)), "error": str(refusal)}
        return {
            "id": item.id,
            "question": item.text,
            "passages": [passage.id for passage in passages],
            **found,
            "gold_at": [n for n, passage in enumerate(passages) if passage.id in item.gold],
            "gold": list(item.answers),
        }

    def summarise(self, rows: Rows) -> Summary:
        """EM of all methods, against post-fusion, and what abstaining and the mixed strategy do.

        A threshold is never chosen on the questions that it is measured on: each half takes that of the other.
        """
        mine, experiment = [rows[one] for one in self.items], self.experiment
        hits = {name: [_em(row, _answer(row, name, experiment.k)) for row in mine] for name in METHODS}
        base = dict.fromkeys(hits, hits[BASE])
        return {
            "model": self.model,
            "estimator": self.estimator.name,
            "questions": len(mine),
            "k": experiment.k,
            "depth": experiment.depth,
            "methods": means(hits, experiment.seed),
            "differences": differences({name: of for name, of in hits.items() if name != BASE}, base, experiment.seed),
            "under_threshold": _under_threshold(mine, hits[FULL], experiment),
        }

    def table(self, summary: Summary) -> str:
        """See `Task`."""
        methods = [
            [name, f"{found['value']:.3f}", INTERVAL.format(**found), *_against(summary["differences"].get(name))]
            for name, found in summary["methods"].items()
        ]
        low = summary["under_threshold"]
        sets = [
            {"name": name, **low[name], "abstaining": low[f"{name}_abstaining"]["right"]}
            for name in ("answerable", "unanswerable")
        ]
        columns = {
            "sets": "{name}",
            "number": "{sets}",
            "right": "{right:.3f}",
            "right where abstaining": "{abstaining:.3f}",
        }
        mixed = (
            f"Mixed: EM {low['mixed']['value']:.3f} (closed book alone {low['closed_book']['value']:.3f}); "
            f"{low['mixed_gain']} gained, {low['mixed_loss']} lost."
        )
        heads = ["method", "EM", "95 % interval", "against post-fusion", "95 % interval"]
        return "\n\n".join([grid(heads, methods), table(sets, columns), mixed])


def _against(found: Mapping[str, float] | None) -> list[str]:
    return [f"{found['value']:+.3f}", "{low:+.3f} to {high:+.3f}".format(**found)] if found else ["", ""]


# --- rows --------------------------------------------------------------------------------------------------------


def _found(turn: Turn, parts: Parts, estimator: Estimator) -> Row:
    answered = replies(turn, parts, Event())
    return {
        "scores": [round(one.score, 6) for one in estimator.estimate(turn.question, turn.passages, Event())],
        "answers": [candidate.text for candidate, _ in answered],
        "logs": [round(sum(asked.completion.logprobs), 6) for _, asked in answered],
        "unknown": [candidate.unknown for candidate, _ in answered],
        "own": _own(turn.question, parts),
    }


def _nothing(passages: int) -> Row:
    zeros = [0.0] * passages
    return {"scores": zeros, "answers": [""] * passages, "logs": zeros, "unknown": [True] * passages, "own": ""}


def _own(question: str, parts: Parts) -> str:
    messages, _ = fit("factoid/closed_book", parts.llm, FACTOID_ROOM, question=question)
    [completion] = parts.llm.complete([messages], Options(max_tokens=FACTOID_ROOM), Event())
    return completion.text.strip()


# --- methods -----------------------------------------------------------------------------------------------------

# Of each method: whether passages are reranked, and how an answer is weighed.
METHODS: Mapping[str, tuple[bool, str]] = {
    BASE: (False, "votes"),
    "likelihood only": (False, "likelihood"),
    "rerank only": (True, "votes"),
    "score only": (False, "softmax"),
    FULL: (True, "softmax"),
    "without normalisation": (True, "confidence"),
}


def _places(row: Row, k: int, *, reranked: bool) -> list[int]:
    places = range(len(row["passages"]))
    return (sorted(places, key=lambda n: -row["scores"][n]) if reranked else list(places))[:k]


def _answer(row: Row, method: str, k: int) -> str:
    """The answer of most weight, "" where all are unknown; ties go to the passage that ranks higher."""
    reranked, weighed = METHODS[method]
    places = _places(row, k, reranked=reranked)
    worth = _worth(row, places, weighed)
    totals: dict[str, float] = {}
    texts: dict[str, str] = {}
    for n, one in zip(places, worth, strict=True):
        if not row["unknown"][n]:
            key = normalise(row["answers"][n])
            totals[key] = totals.get(key, 0.0) + one
            texts.setdefault(key, row["answers"][n])
    return texts[max(totals, key=lambda key: totals[key])] if totals else ""


def _worth(row: Row, places: Sequence[int], weighed: str) -> list[float]:
    if weighed == "votes":
        return [1.0] * len(places)
    likelihoods = [exp(min(row["logs"][n], 0.0)) for n in places]
    if weighed == "likelihood":
        return likelihoods
    scores = [row["scores"][n] for n in places]
    shares = weights(scores) if weighed == "softmax" else [Relevance.of_score(score).confidence for score in scores]
    return [share * likelihood for share, likelihood in zip(shares, likelihoods, strict=True)]


def _em(row: Row, answer: str) -> float:
    return exact_match(answer, row["gold"])


# --- thresholds --------------------------------------------------------------------------------------------------


def _under_threshold(rows: Sequence[Row], hits: Sequence[float], experiment: Experiment) -> Summary:
    """What saying "unanswerable" under the threshold does, and answering from the model's own knowledge instead."""
    sets = DataFrame(
        {
            "sure": [max((Relevance.of_score(one).confidence for one in row["scores"]), default=0.0) for row in rows],
            "held": [not set(row["gold_at"]).isdisjoint(_places(row, experiment.k, reranked=True)) for row in rows],
            "own": [_em(row, row["own"]) for row in rows],
            "hit": hits,
        }
    )
    half = sets.index.to_series() % 2

    def f1(some: DataFrame, threshold: float) -> float:
        return float(f1_score(~some["held"], some["sure"] < threshold, zero_division=0))

    chosen = of_other_half(sets, half, experiment.thresholds, f1)
    below = sets["sure"] < half.map(dict(enumerate(chosen)))
    mixed = sets["own"].where(below, sets["hit"])
    held = sets["held"]
    return {
        "threshold_of_halves": chosen,
        "abstained": float(below.mean()),
        "answerable": _share(sets["hit"][held]),
        "answerable_abstaining": _share((sets["hit"] * ~below)[held]),
        "unanswerable": _share(sets["hit"][~held]),
        "unanswerable_abstaining": _share(below[~held]),
        **means({"closed_book": list(sets["own"]), "mixed": list(mixed)}, experiment.seed),
        "mixed_gain": int((mixed > sets["hit"]).sum()),
        "mixed_loss": int((mixed < sets["hit"]).sum()),
    }


def _share(right: Series) -> dict[str, float]:
    """The mean over some sets, and how many there are."""
    return {"sets": len(right), "right": float(right.mean()) if len(right) else 0.0}
