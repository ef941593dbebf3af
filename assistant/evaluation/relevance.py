"""Measures a relevance estimator: its ranking, sets without an answer, calibration (RE-RAG, sections 4.2 and 5.1).

Each question's candidates are estimated once, and everything is computed from these rows:

    {"id": "nqo0001", "passages": ["nq00001", ...], "own": [], "scores": {"nq00001": 2.31, ...}, "seconds": 1.2,
     "error": ""}

`passages` are in the order in which they were found, `scores` are the estimator's own s_j, before any calibration. A
context set is "unanswerable" if none of its passages is gold, or if the question is marked so.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from threading import Event
from typing import Annotated, Literal

from pandas import DataFrame, concat
from sklearn.metrics import precision_recall_fscore_support
from typer import Option

from assistant.errors import DataError, UtteranceError
from assistant.evaluation import plots
from assistant.evaluation.thresholds import THRESHOLDS, check_fractions, cross_thresholded
from assistant.experiment.datasets import Corpus, Question, read_corpus, read_questions, usable_questions
from assistant.experiment.measures import calibration_error, differences, means, reliability, unknown_scores
from assistant.experiment.options import Corpus as CorpusFile
from assistant.experiment.options import Questions, Sample, Thresholds
from assistant.experiment.runs import Row, Run
from assistant.experiment.task import Rows, Summary, Task, claim_of_fields
from assistant.judges.relevance.calibration import Calibration, Method, fit
from assistant.judges.relevance.estimate import PRIOR, above_relative_cutoff, reranked
from assistant.protocols import Estimator, Retriever
from assistant.settings import RetrieveSettings
from assistant.types import Passage, Relevance

CUTOFFS = (1, 5, 10, 20)
# What is tried as `relevance.min_relative_confidence`, on as many passages as a turn shows.
RELATIVE_CUTOFFS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
DEFAULT_TOP_K = RetrieveSettings().top_k
# Ranks of a passage: as it was found, reranked by its confidence, and as a turn reranks it.
_RANKS = ("found", "reranked", "turn")


@dataclass(frozen=True)
class Experiment(Sample):
    """The experiment's options. `depth` candidates are reranked; the best `k` of them are the question's context set.

    `contexts` can be "own": the set is the question's gold passages alone, as in SQuAD 2.0, where a paragraph may lack
    the answer. "auto" is that where a question is marked as unanswerable, else "retrieved".
    """

    corpus: CorpusFile
    questions: Questions
    depth: Annotated[int, Option(min=1, max=100, help="Candidates that are estimated.")] = 20
    k: Annotated[int, Option("--k", min=1, help="The best of them, which make the context set.")] = 20
    contexts: Annotated[
        Literal["auto", "retrieved", "own"],
        Option(help="The set: what was retrieved, or the gold passages; auto = gold if some are unanswerable."),
    ] = "auto"
    thresholds: Thresholds = THRESHOLDS
    share: Annotated[
        float, Option(help="Sets whose gold was withheld are weighed as if they were this share of all.")
    ] = 0.5


@dataclass(frozen=True, slots=True)
class Material:
    """The questions, their gold passages as far as the corpus has them, and how many questions were left out.

    `own` says that a context set is the question's gold passages.
    """

    questions: tuple[Question, ...]
    corpus: Corpus
    own: bool
    left_out: Mapping[str, int] = field(default_factory=dict)


def prepare(experiment: Experiment) -> Material:
    """Read and check everything before a model is loaded.

    Raises:
        DataError: a broken file, no question to ask, fewer candidates than the set is to have, or a share or threshold
            that is not between 0 and 1.
    """
    check_fractions(experiment.share, *experiment.thresholds)
    if experiment.k > experiment.depth:
        raise DataError(f"k is {experiment.k}, but only {experiment.depth} passages are estimated; raise the depth.")
    all_questions = read_questions(experiment.questions)
    corpus = read_corpus(experiment.corpus, {gold for question in all_questions for gold in question.gold})
    has_unanswerable = any(question.unanswerable for question in all_questions)
    own = experiment.contexts == "own" or (experiment.contexts == "auto" and has_unanswerable)
    why_not = partial(_exclusion_reason, corpus=corpus, own=own)
    questions, left_out = usable_questions(experiment.questions, experiment.draw(all_questions), why_not, "measured")
    return Material(questions, corpus, own, left_out)


def _exclusion_reason(question: Question, corpus: Corpus, own: bool) -> str:
    if not question.gold:
        return "questions that name no gold passage"
    if own and corpus.passages.keys().isdisjoint(question.gold):
        return "questions with gold passages that the corpus lacks"
    return ""


@dataclass
class Estimates(Task[Question, tuple[Estimator, Retriever]]):
    """Estimates the candidates of each question by the `estimator` of this name.

    Confidences are calibrated by `calibration`, or by `method`, or left as they are. A threshold, and a calibration by
    `method`, are never chosen on the questions that they are measured on: each half of the questions takes those of
    the other half.
    """

    experiment: Experiment
    material: Material
    estimator: str
    model: str
    retriever: str
    calibration: Calibration | None = None
    method: Method | None = None

    def __post_init__(self) -> None:
        self.items = {question.id: question for question in self.material.questions}

    def claim(self) -> Row:
        """See `Task`."""
        decided = claim_of_fields(self.experiment, "corpus", "questions", "depth")
        decided |= claim_of_fields(self, "estimator", "model", "retriever")
        return {**decided, "contexts": "own" if self.material.own else "retrieved"}

    def row(self, item: Question, resources: tuple[Estimator, Retriever]) -> Row:
        """See `Task`."""
        estimator, retriever = resources
        corpus_passages, is_own = self.material.corpus.passages, self.material.own
        own_passages = [corpus_passages[gold] for gold in item.gold if is_own and gold in corpus_passages]
        # for a question without an answer no ranking is right or wrong: only its own passages are estimated
        passages = [] if is_own and item.unanswerable else retriever.search(item.text, self.experiment.depth)
        candidates = list({passage.id: passage for passage in (*passages, *own_passages)}.values())
        start_time, error = time.perf_counter(), ""
        try:
            relevances = estimator.estimate(item.text, candidates, Event())
        except UtteranceError as refusal:
            # a question that is too long for the model must not end the run each time that it is continued
            relevances, error = [Relevance.of_score(0.0)] * len(candidates), str(refusal)
        return {
            "id": item.id,
            "passages": [passage.id for passage in passages],
            "own": [passage.id for passage in own_passages],
            "scores": {p.id: round(relevance.score, 6) for p, relevance in zip(candidates, relevances, strict=True)},
            "seconds": round(time.perf_counter() - start_time, 3),
            "error": error,
        }

    def summarise(self, rows: Rows) -> Summary:
        """All measures.

        Raises:
            DataError: nothing was found, or a half has nothing to calibrate on.
        """
        material, experiment = self.material, self.experiment
        item_rows = [rows[question.id] for question in material.questions]
        curves = self._curves(rows) if self.method else [self.calibration] * len(item_rows)
        passages = _judged(material.questions, item_rows, curves)
        if passages.empty:
            raise DataError("No passage was found for any question; give the corpus that belongs to them.")
        errors, sets = sum(bool(row["error"]) for row in item_rows), _sets(passages, len(item_rows), experiment.k)
        bins = reliability(list(passages["confidence"]), list(passages["relevant"]))
        bins_of_sets = reliability(list(sets["confidence"]), list(~sets["unanswerable"]))
        ranked, unanswerable = _rankings(experiment, material, passages), _unanswerable(sets, experiment)
        return {
            "estimator": self.estimator,
            "questions": len(item_rows),
            "contexts": "own" if material.own else "retrieved",
            "depth": experiment.depth,
            "k": experiment.k,
            "calibration": self.method or (self.calibration.method if self.calibration else "none"),
            **ranked,
            **unanswerable,
            "intervals": {**ranked["intervals"], **unanswerable["intervals"]},
            "left_out_under": _left_out(passages[passages["turn"] < DEFAULT_TOP_K].sort_values(["question", "turn"])),
            "ece": calibration_error(bins),
            "set_ece": calibration_error(bins_of_sets),
            "reliability": bins.to_dict("records"),
            "seconds_per_question": sum(row["seconds"] for row in item_rows) / len(item_rows),
            "remarks": {"questions too long for the estimator": errors} if errors else {},
            "left_out": dict(material.left_out),
        }

    def details(self, summary: Summary, run: Run[str]) -> str:
        """The reliability diagram; with a `method`, a calibration for other questions is written, too."""
        if self.method:
            self.fit_calibration(self.material.questions, run.rows, self.method).save(run.folder / "calibration.json")
        return f"![reliability]({plots.reliability(summary, run.folder).name})"

    def fit_calibration(self, questions: Sequence[Question], rows: Rows, method: Method) -> Calibration:
        """A calibration fitted on all passages of these questions, to be used on others.

        Raises:
            DataError: there is nothing to calibrate on.
        """
        passages = _judged(questions, [rows[question.id] for question in questions], [None] * len(questions))
        return fit(self.estimator, method, list(passages["score"]), list(passages["relevant"]))

    def _curves(self, rows: Rows) -> list[Calibration | None]:
        """For each question the calibration that was fitted on the other half of the questions."""
        assert self.method  # noqa: S101 - its caller has asked
        halves = [self.fit_calibration(self.material.questions[1 - half :: 2], rows, self.method) for half in (0, 1)]
        return [halves[n % 2] for n in range(len(self.material.questions))]


def _judged(questions: Sequence[Question], rows: Sequence[Row], curves: Sequence[Calibration | None]) -> DataFrame:
    """A row for each passage of each question, with the question's number; ranks count from 0, inf if not found."""
    lines = []
    for n, (question, row, curve) in enumerate(zip(questions, rows, curves, strict=True)):
        relevances = {passage_id: Relevance.of_score(score) for passage_id, score in row["scores"].items()}
        calibrated = {name: curve.apply(relevance) if curve else relevance for name, relevance in relevances.items()}
        gold = set() if question.unanswerable else set(question.gold)
        passages = [Passage(passage_id, "", "") for passage_id in row["passages"]]
        found = [calibrated[passage.id] for passage in passages]
        # where isotonic calibration makes two equal, the one that was found first comes first
        orders = [passages, *([p for p, _ in reranked(passages, found, len(found), prior)] for prior in (0.0, PRIOR))]
        ranks_by_order = [{passage.id: rank for rank, passage in enumerate(order)} for order in orders]
        for passage_id, relevance in relevances.items():
            marks = (passage_id in gold, passage_id in row["own"])
            places = (ranks.get(passage_id, inf) for ranks in ranks_by_order)
            lines.append((n, relevance.score, calibrated[passage_id].confidence, *marks, *places))
    return DataFrame(lines, columns=["question", "score", "confidence", "relevant", "own", *_RANKS])


