"""By the longest words of a query alone: an example of how little a retriever takes."""

from __future__ import annotations

from assistant.protocols import Retriever
from assistant.retrieve.retrievers import Indexes
from assistant.types import Passage

TITLE = "By key words"
SUMMARY = "Only the longest words of a question are searched for."
ENCODES = False
MOST = 3


def opened(indexes: Indexes) -> Retriever:
    """Words, fewer of them."""
    return Keywords(indexes.words())


class Keywords:
    """A `Retriever` that asks another for the longest words of a query."""

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever

    def search(self, query: str, k: int) -> list[Passage]:
        """At most `k` passages, best first."""
        return self._retriever.search(" ".join(sorted(query.split(), key=len)[-MOST:]), k)
