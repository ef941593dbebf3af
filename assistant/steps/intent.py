"""Tells questions from small talk and from talk about the conversation, which need no sources.

A logistic regression over Sentence-BERT embeddings, learned at start from the examples in prompts/intents.toml. One
sentence that asks something makes the utterance a question ("Hello! What is the capital of Norway?"). When in doubt it
is a question: a needless search does less harm than a withheld answer.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import lru_cache
from threading import Event
from typing import cast

import numpy as np
from numpy.typing import NDArray

from assistant.prompt import FOLDER
from assistant.steps.abstain import consents
from assistant.text import quote, sentences
from assistant.types import Embedder, Intent, Parts, Turn


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:  # noqa: ARG001 - it is over in milliseconds
    """Adds `intent`; a yes to the offer of an answer without sources is no question to the library."""
    if consents(turn):
        yield turn.grow(intent="consent")
        return
    yield turn.grow(intent=intent_of(turn.utterance, parts.embedder, parts.settings.turn.intent_threshold))


def intent_of(utterance: str, embedder: Embedder, threshold: float) -> Intent:
    """The intent of an utterance: that of its most demanding sentence.

    A sentence is small talk or about the conversation where their probabilities together reach `threshold`.
    """
    pieces = [quote(utterance, span) for span in sentences(utterance)] or [utterance]
    found = {_of_one(odds, threshold) for odds in _odds(pieces, embedder)}
    if "question" in found:
        return "question"
    return "conversation" if "conversation" in found else "small_talk"


def _of_one(odds: dict[Intent, float], threshold: float) -> Intent:
    if 1 - odds["question"] < threshold:
        return "question"
    return "conversation" if odds["conversation"] > odds["small_talk"] else "small_talk"


def _odds(texts: list[str], embedder: Embedder) -> list[dict[Intent, float]]:
    intents, weights = _learned(embedder)
    scores = np.hstack([embedder.encode(texts), np.ones((len(texts), 1), np.float32)]) @ weights
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    odds /= odds.sum(axis=1, keepdims=True)
    return [dict(zip(intents, row.tolist(), strict=True)) for row in odds]


@lru_cache(maxsize=2)
def _learned(embedder: Embedder) -> tuple[tuple[Intent, ...], NDArray[np.float32]]:
    """The intents, and the weights of their regression with the bias as last row: shape (dimension + 1, intents)."""
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - a second to import

    table = tomllib.loads((FOLDER / "intents.toml").read_text(encoding="utf-8"))
    examples = [(intent, text) for intent, texts in table.items() for text in texts]
    model = LogisticRegression(C=20.0, max_iter=1000)
    model.fit(embedder.encode([text for _, text in examples]), [intent for intent, _ in examples])
    weights = np.vstack([model.coef_.T, model.intercept_]).astype(np.float32)
    return tuple(cast("Intent", intent) for intent in model.classes_), weights