def _sets(passages: DataFrame, questions: int, k: int) -> DataFrame:
    """Each question's context set: its confidence max_j r_j, and the same `without` the gold passages.

    `without` is NaN if no gold passage was found, or if the set is the question's own passages.
    """
    with_own = passages.groupby("question")["own"].transform("any")
    shown = passages[passages["own"].where(with_own, passages["reranked"] < k)].groupby("question")
    others = passages[(passages["found"] < inf) & ~passages["relevant"] & ~with_own].groupby("question")
    answerable = shown["relevant"].any().reindex(range(questions), fill_value=False)
    return DataFrame({
        "confidence": shown["confidence"].max().reindex(range(questions), fill_value=0.0),
        "unanswerable": ~answerable,
        "without": others["confidence"].max().reindex(range(questions)).where(answerable),
    })  # fmt: skip


def _rankings(experiment: Experiment, material: Material, passages: DataFrame) -> Summary:
    """R@n as in DPR: the share of questions with a gold passage among the first n. Answerable questions only."""
    answerable = [n for n, question in enumerate(material.questions) if not question.unanswerable]
    if not answerable:
        return {"found": {}, "turn": {}, "intervals": {}, "differences": {}}
    gold_ranks = passages[passages["relevant"]].groupby("question")[list(_RANKS)]
    best_ranks = gold_ranks.min().astype(float).reindex(answerable, fill_value=inf)
    cutoffs = [cutoff for cutoff in CUTOFFS if cutoff <= experiment.depth]
    found_recalls, reranked_recalls, turn_recalls = (
        {f"R@{n}": list((best_ranks[name] < n).astype(float)) for n in cutoffs} for name in _RANKS
    )
    estimates = means(reranked_recalls, experiment.seed)
    return {
        **{name: estimate["value"] for name, estimate in estimates.items()},
        "found": {name: sum(values) / len(values) for name, values in found_recalls.items()},
        "turn": {name: sum(values) / len(values) for name, values in turn_recalls.items()},
        "differences": differences(reranked_recalls, found_recalls, experiment.seed),
        "intervals": _intervals(estimates),
    }


