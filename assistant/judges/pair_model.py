"""A cross-encoder with the curve that makes its logit a probability, as the judge of support is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from threading import Event

from pydantic import TypeAdapter, ValidationError

from assistant.errors import DataError, ModelError
from assistant.judges.cross_encoder import LENGTH, PairReader

CURVE = "judge.json"
VERSION = 1
# Pairs read together. Judges read sentences, which are short.
BATCH = 32
# A logit beyond this is as good as certain; exp would overflow far beyond.
_HIGHEST = 50.0


@dataclass(frozen=True, slots=True)
class Curve:
    """Probability = sigmoid(slope * logit + intercept) (Platt's scaling), and from where on the judge says yes.

    A judge of three states says "partly" from `partly` up to the threshold. `chosen_on` says on which data all were
    fitted; it lies as `judge.json` beside the weights.
    """

    slope: float
    intercept: float
    threshold: float
    chosen_on: str
    pairs: int
    partly: float = 0.0
    version: int = VERSION

    def probability(self, logit: float) -> float:
        """The probability, in [0, 1], that belongs to a logit."""
        return 1 / (1 + exp(-max(-_HIGHEST, min(_HIGHEST, self.slope * logit + self.intercept))))

    def save(self, folder: Path) -> None:
        """Write it into the folder of the model.

        Raises:
            DataError: it can't be written.
        """
        try:
            (folder / CURVE).write_bytes(_JSON.dump_json(self, indent=2) + b"\n")
        except OSError as error:
            raise DataError(f"{folder / CURVE} can't be written ({error.strerror}); choose another folder.") from error

    @staticmethod
    def load(folder: Path) -> Curve:
        """Read what `save` wrote.

        Raises:
            ModelError: it is missing, broken, or of another version.
        """
        try:
            found = _JSON.validate_json((folder / CURVE).read_bytes())
        except (OSError, ValidationError) as error:
            raise ModelError(f"{folder / CURVE} can't be read; get or train the judge again.") from error
        if found.version != VERSION:
            raise ModelError(
                f"{folder / CURVE} is of version {found.version}, not {VERSION}; get one for this release."
            )
        return found


_JSON: TypeAdapter[Curve] = TypeAdapter(Curve)


class PairModel:
    """A judge's cross-encoder with its curve, from a folder; reads `length` tokens of a pair. Threads take turns.

    With a `base`, the folder holds what is added to this encoder.

    Raises:
        ModelError: a file is missing, cut short, or of another kind; the message says which and what to do.
    """

    def __init__(self, folder: Path, length: int = LENGTH, base: Path | None = None) -> None:
        self._model = PairReader(folder, length, base)
        self.curve = Curve.load(folder)

    def probabilities(self, pairs: Sequence[tuple[str, str]], stop: Event) -> list[float]:
        """One probability a pair; what is too long is cut by the tokenizer, the longer text of the two first.

        `stop` is looked at between batches; pairs that weren't read then have 0.
        """
        found = [0.0] * len(pairs)
        order = sorted(range(len(pairs)), key=lambda n: sum(map(len, pairs[n])))
        logits = self._model.logits([pairs[n] for n in order], BATCH, stop)
        for place, logit in zip(order, logits, strict=False):
            found[place] = self.curve.probability(logit)
        return found
