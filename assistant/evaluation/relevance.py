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
from typing import Any, Literal

from ir_measures import Success

from assistant.errors import DataError, UtteranceError
from assistant.evaluation.ranking import scores as ranking_scores
from assistant.evaluation.thresholds import THRESHOLDS, check_odds
from assistant.experiment.datasets import Corpus, Question, fingerprint, read_corpus, read_questions, sample
from assistant.experiment.measures import Estimate, mean, paired_difference, unknown_scores
from assistant.experiment.runs import Row, Run
from assistant.judges.relevance.calibration import Calibration, Method, expected_calibration_error, fit, reliability
from assistant.judges.relevance.estimate import PRIOR, likely, reranked, set_confidence
from assistant.protocols import Estimator, Progress, Retriever
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


@dataclass(frozen=True, slots=True)
class ContextSet:
    """A set's confidence, whether it lacks an answer, the number of the question that it is for, and its weight."""

    confidence: float
    unanswerable: bool
    question: int
    weight: float = 1.0

    @property
    def half(self) -> int:
        """Which half of the questions it belongs to."""
        return self.question % 2


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


def open_run(folder: Path, experiment: Experiment, material: Material, estimator: str, model: str) -> Run[str]:
    """The folder of this experiment; more questions may be added to it later.

    Raises:
        DataError: the folder holds a run on other data or with another estimator, model or depth.
    """
    return Run(folder, claim(experiment, material, estimator, model), lambda row: str(row["id"]))


def claim(experiment: Experiment, material: Material, estimator: str, model: str) -> Row:
    """What decides the rows."""
    return {
        "corpus": fingerprint(experiment.corpus),
        "questions": fingerprint(experiment.questions),
        "estimator": estimator,
        "model": model,
        "depth": experiment.depth,
        "contexts": "own" if material.own else "retrieved",
    }


def measure(
    experiment: Experiment,
    material: Material,
    run: Run[str],
    estimator: Estimator,
    retriever: Retriever,
    progress: Progress,
) -> None:
    """Estimate what the run's rows lack."""

    def row(question: Question) -> Row:
        # Of a question that nothing answers, no ranking is right or wrong: its own passages are all that is asked.
        alone = material.own and question.unanswerable
        passages = [] if alone else retriever.search(question.text, experiment.depth)
        return _row(question, passages, material.own_passages(question), estimator)

    jobs = [(question.id, lambda question=question: row(question)) for question in material.questions]
    run.fill(jobs, len(jobs), progress)


def summarise(
    experiment: Experiment,
    material: Material,
    run: Run[str],
    estimator: str,
    calibration: Calibration | None = None,
    method: Method | None = None,
) -> dict[str, Any]:
    """All measures. Confidences are calibrated by `calibration`, or by `method`, or left as they are.

    A threshold, and a calibration by `method`, are never chosen on the questions that they are measured on: each half
    of the questions takes those of the other half.

    Raises:
        DataError: a half has nothing to calibrate on.
    """
    rows = [run.rows[question.id] for question in material.questions]
    curves = _curves(run, material, method, estimator) if method else [calibration] * len(rows)
    judged = [
        _judged(experiment, question, row, curve)
        for question, row, curve in zip(material.questions, rows, curves, strict=True)
    ]
    errors = sum(bool(row["error"]) for row in rows)
    ranked, told = _rankings(experiment, material, run, curves), _unanswerable(judged, experiment)
    return {
        "estimator": estimator,
        "questions": len(rows),
        "contexts": "own" if material.own else "retrieved",
        "depth": experiment.depth,
        "k": experiment.k,
        "calibration": method or (calibration.method if calibration else "none"),
        **ranked,
        **told,
        "intervals": {**ranked["intervals"], **told["intervals"]},
        "left_out_under": _left_out(judged, rows, curves),
        **_calibrated(judged),
        "seconds_per_question": sum(row["seconds"] for row in rows) / len(rows),
        "remarks": {"questions too long for the estimator": errors} if errors else {},
        "left_out": dict(material.left_out),
    }


def calibrated(material: Material, run: Run[str], method: Method, estimator: str) -> Calibration:
    """A calibration fitted on all passages of the run, to be used on other questions.

    Raises:
        DataError: there is nothing to calibrate on.
    """
    return _fitted(material.questions, run, method, estimator)


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


def _pairs(questions: Sequence[Question], run: Run[str]) -> list[tuple[float, bool]]:
    return [
        (score, not question.unanswerable and one in question.gold)
        for question in questions
        for one, score in run.rows[question.id]["scores"].items()
    ]


def _fitted(questions: Sequence[Question], run: Run[str], method: Method, estimator: str) -> Calibration:
    pairs = _pairs(questions, run)
    return fit(estimator, method, [score for score, _ in pairs], [label for _, label in pairs])


def _curves(run: Run[str], material: Material, method: Method, estimator: str) -> list[Calibration | None]:
    """For each question the calibration that the other half of the questions gives."""
    halves = [_fitted(material.questions[1 - half :: 2], run, method, estimator) for half in (0, 1)]
    return [halves[n % 2] for n in range(len(material.questions))]


# --- measures ----------------------------------------------------------------------------------------------------


