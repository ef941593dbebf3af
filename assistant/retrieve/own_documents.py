"""A person's own documents among the passages of another retriever: marked and ranked with the others, or alone."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.protocols import Retriever
from assistant.retrieve.fusion import fuse
from assistant.types import Passage

if TYPE_CHECKING:
    from assistant.retrieve.bm25 import Bm25  # starts the JVM

# How many own passages take part in every turn, those that a search of the own documents alone finds first.
OWN_CANDIDATES = 8
# How many times more passages are searched for at first than are wanted.
DEPTH_FACTOR = 4


class WithOwnDocuments:
    """A `Retriever` that marks, among the passages of another, those of the person's own documents as `own`.

    A library of thousands of passages has many that share words with a question, and would hide the few of one's own.
    So the ranking of these alone is fused with that of all (docs/results/documents.md).
    """

    def __init__(self, retriever: Retriever, documents: Bm25, alone: Retriever | None = None) -> None:
        """`documents` tell what is the person's own, and `alone` searches just these; without it, nothing is added."""
        self._retriever, self._documents, self._alone = retriever, documents, alone

    def search(self, query: str, k: int) -> list[Passage]:
        """At most `k` passages, best first.

        Raises:
            LibraryError: an index can't be read any more.
        """
        passages = self._retriever.search(query, k)
        own_passages = self._documents.get([passage.id for passage in passages])
        passages = [
            replace(passage, own=own_passage is not None)
            for passage, own_passage in zip(passages, own_passages, strict=True)
        ]
        if self._alone is None:
            return passages
        own_ranking = [replace(passage, own=True) for passage in self._alone.search(query, min(OWN_CANDIDATES, k))]
        return fuse({"all": passages, "own": own_ranking}, k)


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
        depth = DEPTH_FACTOR * k
        while True:
            passages = self._retriever.search(query, depth)
            matching = [passage for passage in passages if self._document_of(passage.id) in self._documents]
            if len(matching) >= k or len(passages) < depth or not k:
                return matching[:k]
            depth *= DEPTH_FACTOR
