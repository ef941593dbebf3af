"""Measures a relevance estimator: its ranking, sets without an answer, calibration (RE-RAG, sections 4.2 and 5.1).

Each question's BM25 candidates are estimated once, and everything is computed from these rows:

    {"id": "nqo0001", "passages": ["nq00001", ...], "own": [], "scores": {"nq00001": 2.31, ...}, "seconds": 1.2,
     "error": ""}

`passages` are in BM25's order, `scores` are the estimator's own s_j, before any calibration. A context set is
"unanswerable" if none of its passages is gold, or if the question is marked so.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Event
from typing import Literal

import numpy as np
from ir_measures import Success
from pandas import DataFrame, Series
from sklearn.metrics import precision_recall_fscore_support

from assistant.errors import DataError, UtteranceError
from assistant.evaluation import relevance_report as report
from assistant.evaluation.ranking import scores as ranking_scores
from assistant.evaluation.thresholds import THRESHOLDS, check_odds, of_other_half
from assistant.experiment.datasets import Corpus, Question, fingerprint, read_corpus, read_questions, sample
from assistant.experiment.measures import differences, means, unknown_scores
from assistant.experiment.runs import Row, Run
from assistant.experiment.task import Rows, Summary, Task
from assistant.judges.relevance.calibration import Calibration, Method, expected_calibration_error, fit, reliability
from assistant.judges.relevance.estimate import PRIOR, likely, reranked, set_confidence
from assistant.protocols import Estimator, Retriever
from assistant.settings import RetrieveSettings
from assistant.types import Passage, Relevance

Contexts = Literal["auto", "retrieved", "own"]
CUTOFFS = (1, 5, 10, 20)
# What is tried as `relevance.least`, on as many passages as a turn shows.
SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
SHOWN = RetrieveSettings().k


@dataclass(frozen=True, slots=True)
class Experiment:
    """What is estimated. `depth` candidates are reranked, of which the best `k` are the question's context set.

    `thresholds` are those of the set's confidence that are tried. Where the gold is withheld, sets without it are
    weighed as if they were this `share` of all.

    `contexts` can be "own": the set is the question's gold passages alone, as in SQuAD 2.0, where a paragraph may lack
    the answer. "auto" is that where a question is marked as unanswerable, else "retrieved".
    """

    corpus: Path
    questions: Path
    depth: int = 20
    k: int = 20
    contexts: Contexts = "auto"
    limit: int | None = None
    seed: int = 0
    skip: int = 0
    share: float = 0.5
    thresholds: tuple[float, ...] = THRESHOLDS


@dataclass(frozen=True, slots=True)
class Material:
    """The questions, their gold passages as far as the corpus has them, what the sets are, and what was left out."""

    questions: tuple[Question, ...]
    corpus: Corpus
    own: bool
    left_out: Mapping[str, int] = field(default_factory=dict)

    def own_passages(self, question: Question) -> list[Passage]:
        """The question's own passages, where sets are made of them."""
        found = [self.corpus.wanted[one] for one in question.gold if one in self.corpus.wanted]
        return found if self.own else []


@dataclass(frozen=True, slots=True)
class Judged:
    """One question with its estimates, calibrated or not, and its context set's confidence max_j r_j.

    `without_gold` is what the confidence would be had no gold passage been found; None where none was.
    """

    question: Question
    relevance: Mapping[str, Relevance]
    confidence: float
    unanswerable: bool
    without_gold: float | None = None

    def is_relevant(self, passage_id: str) -> bool:
        """Whether a passage holds the answer."""
        return not self.question.unanswerable and passage_id in self.question.gold


def prepare(experiment: Experiment) -> Material:
    """Read and check everything before a model is loaded.

    Raises:
        DataError: a broken file, no question to ask, fewer candidates than the set is to have, or a share or threshold
            that is not between 0 and 1.
    """
    check_odds(experiment.share, *experiment.thresholds)
    if experiment.k > experiment.depth:
        raise DataError(f"k is {experiment.k}, but only {experiment.depth} passages are estimated; raise the depth.")
    everything = read_questions(experiment.questions)
    corpus = read_corpus(experiment.corpus, {gold for question in everything for gold in question.gold})
    marked = any(question.unanswerable for question in everything)
    own = experiment.contexts == "own" or (experiment.contexts == "auto" and marked)
    chosen = sample(everything, experiment.limit, experiment.seed, experiment.skip)
    reasons = {question.id: _why_not(question, corpus, own) for question in chosen}
    asked = tuple(question for question in chosen if not reasons[question.id])
    if not asked:
        raise DataError(f"None of the {len(chosen)} questions chosen from {experiment.questions} can be measured.")
    return Material(asked, corpus, own, dict(Counter(filter(None, reasons.values()))))


