"""A trained estimator and the likeness of embeddings together, each of which knows something that the other doesn't.

s_j = judge * s_j of the estimator + cosine * cosine of question and passage + intercept: a logistic regression of
whether a passage answers, on a development set. It lies as `blend.json` beside the estimator's model. The paper has no
such thing; a small estimator that saw few questions gains by it, since the embedder has seen a billion pairs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from assistant.errors import DataError, ModelError
from assistant.judges.relevance.by_cosine import cosines
from assistant.llm.processor import has_bf16
from assistant.protocols import Embedder, Estimator
from assistant.types import Passage, Relevance

NAME = "blend.json"
VERSION = 1
_REGULARISATION = 100.0


@dataclass(frozen=True, slots=True)
class Blend:
    """The weights, and the name of the embedder that they were fitted with."""

    embedder: str
    judge: float
    cosine: float
    intercept: float
    pairs: int = 0
    version: int = VERSION

    def save(self, path: Path) -> None:
        """Write it as JSON.

        Raises:
            DataError: the file can't be written.
        """
        try:
            path.write_bytes(_JSON.dump_json(self, indent=2) + b"\n")
        except OSError as error:
            raise DataError(f"The blend can't be written to {path} ({error.strerror}); choose another.") from error

    @staticmethod
    def load(path: Path) -> Blend:
        """Read what `save` wrote.

        Raises:
            ModelError: the file can't be read, or is of another version.
        """
        again = "make it again with `train blend`"
        try:
            found = _JSON.validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise ModelError(f"The blend {path} can't be read; {again}.") from error
        if found.version != VERSION:
            raise ModelError(f"The blend {path} is of version {found.version}, not {VERSION}; {again}.")
        return found


_JSON: TypeAdapter[Blend] = TypeAdapter(Blend)


class Blended:
    """An `Estimator` made of another and an embedder."""

    calibration = ""

    def __init__(self, judge: Estimator, embedder: Embedder, blend: Blend) -> None:
        self.name = f"{judge.name}+cosine"
        self._judge, self._embedder, self._blend = judge, embedder, blend

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
        """One estimate for each passage; see `Estimator`."""
        judged = self._judge.estimate(question, passages, stop)
        if stop.is_set():
            return judged
        with quickly():
            alike = cosines(self._embedder, question, passages)
        known = self._blend
        return [
            Relevance.of_score(known.judge * one.score + known.cosine * cosine + known.intercept)
            for one, cosine in zip(judged, alike, strict=True)
        ]


def quickly() -> AbstractContextManager[Any]:
    """In bf16, where the CPU has units for it: passages are embedded twice as fast, and cosines move by 0.001.

    Where torch isn't loaded OpenVINO runs the embedder, which does so by itself.
    """
    torch = sys.modules.get("torch")
    return torch.autocast("cpu", enabled=has_bf16()) if torch else nullcontext()


def fit(embedder: str, scores: Sequence[float], alike: Sequence[float], relevant: Sequence[bool]) -> Blend:
    """Fit the weights on pairs: the judge's s_j, the cosine, and whether the passage answers.

    Raises:
        DataError: all passages answer, or none does; or they answer less the more alike or better judged they are.
    """
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - takes a second to import

    y: NDArray[np.bool_] = np.asarray(relevant, dtype=bool)
    if y.all() or not y.any():
        raise DataError(f"All {len(y)} passages are {'relevant' if y.any() else 'irrelevant'}; take more questions.")
    model = LogisticRegression(C=_REGULARISATION).fit(np.column_stack([scores, alike]), y)
    judge, cosine = (float(weight) for weight in model.coef_[0])
    if judge <= 0 or cosine <= 0:
        raise DataError("One of the two says nothing about relevance here, so that they can't be blended.")
    return Blend(embedder, judge, cosine, float(np.ravel(model.intercept_)[0]), len(y))