def _rankings(
    experiment: Experiment, material: Material, run: Run[str], curves: Sequence[Calibration | None]
) -> dict[str, Any]:
    """R@n as in DPR: the share of questions with a gold passage among the first n. Answerable questions only."""
    asked = [one for one in material.questions if not one.unanswerable]
    rows = {one.id: run.rows[one.id] for one in asked}
    curve_of = dict(zip((one.id for one in material.questions), curves, strict=True))
    qrels = {one.id: dict.fromkeys(one.gold, 1) for one in asked}
    if not rows:
        return {"bm25": {}, "turn": {}, "intervals": {}, "differences": {}}
    cutoffs = [cutoff for cutoff in CUTOFFS if cutoff <= experiment.depth]
    measures = [Success @ cutoff for cutoff in cutoffs]
    before = ranking_scores({one: row["passages"] for one, row in rows.items()}, qrels, measures)
    after, turn = (
        ranking_scores({one: _reranked(row, curve_of[one], prior) for one, row in rows.items()}, qrels, measures)
        for prior in (0.0, PRIOR)
    )
    keys = [(f"R@{cutoff}", str(measure)) for cutoff, measure in zip(cutoffs, measures, strict=True)]
    seed = experiment.seed
    found = {name: mean(after[key], seed) for name, key in keys}
    return {
        **{name: one.value for name, one in found.items()},
        "bm25": {name: mean(before[key], seed).value for name, key in keys},
        "turn": {name: mean(turn[key], seed).value for name, key in keys},
        "differences": {name: asdict(paired_difference(after[key], before[key], seed)) for name, key in keys},
        "intervals": _intervals(found),
    }


def _left_out(
    judged: Sequence[Judged], rows: Sequence[Row], curves: Sequence[Calibration | None]
) -> list[dict[str, float]]:
    """What leaving out passages under each share of the likeliest one's confidence does to those that a turn shows.

    `passages` is the share of all that are left out, `gold` of the gold ones, `lost` of the questions whose gold
    passages all are.
    """
    shown = [
        [(one.relevance[name].confidence, one.is_relevant(name)) for name in _reranked(row, curve, PRIOR)[:SHOWN]]
        for one, row, curve in zip(judged, rows, curves, strict=True)
    ]
    return [_under(share, [one for one in shown if one]) for share in SHARES]


def _under(share: float, shown: Sequence[Sequence[tuple[float, bool]]]) -> dict[str, float]:
    kept = [likely([confidence for confidence, _ in one], share, SHOWN) for one in shown]
    gold = [
        [stays for stays, (_, relevant) in zip(*both, strict=True) if relevant]
        for both in zip(kept, shown, strict=True)
    ]
    held = [one for one in gold if one]

    def gone(stays: Sequence[bool]) -> float:
        return 1 - sum(stays) / len(stays) if stays else 0.0

    return {
        "share": share,
        "passages": gone([stays for one in kept for stays in one]),
        "gold": gone([stays for one in held for stays in one]),
        "lost": gone([any(one) for one in held]),
    }


def _unanswerable(judged: Sequence[Judged], experiment: Experiment) -> dict[str, Any]:
    """How well sets without an answer are told: as they were retrieved, and each with and without its gold."""
    share = experiment.share
    sets = [ContextSet(one.confidence, one.unanswerable, n) for n, one in enumerate(judged)]
    twice = [
        ContextSet(confidence, unanswerable, n, weight)
        for n, one in enumerate(judged)
        if one.without_gold is not None
        for confidence, unanswerable, weight in ((one.confidence, False, 1 - share), (one.without_gold, True, share))
    ]
    told = _told(sets, experiment)
    named = {name: told.pop(name) for name in ("precision", "recall", "f1", "share", "f1_of_always")}
    intervals = {f"unanswerable_{name}": ends for name, ends in told.pop("intervals").items()}
    return {
        **{f"unanswerable_{name}": value for name, value in named.items()},
        **told,
        "intervals": intervals,
        "gold_withheld": _told(twice, experiment) if twice else {},
    }


def _told(sets: Sequence[ContextSet], experiment: Experiment) -> dict[str, Any]:
    halves = [[one for one in sets if one.half == half] for half in (0, 1)]
    # one question alone has no other half
    thresholds = [_best_threshold(halves[1 - half] or sets, experiment.thresholds) for half in (0, 1)]
    said = [one.confidence < thresholds[one.half] for one in sets]
    numbers = {question: n for n, question in enumerate(dict.fromkeys(one.question for one in sets))}
    of = [numbers[one.question] for one in sets]
    found = unknown_scores(said, [one.unanswerable for one in sets], experiment.seed, of, [one.weight for one in sets])
    share = sum(one.weight for one in sets if one.unanswerable) / sum(one.weight for one in sets)
    return {
        **{name: one.value for name, one in found.items()},
        "intervals": _intervals(found),
        "share": share,
        "f1_of_always": 2 * share / (1 + share),
        "threshold_of_halves": thresholds,
        "thresholds": [_at(sets, threshold) for threshold in experiment.thresholds],
    }


def _best_threshold(sets: Sequence[ContextSet], thresholds: Sequence[float]) -> float:
    """The threshold that is best for F1, the first of equals (RE-RAG, section 4.2)."""
    return max(thresholds, key=lambda threshold: _at(sets, threshold)["f1"])


def _at(sets: Sequence[ContextSet], threshold: float) -> dict[str, float]:
    """What calling sets under the threshold unanswerable does; `given_up` is the share of the others that are, too."""
    said = sum(one.weight for one in sets if one.confidence < threshold)
    hits = sum(one.weight for one in sets if one.confidence < threshold and one.unanswerable)
    there = sum(one.weight for one in sets if one.unanswerable)
    others = sum(one.weight for one in sets if not one.unanswerable)
    return {
        "threshold": threshold,
        "precision": hits / said if said else 0.0,
        "recall": hits / there if there else 0.0,
        "f1": 2 * hits / (said + there) if said + there else 0.0,
        "given_up": (said - hits) / others if others else 0.0,
    }


def _calibrated(judged: Sequence[Judged]) -> dict[str, Any]:
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


def _intervals(found: Mapping[str, Estimate]) -> dict[str, list[float]]:
    return {name: [one.low, one.high] for name, one in found.items()}
