"""The person's own documents among the passages of a search: they are marked, and the nearest ones always found."""

from __future__ import annotations

from dataclasses import replace

from assistant.protocols import Retriever
from assistant.retrieve.bm25 import Bm25
from assistant.types import Passage

# How many own passages are among the candidates of every turn: of 276 questions on own documents beside the starter
# library the passage was among 20 candidates for 265 without them, for 272 with four (docs/results/documents.md).
CANDIDATES = 4


class OwnDocuments:
    """A `Retriever` that marks, among the passages of another, those of the person's own documents as `own`.

    The `least` own passages that are nearest to the query are always among those found, the last ones if need be: a
    library of thousands of passages has many that share a common word with the question, and would hide them.
    """

    def __init__(self, retriever: Retriever, documents: Bm25, least: int = 0) -> None:
        self._retriever, self._documents, self._least = retriever, documents, least

    def search(self, query: str, k: int) -> list[Passage]:
        """At most `k` passages, best first.

        Raises:
            LibraryError: an index can't be read any more.
        """
        found = [
            replace(passage, own=self._documents.get(passage.id) is not None)
            for passage in self._retriever.search(query, k)
        ]
        nearest = {one.id: replace(one, own=True) for one in self._documents.search(query, min(self._least, k))}
        others = [passage.id for passage in found if passage.id not in nearest][: k - len(nearest)]
        kept = [passage for passage in found if passage.id in nearest or passage.id in others]
        present = {passage.id for passage in kept}
        return [*kept, *(passage for passage in nearest.values() if passage.id not in present)]