@dataclass
class Estimates(Task[Question, tuple[Estimator, Retriever]]):
    """What the `estimator` of this name says of the candidates of each question.

    Confidences are calibrated by `calibration`, or by `method`, or left as they are. A threshold, and a calibration by
    `method`, are never chosen on the questions that they are measured on: each half of the questions takes those of
    the other half.
    """

    experiment: Experiment
    material: Material
    estimator: str
    model: str
    calibration: Calibration | None = None
    method: Method | None = None

    def __post_init__(self) -> None:
        self.items = {one.id: one for one in self.material.questions}

    def claim(self) -> Row:
        """See `Task`."""
        return {
            "corpus": fingerprint(self.experiment.corpus),
            "questions": fingerprint(self.experiment.questions),
            "estimator": self.estimator,
            "model": self.model,
            "depth": self.experiment.depth,
            "contexts": "own" if self.material.own else "retrieved",
        }

    def row(self, item: Question, given: tuple[Estimator, Retriever]) -> Row:
        """See `Task`."""
        estimator, retriever = given
        # Of a question that nothing answers, no ranking is right or wrong: its own passages are all that is asked.
        alone = self.material.own and item.unanswerable
        passages = [] if alone else retriever.search(item.text, self.experiment.depth)
        return _row(item, passages, self.material.own_passages(item), estimator)

    def summarise(self, rows: Rows) -> Summary:
        """All measures.

        Raises:
            DataError: a half has nothing to calibrate on.
        """
        material, experiment = self.material, self.experiment
        mine = [rows[question.id] for question in material.questions]
        curves = self._curves(rows) if self.method else [self.calibration] * len(mine)
        judged = [
            _judged(experiment, question, row, curve)
            for question, row, curve in zip(material.questions, mine, curves, strict=True)
        ]
        errors = sum(bool(row["error"]) for row in mine)
        ranked, told = _rankings(experiment, material, mine, curves), _unanswerable(judged, experiment)
        return {
            "estimator": self.estimator,
            "questions": len(mine),
            "contexts": "own" if material.own else "retrieved",
            "depth": experiment.depth,
            "k": experiment.k,
            "calibration": self.method or (self.calibration.method if self.calibration else "none"),
            **ranked,
            **told,
            "intervals": {**ranked["intervals"], **told["intervals"]},
            "left_out_under": _left_out(judged, mine, curves),
            **_calibrated(judged),
            "seconds_per_question": sum(row["seconds"] for row in mine) / len(mine),
            "remarks": {"questions too long for the estimator": errors} if errors else {},
            "left_out": dict(material.left_out),
        }

    def table(self, summary: Summary) -> str:
        """See `Task`."""
        return report.table(summary)

    def details(self, summary: Summary, run: Run[str]) -> str:
        """The reliability diagram; with a `method`, a calibration for other questions is written, too."""
        if self.method:
            self.fitted(self.material.questions, run.rows, self.method).save(run.folder / "calibration.json")
        return f"![reliability]({report.draw(summary, run.folder).name})"

    def fitted(self, questions: Sequence[Question], rows: Rows, method: Method) -> Calibration:
        """A calibration fitted on all passages of these questions, to be used on others.

        Raises:
            DataError: there is nothing to calibrate on.
        """
        pairs = [
            (score, not question.unanswerable and one in question.gold)
            for question in questions
            for one, score in rows[question.id]["scores"].items()
        ]
        return fit(self.estimator, method, [score for score, _ in pairs], [label for _, label in pairs])

    def _curves(self, rows: Rows) -> list[Calibration | None]:
        """For each question the calibration that the other half of the questions gives."""
        assert self.method  # noqa: S101 - its caller has asked
        halves = [self.fitted(self.material.questions[1 - half :: 2], rows, self.method) for half in (0, 1)]
        return [halves[n % 2] for n in range(len(self.material.questions))]


