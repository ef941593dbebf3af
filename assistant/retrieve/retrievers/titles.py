"""By words, and of what is found so, first what has a word of the question in its title."""

from __future__ import annotations

from dataclasses import dataclass, replace

from assistant.protocols import Retriever
from assistant.retrieve.retrievers import Indexes
from assistant.types import Passage

TITLE = "By words, titles first"
SUMMARY = "What has a word of the question in its title stands before what has not."
ENCODES = False


def opened(indexes: Indexes) -> Retriever:
    """The search by words, put into another order."""
    return TitlesFirst(indexes.words())


@dataclass(frozen=True)
class TitlesFirst:
    """Another retriever's passages, those with a fitting title first. Scores are counted down from their number."""

    retriever: Retriever

    def search(self, query: str, k: int) -> list[Passage]:
        """At most `k` passages, best first."""
        asked = set(query.lower().split())
        found = self.retriever.search(query, k)
        ordered = sorted(found, key=lambda one: asked.isdisjoint(one.title.lower().split()))
        return [replace(one, score=float(len(ordered) - place)) for place, one in enumerate(ordered)]