def _left_out(shown: DataFrame) -> list[dict[str, float]]:
    """The effect of leaving out passages whose confidence is below a share of the highest one's, for several shares.

    `passages` is the share of all passages that are left out, `gold` that of the gold ones, and `lost` the share of
    questions that lose all their gold passages.
    """
    is_gold, confidences = shown["relevant"].astype(bool), shown.groupby("question")["confidence"]

    def losses_at(share: float) -> dict[str, float]:
        is_above = confidences.transform(lambda values: above_relative_cutoff(list(values), share, DEFAULT_TOP_K))
        is_kept = is_above.astype(bool)
        kept_gold = is_kept[is_gold]
        kept = {"passages": is_kept, "gold": kept_gold, "lost": kept_gold.groupby(shown["question"]).any()}
        losses = {name: float(1 - flags.mean()) if len(flags) else 0.0 for name, flags in kept.items()}
        return {"share": share, **losses}

    return [losses_at(share) for share in RELATIVE_CUTOFFS]


def _unanswerable(sets: DataFrame, experiment: Experiment) -> Summary:
    """How well sets without an answer are recognised: as they were retrieved, and each with and without its gold."""
    retrieved = sets.rename_axis(None).assign(question=range(len(sets)), weight=1.0).drop(columns="without")
    with_gold = retrieved[sets["without"].notna()]
    withheld = with_gold.assign(confidence=sets["without"].dropna(), unanswerable=True, weight=experiment.share)
    paired = concat([with_gold.assign(weight=1 - experiment.share), withheld]).sort_values("question", kind="stable")
    scores = _threshold_scores(retrieved, experiment)
    prefixed_names = ("precision", "recall", "f1", "share", "f1_of_always")
    prefixed_scores = {f"unanswerable_{name}": scores.pop(name) for name in prefixed_names}
    intervals = {f"unanswerable_{name}": ends for name, ends in scores["intervals"].items()}
    gold_withheld = _threshold_scores(paired, experiment) if len(paired) else {}
    return {**prefixed_scores, **scores, "intervals": intervals, "gold_withheld": gold_withheld}