# --- rows --------------------------------------------------------------------------------------------------------


def _why_not(question: Question, corpus: Corpus, own: bool) -> str:
    if not question.gold:
        return "questions that name no gold passage"
    if own and not any(gold in corpus.wanted for gold in question.gold):
        return "questions with gold passages that the corpus lacks"
    return ""


def _row(question: Question, passages: Sequence[Passage], own: Sequence[Passage], estimator: Estimator) -> Row:
    ids = {passage.id for passage in passages}
    everything = [*passages, *(passage for passage in own if passage.id not in ids)]
    begun, error = time.perf_counter(), ""
    try:
        found = estimator.estimate(question.text, everything, Event())
    except UtteranceError as refusal:
        # a question too long for the model must not end the run each time it is resumed
        found, error = [Relevance.of_score(0.0)] * len(everything), str(refusal)
    return {
        "id": question.id,
        "passages": [passage.id for passage in passages],
        "own": [passage.id for passage in own],
        "scores": {passage.id: round(one.score, 6) for passage, one in zip(everything, found, strict=True)},
        "seconds": round(time.perf_counter() - begun, 3),
        "error": error,
    }


def _judged(experiment: Experiment, question: Question, row: Row, curve: Calibration | None) -> Judged:
    raw = {one: Relevance.of_score(score) for one, score in row["scores"].items()}
    relevance = {one: curve.apply(found) if curve else found for one, found in raw.items()}

    def confidence(ids: Sequence[str]) -> float:
        return set_confidence([relevance[one] for one in ids])

    ranked, gold = _reranked(row, curve), set() if question.unanswerable else set(question.gold)
    shown = row["own"] or ranked[: experiment.k]
    held = not gold.isdisjoint(shown)
    others = [one for one in ranked if one not in gold][: experiment.k]
    without = confidence(others) if held and others and not row["own"] else None
    return Judged(question, relevance, confidence(shown), not held, without)


def _reranked(row: Row, curve: Calibration | None, prior: float = 0.0) -> list[str]:
    """Where isotonic calibration makes two equal, the one that was found first comes first."""
    raw = [Relevance.of_score(row["scores"][one]) for one in row["passages"]]
    found = [Passage(one, "", "") for one in row["passages"]]
    judged = [curve.apply(one) if curve else one for one in raw]
    return [passage.id for passage, _ in reranked(found, judged, len(found), prior)]


# --- measures ----------------------------------------------------------------------------------------------------


def _rankings(
    experiment: Experiment, material: Material, rows: Sequence[Row], curves: Sequence[Calibration | None]
) -> Summary:
    """R@n as in DPR: the share of questions with a gold passage among the first n. Answerable questions only."""
    asked = [one for one in zip(material.questions, rows, curves, strict=True) if not one[0].unanswerable]
    if not asked:
        return {"bm25": {}, "turn": {}, "intervals": {}, "differences": {}}
    qrels = {question.id: dict.fromkeys(question.gold, 1) for question, _, _ in asked}

    def reached(rankings: Sequence[Sequence[str]]) -> dict[str, list[float]]:
        cutoffs = [cutoff for cutoff in CUTOFFS if cutoff <= experiment.depth]
        found = ranking_scores(dict(zip(qrels, rankings, strict=True)), qrels, [Success @ one for one in cutoffs])
        return {name.replace("Success", "R"): values for name, values in found.items()}

    before = reached([row["passages"] for _, row, _ in asked])
    after, turn = (reached([_reranked(row, curve, prior) for _, row, curve in asked]) for prior in (0.0, PRIOR))
    found = means(after, experiment.seed)
    return {
        **{name: one["value"] for name, one in found.items()},
        "bm25": {name: float(np.mean(values)) for name, values in before.items()},
        "turn": {name: float(np.mean(values)) for name, values in turn.items()},
        "differences": differences(after, before, experiment.seed),
        "intervals": _intervals(found),
    }


def _left_out(
    judged: Sequence[Judged], rows: Sequence[Row], curves: Sequence[Calibration | None]
) -> list[dict[str, float]]:
    """What leaving out passages under each share of the likeliest one's confidence does to those that a turn shows.

    `passages` is the share of all that are left out, `gold` of the gold ones, `lost` of the questions whose gold
    passages all are.
    """
    shown = DataFrame(
        [
            (one.question.id, one.relevance[name].confidence, one.is_relevant(name))
            for one, row, curve in zip(judged, rows, curves, strict=True)
            for name in _reranked(row, curve, PRIOR)[:SHOWN]
        ],
        columns=["question", "confidence", "relevant"],
    )
    return [_under(share, shown) for share in SHARES]


