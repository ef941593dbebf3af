"""By words: BM25, through Lucene (`assistant/retrieve/bm25.py`)."""

from __future__ import annotations

from assistant.protocols import Retriever
from assistant.retrieve.retrievers import Indexes

TITLE = "By words (BM25)"
SUMMARY = ""
ENCODES = WAITS = False


def opened(indexes: Indexes) -> Retriever:
    """The search by words as it is."""
    return indexes.words()
