"""A cross-encoder with the curve that turns its logit into a probability; the judge of support is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from threading import Event
from typing import ClassVar, Literal

from assistant.judges.cross_encoder import LENGTH, PairReader
from assistant.judges.json_file import JsonFile

CURVE = "judge.json"
# Pairs read together. Judges read sentences, which are short.
BATCH = 32
# A logit beyond this is as good as certain; exp would overflow far beyond.
_HIGHEST = 50.0


@dataclass(frozen=True, slots=True)
class Curve(JsonFile):
    """Probability = sigmoid(slope * logit + intercept) (Platt's scaling), with the threshold for a yes.

    A judge with three states says "partly" from `partly` up to the threshold. `chosen_on` says on which data all of
    this was fitted. The curve is stored as `judge.json` beside the weights.
    """

    AGAIN: ClassVar[str] = "get or train the judge again"

    slope: float
    intercept: float
    threshold: float
    chosen_on: str
    pairs: int
    partly: float = 0.0
    version: Literal[1] = 1

    def probability(self, logit: float) -> float:
        """The probability, in [0, 1], that belongs to a logit."""
        return 1 / (1 + exp(-max(-_HIGHEST, min(_HIGHEST, self.slope * logit + self.intercept))))


class PairModel:
    """A judge's cross-encoder with its curve, from a folder; reads `length` tokens of a pair. Threads take turns.

    With a `base`, the folder holds what is added to this encoder.

    Raises:
        ModelError: a file is missing, cut short, or of another kind; the message says which and what to do.
    """

    def __init__(self, folder: Path, length: int = LENGTH, base: Path | None = None) -> None:
        self._model = PairReader(folder, length, base)
        self.curve = Curve.load(folder / CURVE)

    def probabilities(self, pairs: Sequence[tuple[str, str]], stop: Event) -> list[float]:
        """One probability for each pair; the tokenizer cuts pairs that are too long, first the longer text.

        `stop` is checked between batches; pairs that were not read get 0.
        """
        probabilities = [0.0] * len(pairs)
        order = sorted(range(len(pairs)), key=lambda n: sum(map(len, pairs[n])))
        logits = self._model.logits([pairs[n] for n in order], BATCH, stop)
        for index, logit in zip(order, logits, strict=False):
            probabilities[index] = self.curve.probability(logit)
        return probabilities