def _under(share: float, shown: DataFrame) -> dict[str, float]:
    kept = shown.groupby("question")["confidence"].transform(lambda some: likely(list(some), share, SHOWN))
    stays, gold = kept.astype(bool), shown["relevant"].astype(bool)

    def gone(some: Series) -> float:
        return float(1 - some.mean()) if len(some) else 0.0

    held = stays[gold].groupby(shown["question"]).any()
    return {"share": share, "passages": gone(stays), "gold": gone(stays[gold]), "lost": gone(held)}


def _unanswerable(judged: Sequence[Judged], experiment: Experiment) -> Summary:
    """How well sets without an answer are told: as they were retrieved, and each with and without its gold."""
    share, heads = experiment.share, ["confidence", "unanswerable", "question", "weight"]
    sets = [(one.confidence, one.unanswerable, n, 1.0) for n, one in enumerate(judged)]
    twice = [
        (confidence, unanswerable, n, weight)
        for n, one in enumerate(judged)
        if one.without_gold is not None
        for confidence, unanswerable, weight in ((one.confidence, False, 1 - share), (one.without_gold, True, share))
    ]
    told = _told(DataFrame(sets, columns=heads), experiment)
    named = {f"unanswerable_{name}": told.pop(name) for name in ("precision", "recall", "f1", "share", "f1_of_always")}
    return {
        **named,
        **told,
        "intervals": {f"unanswerable_{name}": ends for name, ends in told["intervals"].items()},
        "gold_withheld": _told(DataFrame(twice, columns=heads), experiment) if twice else {},
    }


def _told(sets: DataFrame, experiment: Experiment) -> Summary:
    half = sets["question"] % 2
    thresholds = of_other_half(sets, half, experiment.thresholds, lambda some, one: _at(some, one)["f1"])
    said = sets["confidence"] < half.map(dict(enumerate(thresholds)))
    scores = unknown_scores(
        list(said),
        list(sets["unanswerable"]),
        experiment.seed,
        list(sets["question"].factorize()[0]),
        list(sets["weight"]),
    )
    share = float(sets["weight"][sets["unanswerable"]].sum() / sets["weight"].sum())
    found = {name: asdict(one) for name, one in scores.items()}
    return {
        **{name: one["value"] for name, one in found.items()},
        "intervals": _intervals(found),
        "share": share,
        "f1_of_always": 2 * share / (1 + share),
        "threshold_of_halves": thresholds,
        "thresholds": [_at(sets, threshold) for threshold in experiment.thresholds],
    }


def _at(sets: DataFrame, threshold: float) -> dict[str, float]:
    """What calling sets under the threshold unanswerable does; `given_up` is the share of the others that are, too."""
    said, there, weight = sets["confidence"] < threshold, sets["unanswerable"].astype(bool), sets["weight"]
    found = precision_recall_fscore_support(there, said, average="binary", sample_weight=weight, zero_division=0)
    lost, others = weight[said & ~there].sum(), weight[~there].sum()
    return {
        "threshold": threshold,
        **{name: float(value) for name, value in zip(("precision", "recall", "f1"), found[:3], strict=True)},
        "given_up": float(lost / others) if others else 0.0,
    }


def _calibrated(judged: Sequence[Judged]) -> Summary:
    pairs = [(found.confidence, one.is_relevant(passage)) for one in judged for passage, found in one.relevance.items()]
    confidences, relevant = [confidence for confidence, _ in pairs], [label for _, label in pairs]
    if not pairs:
        raise DataError("No passage was found for any question; give the corpus that belongs to them.")
    held = [not one.unanswerable for one in judged]
    return {
        "ece": expected_calibration_error(confidences, relevant),
        "set_ece": expected_calibration_error([one.confidence for one in judged], held),
        "reliability": [asdict(one) for one in reliability(confidences, relevant)],
    }


def _intervals(found: Mapping[str, Mapping[str, float]]) -> dict[str, list[float]]:
    return {name: [one["low"], one["high"]] for name, one in found.items()}
