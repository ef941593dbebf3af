"""The likeness of question and passage as a relevance estimator, without training: what RE-RAG is measured against."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

from assistant.types import Embedder, Passage, Relevance


class CosineEstimator:
    """Takes the cosine of the embeddings for the confidence, as the paper does with its retriever (table 3)."""

    calibration = ""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.name = f"cosine:{embedder.name}"

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:  # noqa: ARG002
        """One estimate for each passage; see `Estimator`. A cosine below 0 counts as 0."""
        if not passages:
            return []
        texts = [f"{passage.title}: {passage.text}" if passage.title else passage.text for passage in passages]
        cosines = self._embedder.encode(texts) @ self._embedder.encode([question])[0]
        return [Relevance.of_confidence(min(max(float(cosine), 0.0), 1.0)) for cosine in cosines]
