"""Makes confidences mean what they say: of the passages that are given 0.8, eight in ten should be relevant.

A calibration is fitted on (score, relevant) pairs of a development set, and stored as JSON, which can be read and
diffed and runs nothing. Temperature divides the scores (Guo et al. 2017, "On Calibration of Modern Neural Networks",
section 4.2). Platt's scaling also shifts them, for estimators that say "true" too readily. Isotonic regression fits any
rising curve (Zadrozny and Elkan 2002).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from assistant.errors import DataError, ModelError
from assistant.judges.json_file import JsonFile
from assistant.protocols import Estimator
from assistant.types import Passage, Relevance

Method = Literal["temperature", "platt", "isotonic"]
# Weak enough that scores decide, strong enough that a few perfectly separated pairs don't get infinite confidence.
_REGULARISATION = 1e4


@dataclass(frozen=True)
class Calibration(JsonFile):
    """A fitted curve from scores to confidences, for the estimator of this name.

    For temperature and Platt the curve is sigmoid(slope * s + intercept); the temperature is 1 / slope. The isotonic
    curve is linear between its knots (score, confidence) and flat outside: it makes ties, but never changes an order.
    `data` says in a few words what the curve was fitted on, for a person who wonders what the number means.
    """

    AGAIN: ClassVar[str] = "check the path, or make it again with `evaluate relevance --calibrate`"

    estimator: str
    method: Method
    slope: float = 1.0
    intercept: float = 0.0
    knots: tuple[tuple[float, float], ...] = ()
    pairs: int = 0
    data: str = ""
    version: Literal[1] = 1

    def apply(self, relevance: Relevance) -> Relevance:
        """The same passage's relevance, calibrated."""
        if self.method != "isotonic":
            return Relevance.of_score(self.slope * relevance.score + self.intercept)
        scores, confidences = zip(*self.knots, strict=True)
        return Relevance.of_confidence(float(np.interp(relevance.score, scores, confidences)))

    @property
    def about(self) -> str:
        """What was done, in a few words: "platt, on 2,000 passages of NQ"."""
        return f"{self.method}, on {self.pairs:,} passages{f' of {self.data}' if self.data else ''}"

    @classmethod
    def load(cls, path: Path, estimator: str = "") -> Calibration:
        """Read what `save` wrote, for the estimator of this name; without a name, for any.

        Raises:
            ModelError: the file can't be read, is of another version, or was fitted for another estimator.
        """
        calibration = super().load(path)
        if calibration.method == "isotonic" and not calibration.knots:
            raise ModelError(f"The calibration {path} has no knots; {cls.AGAIN}.")
        if estimator and calibration.estimator != estimator:
            raise ModelError(
                f"The calibration {path} was fitted for {calibration.estimator}, not for {estimator}; {cls.AGAIN}."
            )
        return calibration


class CalibratedEstimator:
    """An `Estimator` with calibrated confidences; the name stays the same, since the order of the scores does."""

    def __init__(self, estimator: Estimator, calibration: Calibration) -> None:
        self.name, self.calibration = estimator.name, calibration.about
        self._estimator = estimator
        self._calibration = calibration

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
        """One calibrated estimate for each passage; see `Estimator`."""
        return [self._calibration.apply(relevance) for relevance in self._estimator.estimate(question, passages, stop)]


def fit(estimator: str, method: Method, scores: Sequence[float], relevant: Sequence[bool]) -> Calibration:
    """Fit a calibration for the estimator of this name on pairs of s_j and whether the passage is relevant.

    Raises:
        DataError: all passages are relevant, or none is; or lower scores have more relevant passages, so that the
            estimator tells nothing.
        ValueError: the two differ in length.
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(relevant, dtype=bool)
    if x.shape != y.shape:
        raise ValueError(f"there are {len(x)} scores and {len(y)} labels")
    if y.all() or not y.any():
        raise DataError(f"All {len(y)} passages are {'relevant' if y.any() else 'irrelevant'}; take more questions.")
    return _isotonic(estimator, x, y) if method == "isotonic" else _logistic(estimator, method, x, y)


def _logistic(estimator: str, method: Method, x: NDArray[np.float64], y: NDArray[np.bool_]) -> Calibration:
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - takes a second to import

    # Without an intercept, logistic regression on the score alone is temperature scaling: its slope is 1 / T.
    model = LogisticRegression(C=_REGULARISATION, fit_intercept=method == "platt").fit(x[:, None], y)
    slope, intercept = float(model.coef_[0, 0]), float(np.ravel(model.intercept_)[0])
    if slope <= 0:
        # Scores that are far too high on the whole need a shift, which a temperature does not have.
        advice = "; try platt or isotonic" if method == "temperature" else ""
        raise DataError(f"The scores of {estimator} don't rise with relevance as {method} needs{advice}.")
    return Calibration(estimator, method, slope, intercept, pairs=len(x))


def _isotonic(estimator: str, x: NDArray[np.float64], y: NDArray[np.bool_]) -> Calibration:
    from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415

    # Laplace's rule for the ends, where few pairs would look certain: one more miss at the top, one hit at the bottom.
    padded_scores, padded_labels = np.append(x, [x.max(), x.min()]), np.append(y, [False, True])
    model = IsotonicRegression(out_of_bounds="clip").fit(padded_scores, padded_labels)
    knots = tuple((float(s), float(r)) for s, r in zip(model.X_thresholds_, model.y_thresholds_, strict=True))
    if knots[0][1] == knots[-1][1]:
        raise DataError(f"The scores of {estimator} don't rise with relevance, so they can't be calibrated.")
    return Calibration(estimator, "isotonic", knots=knots, pairs=len(x))
