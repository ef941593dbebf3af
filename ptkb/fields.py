"""What a fact is about: food, health, places, people, work or something else, so that many facts are easy to look over.

A logistic regression over Sentence-BERT embeddings, learned at start from the examples in prompts/fields.toml.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from assistant.judges.examples import Regression, examples, fitted
from assistant.protocols import Embedder

FIELDS = ("food", "health", "places", "people", "work", "other")


def fields_of(texts: Sequence[str], embedder: Embedder) -> list[str]:
    """The field of each text, one of `FIELDS`."""
    if not texts:
        return []
    return [max(odds, key=odds.__getitem__) for odds in _regression(embedder)(embedder.encode(texts))]


@lru_cache(maxsize=2)
def _regression(embedder: Embedder) -> Regression:
    table = examples("fields")
    labels = [field for field, texts in table.items() for _ in texts]
    return fitted(embedder.encode([text for texts in table.values() for text in texts]), labels)
