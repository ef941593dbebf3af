"""Marks the passages that come from the person's own documents."""

from __future__ import annotations

from dataclasses import replace

from assistant.protocols import Retriever
from assistant.retrieve.bm25 import Bm25
from assistant.types import Passage


class OwnDocumentMarker:
    """A `Retriever` that marks, among the passages of another, those of the person's own documents as `own`."""

    def __init__(self, retriever: Retriever, documents: Bm25) -> None:
        self._retriever, self._documents = retriever, documents

    def search(self, query: str, k: int) -> list[Passage]:
        """At most `k` passages, best first.

        Raises:
            LibraryError: an index can't be read any more.
        """
        return [
            replace(passage, own=self._documents.get(passage.id) is not None)
            for passage in self._retriever.search(query, k)
        ]
