"""What follows from estimates of relevance: an order, and a confidence in the set (RE-RAG, sections 2.2 and 5.1)."""

from __future__ import annotations

from collections.abc import Sequence

from assistant.types import Passage, Relevance


def reranked(passages: Sequence[Passage], relevance: Sequence[Relevance], k: int) -> list[tuple[Passage, Relevance]]:
    """The `k` most relevant passages, best first; equals stay in the order that they came in."""
    pairs = list(zip(passages, relevance, strict=True))
    return sorted(pairs, key=lambda pair: -pair[1].score)[:k]


def set_confidence(relevance: Sequence[Relevance]) -> float:
    """How sure it is that the passages hold the answer: max_j r_j (RE-RAG, section 5.1); 0 for no passages."""
    return max((one.confidence for one in relevance), default=0.0)