def _threshold_scores(sets: DataFrame, experiment: Experiment) -> Summary:
    sets = sets.reset_index(drop=True)
    is_below, chosen_thresholds = cross_thresholded(
        sets, sets["question"] % 2, experiment.thresholds, lambda subset, threshold: _scores_at(subset, threshold)["f1"]
    )
    question_numbers, weights = list(sets["question"].factorize()[0]), list(sets["weight"])
    scores = unknown_scores(list(is_below), list(sets["unanswerable"]), experiment.seed, question_numbers, weights)
    share = float(sets["weight"][sets["unanswerable"]].sum() / sets["weight"].sum())
    return {
        **{name: estimate["value"] for name, estimate in scores.items()},
        "intervals": _intervals(scores),
        "share": share,
        "f1_of_always": 2 * share / (1 + share),
        "threshold_of_halves": chosen_thresholds,
        "thresholds": [_scores_at(sets, threshold) for threshold in experiment.thresholds],
    }


def _scores_at(sets: DataFrame, threshold: float) -> dict[str, float]:
    """The effect of calling sets below the threshold unanswerable; `given_up` is the share of answerable ones lost."""
    is_below, unanswerable, weight = sets["confidence"] < threshold, sets["unanswerable"].astype(bool), sets["weight"]
    measures = precision_recall_fscore_support(
        unanswerable, is_below, average="binary", sample_weight=weight, zero_division=0
    )
    given_up, answerable = weight[is_below & ~unanswerable].sum(), weight[~unanswerable].sum()
    return {
        "threshold": threshold,
        **{name: float(value) for name, value in zip(("precision", "recall", "f1"), measures[:3], strict=True)},
        "given_up": float(given_up / answerable) if answerable else 0.0,
    }


def _intervals(by_measure: Mapping[str, Mapping[str, float]]) -> dict[str, list[float]]:
    return {name: [estimate["low"], estimate["high"]] for name, estimate in by_measure.items()}
