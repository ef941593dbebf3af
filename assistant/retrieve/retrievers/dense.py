"""By meaning: dense vectors of passages and questions (`assistant/retrieve/dense.py`)."""

from __future__ import annotations

from assistant.protocols import Retriever
from assistant.retrieve.retrievers import Indexes

TITLE = "By meaning (dense vectors)"
SUMMARY = "What is longer than the encoder reads at once is searched piece by piece; the best piece counts."
ENCODES = WAITS = True


def opened(indexes: Indexes) -> Retriever:
    """The search by vectors as it is."""
    return indexes.meaning()
