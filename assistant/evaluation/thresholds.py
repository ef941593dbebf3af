"""Thresholds of a set's confidence, under which it counts as without an answer (RE-RAG, section 4.2)."""

from __future__ import annotations

from assistant.errors import DataError

# The paper's.
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)


def check_odds(*values: float) -> None:
    """Refuse thresholds and shares that are none.

    Raises:
        DataError: one is not between 0 and 1.
    """
    if not all(0 < value < 1 for value in values):
        raise DataError("Thresholds and shares lie between 0 and 1; give others.")
