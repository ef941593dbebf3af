"""Multi-hop: does a question need more than one look-up?

"Where was the director of Jaws born?" does: one text names the director, another tells where they were born. A logistic
regression over the question's embedding, trained on questions of data sets that are made of such and of others. What
was learned lies in shipped/multi_hop; how, and where it fails, is told in the README there.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from assistant.errors import ModelError
from assistant.types import Embedder

SHIPPED = Path(__file__).parent / "shipped" / "multi_hop"
FILE = "judge.json"


def plain(question: str) -> str:
    """The question without what only tells one data set from another: capitals, and the mark at its end."""
    return question.strip().rstrip("?!. ").lower()


@dataclass(frozen=True, slots=True)
class Curve:
    """What was learned: weights of a logistic curve for embeddings of the embedder that is named, the bias behind them.

    `weights` has one number more than the embeddings have dimensions.
    """

    weights: tuple[float, ...]
    embedder: str
    threshold: float
    chosen_on: str

    def save(self, folder: Path) -> None:
        """Write it into the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FILE).write_text(json.dumps(asdict(self)) + "\n", encoding="utf-8")

    @staticmethod
    def load(folder: Path) -> Curve:
        """Read what `save` wrote.

        Raises:
            ModelError: it is missing or broken.
        """
        try:
            stored = json.loads((folder / FILE).read_text(encoding="utf-8"))
            weights = tuple(map(float, stored["weights"]))
            return Curve(weights, str(stored["embedder"]), float(stored["threshold"]), str(stored["chosen_on"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ModelError(
                f"The judge of multi-hop questions can't be used: {folder} holds no complete one ({error}); get or "
                "train it again."
            ) from error

    def odds(self, vectors: NDArray[np.float32]) -> list[float]:
        """The probability for each row of embeddings, shape (n, dimension)."""
        *weights, bias = self.weights
        odds: list[float] = (1 / (1 + np.exp(-(vectors @ np.asarray(weights, np.float32) + bias)))).tolist()
        return odds


@dataclass(frozen=True, slots=True)
class MultiHop:
    """The judge. Safe to call from several threads.

    Raises:
        ModelError: what was learned belongs to another embedder.
    """

    curve: Curve
    embedder: Embedder

    def __post_init__(self) -> None:
        if self.embedder.name != self.curve.embedder:
            raise ModelError(
                f"The judge of multi-hop questions was trained for {self.curve.embedder}, not for {self.embedder.name};"
                " set embedder.model back, train it for this one with `train multi-hop`, or set turn.plan to never."
            )

    def needs_several(self, question: str) -> bool:
        """Whether it surely needs several look-ups: its probability is at the threshold or above."""
        [odds] = self.curve.odds(self.embedder.encode([plain(question)]))
        return odds >= self.curve.threshold
