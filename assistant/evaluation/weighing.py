"""Measures what weighing answers by relevance and reranking gain (RE-RAG, sections 4.3, 5.1 and table 6).

Every method is a strategy of a turn, on passages with confidences that the method sets: `re_rag` weighs by them,
`post_fusion` counts votes. A prompt that several methods need is asked only once. One row, passages in BM25's order:

    {"id": "nqo0001", "question": "when is ...", "passages": ["nq00001", ...], "scores": [2.31, ...],
     "answers": {"post_fusion": "May 18, 2018", ...}, "own": "2018", "gold_at": [0], "gold": ["May 18, 2018"]}

`scores` are s_j, calibrated if the estimator is; `own` is the model's answer without passages; `gold_at` the places of
passages that hold the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import Annotated, Any

from pandas import DataFrame, Series
from sklearn.metrics import f1_score
from typer import Option

from assistant.errors import DataError, UtteranceError
from assistant.evaluation.baselines import closed_book
from assistant.evaluation.thresholds import THRESHOLDS, check_fractions, cross_thresholded
from assistant.experiment.cache import REPLIES, CachedLLM
from assistant.experiment.datasets import Question
from assistant.experiment.measures import differences, exact_match, means
from assistant.experiment.options import Corpus, Questions, Sample, Thresholds
from assistant.experiment.runs import Row, Run
from assistant.experiment.task import Rows, Summary, Task, claim_of_fields
from assistant.judges.relevance.estimate import reranked, set_confidence
from assistant.judges.uncertainty import WORD
from assistant.llm.repetition import RepetitionCutter
from assistant.protocols import Estimator, Parts, Progress, Step
from assistant.strategies.shared.strategy import in_full, strategy_named
from assistant.types import Choices, Confidence, Passage, Relevance, Turn

BASE_METHOD, FULL_METHOD = "post_fusion", "re_rag"
# Of each method: whether passages are reranked, the strategy, and the confidence that it uses for each passage.
METHODS: Mapping[str, tuple[bool, str, Callable[[float], float]]] = {
    BASE_METHOD: (False, "post_fusion", lambda confidence: confidence),
    "likelihood only": (False, "re_rag", lambda _: 0.5),
    "rerank only": (True, "post_fusion", lambda confidence: confidence),
    "score only": (False, "re_rag", lambda confidence: confidence),
    FULL_METHOD: (True, "re_rag", lambda confidence: confidence),
    # the odds of these are the confidence, so that the strategy's softmax over log-odds weighs by it as it is
    "without normalisation": (True, "re_rag", lambda confidence: confidence / (1 + confidence)),
}


@dataclass(frozen=True)
class Experiment(Sample):
    """The experiment's options; `uncertainty` names the test for "unknown", with its threshold if it has one."""

    corpus: Corpus
    questions: Questions
    depth: Annotated[int, Option(min=1, max=100, help="BM25 candidates of a question, each estimated.")] = 10
    k: Annotated[int, Option("--k", min=1, help="The best of them, whose answers are weighed.")] = 5
    uncertainty: str = WORD
    thresholds: Thresholds = THRESHOLDS


def prepare(experiment: Experiment) -> dict[str, Question]:
    """The questions by their ids, those with answers and gold passages.

    Raises:
        DataError: a broken file, no such question, fewer candidates than are answered from, or a threshold that is
            not between 0 and 1.
    """
    check_fractions(*experiment.thresholds)
    if experiment.k > experiment.depth:
        raise DataError(f"k is {experiment.k}, but only {experiment.depth} passages are asked; raise the depth.")
    questions = experiment.draw_questions(experiment.questions)
    usable_questions = {name: question for name, question in questions.items() if question.answers and question.gold}
    if not usable_questions:
        raise DataError(f"No question of {experiment.questions} has answers and gold passages; give another file.")
    return usable_questions


