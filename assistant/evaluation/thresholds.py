"""Thresholds of a set's confidence, under which it counts as without an answer (RE-RAG, section 4.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from pandas import DataFrame, Series

from assistant.errors import DataError

# The paper's.
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)


def check_fractions(*values: float) -> None:
    """Refuse thresholds and shares that are not between 0 and 1.

    Raises:
        DataError: one is not.
    """
    if not all(0 < value < 1 for value in values):
        raise DataError("Thresholds and shares lie between 0 and 1; give others.")


def cross_thresholded(
    sets: DataFrame, halves: Series, thresholds: Sequence[float], f1: Callable[[DataFrame, float], float]
) -> tuple[Series, list[float]]:
    """Whether each set's `confidence` is below its threshold, by two-fold cross-validation, and the two thresholds.

    Each half (0 or 1) takes the threshold with the highest F1 on the other half, the first of equals; a single question
    has no other half and takes its own.
    """
    other_halves = [sets[halves == 1 - half] for half in (0, 1)]
    chosen_thresholds = [
        max(thresholds, key=partial(f1, other_half if len(other_half) else sets)) for other_half in other_halves
    ]
    return sets["confidence"] < halves.map(dict(enumerate(chosen_thresholds))), chosen_thresholds
