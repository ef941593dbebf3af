"""Searches only some documents of a library."""

from __future__ import annotations

from collections.abc import Callable, Collection

from assistant.protocols import Retriever
from assistant.types import Passage

# How many times more passages are searched for at first than are wanted.
AHEAD = 4


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
