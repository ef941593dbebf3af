"""What a fact is about: food, health, places, people, work or something else, so that many facts are easy to survey.

A logistic regression over Sentence-BERT embeddings, learned at start from the examples in prompts/fields.toml.
"""

from __future__ import annotations

from collections.abc import Sequence

from assistant.judges.examples import learned
from assistant.protocols import Embedder

FIELDS = ("food", "health", "places", "people", "work", "other")


def fields_of(texts: Sequence[str], embedder: Embedder) -> list[str]:
    """The field of each text, one of `FIELDS`."""
    if not texts:
        return []
    return [max(odds, key=odds.__getitem__) for odds in learned("fields", embedder)(embedder.encode(texts))]
