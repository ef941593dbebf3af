"""What follows from estimates of relevance: an order, and a confidence in the set (RE-RAG, sections 2.2 and 5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from assistant.types import Passage, Relevance

# What a turn gives the order of its search: docs/results/relevance.md.
PRIOR = 1.0


def reranked(
    passages: Sequence[Passage], relevance: Sequence[Relevance], k: int, prior: float = 0.0
) -> list[tuple[Passage, Relevance]]:
    """The `k` most relevant passages, best first; equals stay in the order that they came in.

    `prior` is how much that order counts: the log-odds fall by `prior` times the logarithm of the place. At 1 the
    prior odds are 1, 1/2, 1/3, ..., as relevance is spread over the places of a search.
    """
    pairs = list(zip(passages, relevance, strict=True))
    places = sorted(range(len(pairs)), key=lambda n: prior * log(n + 1) - pairs[n][1].score)
    return [pairs[n] for n in places[:k]]


def likely(confidences: Sequence[float], share: float, k: int) -> list[bool]:
    """Which passages are not far less likely to answer than the likeliest of the first `k`: the cut-off of a reply.

    Those are that have at least `share` of its confidence. One of the first `k` always is.
    """
    best = max(confidences[:k], default=0.0)
    return [one >= share * best for one in confidences]


def set_confidence(relevance: Sequence[Relevance]) -> float:
    """How sure it is that the passages hold the answer: max_j r_j (RE-RAG, section 5.1); 0 for no passages."""
    return max((one.confidence for one in relevance), default=0.0)