@dataclass(frozen=True)
class Weighing(Task[Question, Parts]):
    """Answers each question by all methods; `estimator` estimates its candidates.

    `model_label` is the model with its unusual settings, `model` the language model's own name.
    """

    experiment: Experiment
    items: Mapping[str, Question]
    model_label: str
    model: str
    estimator: Estimator

    def claim(self) -> Row:
        """See `Task`."""
        decided = claim_of_fields(self.experiment, "corpus", "questions", "depth", "k", "uncertainty")
        estimator = f"{self.estimator.name} {self.estimator.calibration}".strip()
        return {**decided, "model": self.model_label, "estimator": estimator}

    def fill(self, run: Run[Any], parts: Parts, progress: Progress, jobs: int = 1, stop: Event | None = None) -> None:
        """Make the rows that are missing; the model's replies are kept beside them."""
        llm = RepetitionCutter(CachedLLM(parts.llm, run.folder / REPLIES, self.model_label))
        super().fill(run, replace(parts, llm=llm), progress, jobs, stop)

    def row(self, item: Question, parts: Parts) -> Row:
        """See `Task`."""
        passages = tuple(parts.retriever.search(item.text, self.experiment.depth))
        try:
            results = self._scores_and_answers(item.text, passages, parts)
        except UtteranceError as refusal:
            # a question too long for the model must not end the run each time it is resumed; it counts as wrong
            empty_results = {"scores": [0.0] * len(passages), "answers": dict.fromkeys(METHODS, ""), "own": ""}
            results = {**empty_results, "error": str(refusal)}
        return {
            "id": item.id,
            "question": item.text,
            "passages": [passage.id for passage in passages],
            **results,
            "gold_at": [n for n, passage in enumerate(passages) if passage.id in item.gold],
            "gold": list(item.answers),
        }

    def _scores_and_answers(self, question: str, passages: Sequence[Passage], parts: Parts) -> Row:
        relevances, k = self.estimator.estimate(question, passages, Event()), self.experiment.k
        confidence = Confidence(set_confidence(relevances), parts.settings.relevance.threshold, self.estimator.name)
        turn = Turn(question, question=question, choices=Choices(k=k, form="factoid"), confidence=confidence)
        estimated_passages = list(zip(passages, relevances, strict=True))
        best_passages = reranked(passages, relevances, k)

        def answer(is_reranked: bool, strategy: str, confidence_of: Callable[[float], float]) -> str:
            shown_passages = (
                replace(passage, confidence=confidence_of(relevance.confidence))
                for passage, relevance in (best_passages if is_reranked else estimated_passages[:k])
            )
            return _answer(in_full(strategy_named(strategy)), replace(turn, passages=tuple(shown_passages)), parts)

        return {
            "scores": [round(relevance.score, 6) for relevance in relevances],
            "answers": {name: answer(*method) for name, method in METHODS.items()},
            "own": _answer(closed_book, turn, parts),
        }

    def summarise(self, rows: Rows) -> Summary:
        """EM of all methods, against post-fusion, and what abstaining and the mixed strategy do.

        A threshold is never chosen on the questions that it is measured on: each half takes that of the other.
        """
        item_rows, experiment = [rows[question_id] for question_id in self.items], self.experiment
        hits = {name: [exact_match(row["answers"][name], row["gold"]) for row in item_rows] for name in METHODS}
        other_hits = {name: method_hits for name, method_hits in hits.items() if name != BASE_METHOD}
        return {
            "model": self.model,
            "estimator": self.estimator.name,
            "questions": len(item_rows),
            "k": experiment.k,
            "depth": experiment.depth,
            "methods": means(hits, experiment.seed),
            "differences": differences(other_hits, dict.fromkeys(other_hits, hits[BASE_METHOD]), experiment.seed),
            "under_threshold": _under_threshold(item_rows, hits[FULL_METHOD], experiment),
        }


def _answer(step: Step, turn: Turn, parts: Parts) -> str:
    """The step's answer, "" if it is unknown."""
    *_, turn = step(turn, parts, Event())
    return turn.answer.text.strip() if turn.answer and not turn.answer.unknown else ""


def _under_threshold(rows: Sequence[Row], hits: Sequence[float], experiment: Experiment) -> Summary:
    """The effect of saying "unanswerable" below the threshold, or of answering from the model's own knowledge there."""
    top_positions = [sorted(range(len(row["scores"])), key=lambda n: -row["scores"][n])[: experiment.k] for row in rows]
    sets = DataFrame({
        "confidence": [set_confidence([Relevance.of_score(score) for score in row["scores"]]) for row in rows],
        "held": [not set(row["gold_at"]).isdisjoint(top) for row, top in zip(rows, top_positions, strict=True)],
        "own": [exact_match(row["own"], row["gold"]) for row in rows],
        "hit": hits,
    })  # fmt: skip

    def f1(subset: DataFrame, threshold: float) -> float:
        return float(f1_score(~subset["held"], subset["confidence"] < threshold, zero_division=0))

    is_below, chosen_thresholds = cross_thresholded(sets, sets.index.to_series() % 2, experiment.thresholds, f1)
    mixed, has_gold = sets["own"].where(is_below, sets["hit"]), sets["held"]
    return {
        "threshold_of_halves": chosen_thresholds,
        "abstained": float(is_below.mean()),
        "answerable": _share(sets["hit"][has_gold]),
        "answerable_abstaining": _share((sets["hit"] * ~is_below)[has_gold]),
        "unanswerable": _share(sets["hit"][~has_gold]),
        "unanswerable_abstaining": _share(is_below[~has_gold]),
        **means({"closed_book": list(sets["own"]), "mixed": list(mixed)}, experiment.seed),
        "mixed_gain": int((mixed > sets["hit"]).sum()),
        "mixed_loss": int((mixed < sets["hit"]).sum()),
    }


def _share(right: Series) -> dict[str, float]:
    """The mean over some sets, and how many there are."""
    return {"sets": len(right), "right": float(right.mean()) if len(right) else 0.0}
