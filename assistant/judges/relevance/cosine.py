"""The similarity of question and passage as a relevance estimator without training, which RE-RAG is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

from assistant.protocols import Embedder
from assistant.types import Passage, Relevance


class CosineEstimator:
    """Takes the cosine of the embeddings for the confidence, as the paper does with its retriever (table 3)."""

    calibration = ""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.name = f"cosine:{embedder.name}"

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:  # noqa: ARG002
        """One estimate for each passage; see `Estimator`. A cosine below 0 counts as 0."""
        similarities = cosines(self._embedder, question, passages)
        return [Relevance.of_confidence(min(max(cosine, 0.0), 1.0)) for cosine in similarities]


def cosines(embedder: Embedder, question: str, passages: Sequence[Passage]) -> list[float]:
    """The cosine of the question with each passage, title and text, in [-1, 1]."""
    if not passages:
        return []
    texts = [passage.titled for passage in passages]
    return [float(cosine) for cosine in embedder.encode(texts) @ embedder.encode([question])[0]]
