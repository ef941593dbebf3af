"""Combines a trained estimator with a second score, since each of them knows something that the other doesn't.

s_j = judge * s_j of the estimator + other * second score + intercept: a logistic regression of whether a passage
answers, fitted on a development set, and stored as `blend.json` beside the estimator's model. For the small estimator
the second score is the cosine of question and passage, since the embedder has seen a billion pairs; for the larger
estimator it is the small one's score. The paper has no such combination.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import accumulate
from threading import Event
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from assistant.errors import DataError
from assistant.judges.json_file import JsonFile
from assistant.judges.relevance.cosine import cosines
from assistant.llm.processor import has_bf16
from assistant.protocols import Embedder, Estimator
from assistant.text.chunks import count_words
from assistant.types import Passage, Relevance

NAME = "blend.json"
_REGULARISATION = 100.0
# How many passages the larger estimator reads at least, and up to how many words in all, so that it reads more if they
# are short: as many words as eight passages of a hundred words have, each beside a question of ten.
AGAIN, AGAIN_WORDS = 8, 880


@dataclass(frozen=True, slots=True)
class Blend(JsonFile):
    """The weights, and the name of the embedder or estimator that gives the second score."""

    AGAIN: ClassVar[str] = "make it again with `train blend`"

    beside: str
    judge: float
    other: float
    intercept: float
    pairs: int = 0
    version: Literal[2] = 2

    def __call__(self, judge_score: float, other_score: float) -> float:
        """The combined s_j."""
        return self.judge * judge_score + self.other * other_score + self.intercept


class BlendedEstimator:
    """An `Estimator` that combines another one with the cosine of an embedder."""

    calibration = ""

    def __init__(self, judge: Estimator, embedder: Embedder, blend: Blend) -> None:
        self.name = f"{judge.name}+cosine"
        self._judge, self._embedder, self._blend = judge, embedder, blend

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
        """One estimate for each passage; see `Estimator`."""
        estimates = self._judge.estimate(question, passages, stop)
        if stop.is_set():
            return estimates
        with autocast_bf16():
            similarities = cosines(self._embedder, question, passages)
        return [
            Relevance.of_score(self._blend(estimate.score, cosine))
            for estimate, cosine in zip(estimates, similarities, strict=True)
        ]


class TwoStageEstimator:
    """An `Estimator` in two stages: a fast one reads all passages, and a larger one those that the first finds best.

    The other passages count as if the larger estimator had given them the lowest of its scores.
    """

    calibration = ""

    def __init__(self, judge: Estimator, quick: Estimator, blend: Blend) -> None:
        self.name = f"{judge.name}+{quick.name}"
        self._judge, self._quick, self._blend = judge, quick, blend

    def with_stages(self, change: Callable[[Estimator], Estimator]) -> TwoStageEstimator:
        """The same with both of its estimators changed so."""
        return TwoStageEstimator(change(self._judge), change(self._quick), self._blend)

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
        """One estimate for each passage; see `Estimator`."""
        quick_scores = [estimate.score for estimate in self._quick.estimate(question, passages, stop)]
        best_indices = _read_again(question, passages, quick_scores)
        estimates = self._judge.estimate(question, [passages[n] for n in best_indices], stop)
        judge_scores = dict(zip(best_indices, (estimate.score for estimate in estimates), strict=True))
        lowest = min(judge_scores.values(), default=0.0)
        return [
            Relevance.of_score(self._blend(judge_scores.get(n, lowest), score)) for n, score in enumerate(quick_scores)
        ]


def _read_again(question: str, passages: Sequence[Passage], scores: Sequence[float]) -> list[int]:
    """The positions of the passages that the larger estimator reads, those of the highest scores."""
    order = sorted(range(len(passages)), key=lambda n: -scores[n])
    question_words = count_words(question)
    words = accumulate(question_words + count_words(passages[n].titled) for n in order)
    return [n for rank, (n, total) in enumerate(zip(order, words, strict=True)) if rank < AGAIN or total <= AGAIN_WORDS]


def autocast_bf16() -> AbstractContextManager[Any]:
    """Autocasts to bf16 if the CPU has units for it: embedding is twice as fast, and cosines change by 0.001.

    If torch isn't loaded, OpenVINO runs the embedder, and uses bf16 by itself.
    """
    torch = sys.modules.get("torch")
    return torch.autocast("cpu", enabled=has_bf16()) if torch else nullcontext()


def fit(beside: str, scores: Sequence[float], others: Sequence[float], relevant: Sequence[bool]) -> Blend:
    """Fit the weights on the estimator's s_j, the second score, and whether the passage answers.

    Raises:
        DataError: all passages answer, or none does; or relevance falls as one of the two scores rises.
    """
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - takes a second to import

    y: NDArray[np.bool_] = np.asarray(relevant, dtype=bool)
    if y.all() or not y.any():
        raise DataError(f"All {len(y)} passages are {'relevant' if y.any() else 'irrelevant'}; take more questions.")
    model = LogisticRegression(C=_REGULARISATION).fit(np.column_stack([scores, others]), y)
    judge, other = (float(weight) for weight in model.coef_[0])
    if judge <= 0 or other <= 0:
        raise DataError("One of the two says nothing about relevance here, so that they can't be blended.")
    return Blend(beside, judge, other, float(np.ravel(model.intercept_)[0]), len(y))
