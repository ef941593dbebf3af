"""A person's own documents among the passages of another retriever: marked, the nearest always there, or alone."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.protocols import Retriever
from assistant.types import Passage

if TYPE_CHECKING:
    from assistant.retrieve.bm25 import Bm25  # starts the JVM

# How many own passages are among the candidates of every turn: of 276 questions on own documents beside the starter
# library the passage was among 20 candidates for 265 without them, for 272 with four (docs/results/documents.md).
CANDIDATES = 4
# How many times more passages are searched for at first than are wanted.
AHEAD = 4


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
        others = frozenset([passage.id for passage in found if passage.id not in nearest][: k - len(nearest)])
        kept = [passage for passage in found if passage.id in nearest or passage.id in others]
        present = {passage.id for passage in kept}
        return [*kept, *(passage for passage in nearest.values() if passage.id not in present)]


class DocumentFilter:
    """A `Retriever` that finds, among the passages of another, those of these documents."""

    def __init__(self, retriever: Retriever, documents: Collection[str], document_of: Callable[[str], str]) -> None:
        """`document_of` gives the id of a passage's document from the passage's id."""
        self._retriever, self._documents, self._document_of = retriever, frozenset(documents), document_of

    def search(self, query: str, k: int) -> list[Passage]:
        """At most `k` passages, best first; the search goes deeper until there are enough, or no more.

        Raises:
            LibraryError: an index can't be read any more.
        """
        depth = AHEAD * k
        while True:
            found = self._retriever.search(query, depth)
            inside = [passage for passage in found if self._document_of(passage.id) in self._documents]
            if len(inside) >= k or len(found) < depth or not k:
                return inside[:k]
            depth *= AHEAD
