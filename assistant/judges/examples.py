"""Small classifiers that are trained at start on examples: logistic regressions over sentence embeddings."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from assistant.prompting.render import FOLDER
from assistant.protocols import Embedder


@dataclass(frozen=True, slots=True)
class Regression:
    """A logistic regression; `weights` has the bias as last row: shape (dimension + 1, labels)."""

    labels: tuple[str, ...]
    weights: NDArray[np.float32]

    def __call__(self, vectors: NDArray[np.float32]) -> list[dict[str, float]]:
        """The probability of each label, for each row."""
        scores = np.hstack([vectors, np.ones((len(vectors), 1), np.float32)]) @ self.weights
        exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
        probabilities = exponentials / exponentials.sum(axis=1, keepdims=True)
        return [dict(zip(self.labels, row.tolist(), strict=True)) for row in probabilities]


def examples(name: str) -> dict[str, list[str]]:
    """The texts of prompts/<name>.toml by their labels."""
    table: dict[str, list[str]] = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    return table


@lru_cache(maxsize=4)
def learned(name: str, embedder: Embedder) -> Regression:
    """The regression that tells the labels of prompts/<name>.toml apart; fitted once for an embedder."""
    table = examples(name)
    labels = [label for label, texts in table.items() for _ in texts]
    return fitted(embedder.encode([text for texts in table.values() for text in texts]), labels)


def fitted(vectors: NDArray[np.float32], labels: Sequence[str]) -> Regression:
    """A regression trained on vectors of shape (texts, dimension) and their labels, at least two different ones."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - a second to import

    model = LogisticRegression(C=20.0, max_iter=1000).fit(vectors, labels)
    weights, bias = model.coef_, model.intercept_
    if len(weights) == 1:  # with two labels only the second has weights
        weights, bias = np.vstack([np.zeros_like(weights), weights]), np.append(0.0, bias)
    return Regression(tuple(map(str, model.classes_)), np.vstack([weights.T, bias]).astype(np.float32))
