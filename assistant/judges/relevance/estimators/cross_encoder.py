"""A cross-encoder as relevance estimator: reads question and passage together, gives one logit, which is s_j."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Event

from assistant.judges.cross_encoder import PairReader, readable
from assistant.types import Passage, Relevance

SHIPPED: Path | None = Path(__file__).parents[1] / "shipped"
BATCH = 8


def trained(folder: Path, name: str) -> CrossEncoderEstimator:
    """The estimator in a folder; see `estimators.TrainedModule`."""
    return CrossEncoderEstimator(folder, name)


class CrossEncoderEstimator:
    """A cross-encoder in a local folder. Of question and passage together 256 tokens are read at most.

    With a `base`, the folder holds what is added to this encoder.

    Raises:
        ModelError: the folder holds no cross-encoder of one logit, or one that can't be loaded.
    """

    calibration = ""

    def __init__(self, folder: Path, name: str = "", base: Path | None = None) -> None:
        self.name = f"cross-encoder:{name or folder.name}"
        self._model = PairReader(folder, base=base)

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
        """One estimate for each passage; see `Estimator`. `stop` is looked at between batches of 8."""
        estimates = [Relevance.of_score(0.0)] * len(passages)
        order = sorted(range(len(passages)), key=lambda n: len(passages[n].text))
        logits = self._model.logits([pair(question, passages[n]) for n in order], BATCH, stop)
        for index, logit in zip(order, logits, strict=False):
            estimates[index] = Relevance.of_score(logit)
        return estimates


def pair(question: str, passage: Passage) -> tuple[str, str]:
    """What the cross-encoder reads, in training and in use."""
    return readable((question, passage.titled))
