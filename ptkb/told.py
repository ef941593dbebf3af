"""Tells which sentences state something lasting of their writer in a form that no pattern has ("Cats make me sneeze").

A logistic regression over Sentence-BERT embeddings, learned at start from the examples in prompts/stated.toml.
"""

from __future__ import annotations

from collections.abc import Sequence

from assistant.judges.examples import learned
from assistant.protocols import Embedder

# How likely a sentence has to be a statement: what is none is to count as one seldom (docs/results/memory.md).
THRESHOLD = 0.7


def likelihoods(texts: Sequence[str], embedder: Embedder) -> list[float]:
    """How likely each text states something lasting of its writer, in [0, 1]."""
    return [odds["stated"] for odds in learned("stated", embedder)(embedder.encode(texts))] if texts else []
