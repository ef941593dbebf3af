"""Pairs the texts of two documents that say the same in other words."""

from __future__ import annotations

from collections.abc import Sequence

from assistant.protocols import Embedder


def nearest_pairs(
    first: Sequence[str], second: Sequence[str], lowest: float, embedder: Embedder
) -> list[tuple[int, int]]:
    """The places of texts that are each the other's nearest, at a cosine of `lowest` or more; in the first's order."""
    if not first or not second:
        return []
    vectors = embedder.encode([*first, *second])
    similarities = vectors[: len(first)] @ vectors[len(first) :].T
    nearest = [(n, int(row.argmax())) for n, row in enumerate(similarities)]
    return [(n, m) for n, m in nearest if similarities[:, m].argmax() == n and similarities[n, m] >= lowest]
