"""Loads the judges that the settings name.

A judge that can't be loaded doesn't end the program: it fails when a turn asks it, and the turn goes on without it and
says why. If a smaller judge replaces it, `instead` is called.
"""

from __future__ import annotations

from typing import NoReturn

from assistant.errors import ModelError, SequiturError
from assistant.judges.stand_ins import Instead, logged
from assistant.protocols import Embedder, EstimatorOf, Progress, SuitabilityJudge, SupportJudgeOf, silent
from assistant.settings import Settings


class UnusableJudge:
    """Takes the place of a judge of any kind that couldn't be loaded; using it raises the reason as a ModelError."""

    threshold = 1.0

    def __init__(self, why: object) -> None:
        self._why = str(why)

    def __call__(self, *_: object) -> NoReturn:
        """Raises a ModelError."""
        raise ModelError(self._why)

    clashes = __call__


def relevance(
    settings: Settings, progress: Progress, embedder: Embedder | None = None, instead: Instead = logged
) -> EstimatorOf | None:
    """The relevance estimator that the settings name, None for none; it may use this embedder."""
    from assistant.judges.relevance.load import chosen  # noqa: PLC0415

    try:
        return chosen(settings, progress, embedder, instead)
    except SequiturError as error:
        return UnusableJudge(error)


def support(
    settings: Settings, embedder: Embedder | None = None, progress: Progress = silent, instead: Instead = logged
) -> SupportJudgeOf:
    """The judge of support that the settings name, fetched if need be; it may use this embedder."""
    from assistant.judges.support import named  # noqa: PLC0415

    try:
        return named(settings.turn.support).judge(settings, embedder, progress, instead)
    except SequiturError as error:
        return UnusableJudge(error)


def suitability(
    settings: Settings, embedder: Embedder, progress: Progress = silent, instead: Instead = logged
) -> SuitabilityJudge:
    """The judge of suitability, with this embedder and the reader that the settings name, fetched if need be."""
    from assistant.judges.suitability.judge import shipped  # noqa: PLC0415

    try:
        return shipped(settings, embedder, progress, instead)
    except SequiturError as error:
        return UnusableJudge(error)
