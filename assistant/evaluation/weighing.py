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
from assistant.evaluation.thresholds import THRESHOLDS, check_odds, cross_thresholded
from assistant.experiment.cache import REPLIES, CachedLLM
from assistant.experiment.datasets import Question
from assistant.experiment.measures import differences, exact_match, means
from assistant.experiment.options import Corpus, Questions, Sample, Thresholds
from assistant.experiment.runs import Row, Run
from assistant.experiment.task import Rows, Summary, Task, decided_by
from assistant.judges.relevance.estimate import reranked, set_confidence
from assistant.judges.uncertainty import WORD
from assistant.llm.repetition import RepetitionCutter
from assistant.protocols import Estimator, Parts, Progress, Step
from assistant.strategies.shared.strategy import in_full, strategy_named
from assistant.types import Choices, Confidence, Passage, Relevance, Turn

BASE, FULL = "post_fusion", "re_rag"
# Of each method: whether passages are reranked, the strategy, and the confidence that it uses for each passage.
METHODS: Mapping[str, tuple[bool, str, Callable[[float], float]]] = {
    BASE: (False, "post_fusion", lambda confidence: confidence),
    "likelihood only": (False, "re_rag", lambda _: 0.5),
    "rerank only": (True, "post_fusion", lambda confidence: confidence),
    "score only": (False, "re_rag", lambda confidence: confidence),
    FULL: (True, "re_rag", lambda confidence: confidence),
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
    check_odds(*experiment.thresholds)
    if experiment.k > experiment.depth:
        raise DataError(f"k is {experiment.k}, but only {experiment.depth} passages are asked; raise the depth.")
    asked = experiment.asked(experiment.questions)
    chosen = {key: one for key, one in asked.items() if one.answers and one.gold}
    if not chosen:
        raise DataError(f"No question of {experiment.questions} has answers and gold passages; give another file.")
    return chosen


@dataclass(frozen=True)
class Weighing(Task[Question, Parts]):
    """Answers each question by all methods; `estimator` estimates its candidates.

    `made_with` is the model with its unusual settings, `model` the language model's own name.
    """

    experiment: Experiment
    items: Mapping[str, Question]
    made_with: str
    model: str
    estimator: Estimator

    def claim(self) -> Row:
        """See `Task`."""
        decided = decided_by(self.experiment, "corpus", "questions", "depth", "k", "uncertainty")
        estimator = f"{self.estimator.name} {self.estimator.calibration}".strip()
        return {**decided, "model": self.made_with, "estimator": estimator}

    def fill(self, run: Run[Any], parts: Parts, progress: Progress, jobs: int = 1, stop: Event | None = None) -> None:
        """Make the rows that are missing; the model's replies are kept beside them."""
        llm = RepetitionCutter(CachedLLM(parts.llm, run.folder / REPLIES, self.made_with))
        super().fill(run, replace(parts, llm=llm), progress, jobs, stop)

    def row(self, item: Question, parts: Parts) -> Row:
        """See `Task`."""
        passages = tuple(parts.retriever.search(item.text, self.experiment.depth))
        try:
            answered = self._found(item.text, passages, parts)
        except UtteranceError as refusal:
            # a question too long for the model must not end the run each time it is resumed; it counts as wrong
            nothing = {"scores": [0.0] * len(passages), "answers": dict.fromkeys(METHODS, ""), "own": ""}
            answered = {**nothing, "error": str(refusal)}
        return {
            "id": item.id,
            "question": item.text,
            "passages": [passage.id for passage in passages],
            **answered,
            "gold_at": [n for n, passage in enumerate(passages) if passage.id in item.gold],
            "gold": list(item.answers),
        }

    def _found(self, question: str, passages: Sequence[Passage], parts: Parts) -> Row:
        judged, k = self.estimator.estimate(question, passages, Event()), self.experiment.k
        sure = Confidence(set_confidence(judged), parts.settings.relevance.threshold, self.estimator.name)
        turn = Turn(question, question=question, choices=Choices(k=k, form="factoid"), confidence=sure)
        estimated = [
            replace(passage, confidence=relevance.confidence)
            for passage, relevance in zip(passages, judged, strict=True)
        ]
        best = [passage for passage, _ in reranked(estimated, judged, k)]

        def answer(is_reranked: bool, strategy: str, believed: Callable[[float], float]) -> str:
            shown = (
                replace(passage, confidence=believed(passage.confidence or 0.0))
                for passage in (best if is_reranked else estimated[:k])
            )
            return _answer(in_full(strategy_named(strategy)), replace(turn, passages=tuple(shown)), parts)

        return {
            "scores": [round(relevance.score, 6) for relevance in judged],
            "answers": {name: answer(*how) for name, how in METHODS.items()},
            "own": _answer(closed_book, turn, parts),
        }

    def summarise(self, rows: Rows) -> Summary:
        """EM of all methods, against post-fusion, and what abstaining and the mixed strategy do.

        A threshold is never chosen on the questions that it is measured on: each half takes that of the other.
        """
        mine, experiment = [rows[one] for one in self.items], self.experiment
        hits = {name: [exact_match(row["answers"][name], row["gold"]) for row in mine] for name in METHODS}
        others = {name: of for name, of in hits.items() if name != BASE}
        return {
            "model": self.model,
            "estimator": self.estimator.name,
            "questions": len(mine),
            "k": experiment.k,
            "depth": experiment.depth,
            "methods": means(hits, experiment.seed),
            "differences": differences(others, dict.fromkeys(others, hits[BASE]), experiment.seed),
            "under_threshold": _under_threshold(mine, hits[FULL], experiment),
        }


def _answer(step: Step, turn: Turn, parts: Parts) -> str:
    """The step's answer, "" if it is unknown."""
    *_, turn = step(turn, parts, Event())
    return turn.answer.text.strip() if turn.answer and not turn.answer.unknown else ""


def _under_threshold(rows: Sequence[Row], hits: Sequence[float], experiment: Experiment) -> Summary:
    """The effect of saying "unanswerable" below the threshold, or of answering from the model's own knowledge there."""
    best = [sorted(range(len(row["scores"])), key=lambda n: -row["scores"][n])[: experiment.k] for row in rows]
    sets = DataFrame(
        {
            "confidence": [set_confidence([Relevance.of_score(one) for one in row["scores"]]) for row in rows],
            "held": [not set(row["gold_at"]).isdisjoint(some) for row, some in zip(rows, best, strict=True)],
            "own": [exact_match(row["own"], row["gold"]) for row in rows],
            "hit": hits,
        }
    )

    def f1(some: DataFrame, threshold: float) -> float:
        return float(f1_score(~some["held"], some["confidence"] < threshold, zero_division=0))

    below, chosen = cross_thresholded(sets, sets.index.to_series() % 2, experiment.thresholds, f1)
    mixed, has_gold = sets["own"].where(below, sets["hit"]), sets["held"]
    return {
        "threshold_of_halves": chosen,
        "abstained": float(below.mean()),
        "answerable": _share(sets["hit"][has_gold]),
        "answerable_abstaining": _share((sets["hit"] * ~below)[has_gold]),
        "unanswerable": _share(sets["hit"][~has_gold]),
        "unanswerable_abstaining": _share(below[~has_gold]),
        **means({"closed_book": list(sets["own"]), "mixed": list(mixed)}, experiment.seed),
        "mixed_gain": int((mixed > sets["hit"]).sum()),
        "mixed_loss": int((mixed < sets["hit"]).sum()),
    }


def _share(right: Series) -> dict[str, float]:
    """The mean over some sets, and how many there are."""
    return {"sets": len(right), "right": float(right.mean()) if len(right) else 0.0}
