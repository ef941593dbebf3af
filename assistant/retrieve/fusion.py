"""Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from assistant.types import Passage


def fuse(rankings: Mapping[str, Sequence[Passage]], k: int, constant: int = 60) -> list[Passage]:
    """The best `k` passages of several rankings, fused.

    A passage scores the sum of 1 / (constant + rank) over the rankings that hold it, ranks from 1. Equal scores go by
    the best rank, then by the order of `rankings`.

    Args:
        rankings: by the name of their query, each best first.
        k: how many passages to return at most.
        constant: the larger, the less the difference between high ranks counts.

    Returns:
        Passages with the fused score; `found_by` names the rankings that hold them, in their order.
    """
    passages: dict[str, Passage] = {}
    ranks: dict[str, dict[str, int]] = {}
    for name, ranking in rankings.items():
        for rank, passage in enumerate(ranking, 1):
            passages.setdefault(passage.id, passage)
            ranks.setdefault(passage.id, {}).setdefault(name, rank)
    fused = [
        replace(passages[id_], score=sum(1 / (constant + rank) for rank in by_name.values()), found_by=tuple(by_name))
        for id_, by_name in ranks.items()
    ]
    # Sorting is stable, and passages were met in the order of the rankings.
    fused.sort(key=lambda passage: (-passage.score, min(ranks[passage.id].values())))
    return fused[: max(k, 0)]
