"""By words and by meaning: the rankings of both, fused by reciprocal rank; by words alone until there are vectors."""

from __future__ import annotations

from collections.abc import Mapping

from assistant.protocols import Retriever
from assistant.retrieve.fusion import fuse
from assistant.retrieve.retrievers import Indexes
from assistant.retrieve.retrievers.dense import SUMMARY as IN_PIECES
from assistant.types import Passage

TITLE = "By both, fused"
SUMMARY = f"{IN_PIECES} What isn't encoded yet is searched by words meanwhile."
ENCODES, WAITS = True, False


def opened(indexes: Indexes) -> Retriever:
    """The searches by words and by meaning, fused."""
    words, meaning = indexes.words(), indexes.meaning_if_made()
    return Hybrid({"bm25": words, "dense": meaning}, constant=indexes.settings.retrieve.rrf_k) if meaning else words


class Hybrid:
    """A `Retriever` that asks others and fuses their rankings; `found_by` names those that found a passage."""

    def __init__(self, retrievers: Mapping[str, Retriever], depth: int = 100, constant: int = 60) -> None:
        """Args are the retrievers by name, how many passages to take from each, and the constant of the fusion."""
        self._retrievers = dict(retrievers)
        self._depth = depth
        self._constant = constant

    def search(self, query: str, k: int) -> list[Passage]:
        """At most `k` passages, best first; the score is the reciprocal rank sum."""
        depth = max(self._depth, k)
        rankings = {name: retriever.search(query, depth) for name, retriever in self._retrievers.items()}
        return fuse(rankings, k, self._constant)
