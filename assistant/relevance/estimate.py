"""What a relevance estimator is: question and passages in, a confidence for each passage out (RE-RAG, section 2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from threading import Event
from typing import Protocol

from assistant.types import Passage

# Confidences stay this far from 0 and 1, where the score would be infinite; well below what any estimator resolves.
EDGE = 1e-6


@dataclass(frozen=True, slots=True)
class Relevance:
    """How relevant one passage is: `confidence` is r_j, in (0, 1); `score` is s_j, its log-odds, in nats."""

    confidence: float
    score: float

    @staticmethod
    def of_confidence(confidence: float) -> Relevance:
        """From a probability (equation 4: s = log(r / (1 - r))), kept off 0 and 1.

        Raises:
            ValueError: it is not a number in [0, 1].
        """
        if not 0 <= confidence <= 1:
            raise ValueError(f"a confidence has to be in [0, 1], not {confidence}")
        inside = min(max(confidence, EDGE), 1 - EDGE)
        return Relevance(inside, log(inside / (1 - inside)))

    @staticmethod
    def of_score(score: float) -> Relevance:
        """From log-odds, such as a cross-encoder's logit; kept off the ends.

        Raises:
            ValueError: it is not a number.
        """
        if score != score:  # noqa: PLR0124 - only NaN differs from itself
            raise ValueError("a score has to be a number")
        most = log((1 - EDGE) / EDGE)
        inside = min(max(score, -most), most)
        return Relevance(1 / (1 + exp(-inside)), inside)


class Estimator(Protocol):
    """Tells how relevant passages are to a question. `name` is kept with what was calibrated for it."""

    name: str

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
        """One estimate for each passage, in order. Passages that `stop` overtook get even odds (r = 0.5, s = 0)."""
        ...


def reranked(passages: Sequence[Passage], relevance: Sequence[Relevance], k: int) -> list[tuple[Passage, Relevance]]:
    """The `k` most relevant passages, best first; equals stay in the order that they came in."""
    pairs = list(zip(passages, relevance, strict=True))
    return sorted(pairs, key=lambda pair: -pair[1].score)[:k]


def set_confidence(relevance: Sequence[Relevance]) -> float:
    """How sure it is that the passages hold the answer: max_j r_j (RE-RAG, section 5.1); 0 for no passages."""
    return max((one.confidence for one in relevance), default=0.0)
