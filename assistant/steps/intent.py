"""Tells questions from small talk, talk about the conversation and what is to be written, which need no sources.

A logistic regression over Sentence-BERT embeddings, learned at start from the examples in prompts/intents.toml. One
sentence that asks something makes the utterance a question ("Hello! What is the capital of Norway?"). When in doubt it
is a question: a needless search does less harm than a withheld answer. So it is where the library surely answers what
seems talk ("My coffee runs too slowly."), which the relevance estimator tells without the language model.
"""

from __future__ import annotations

import logging
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from threading import Event

import numpy as np
from numpy.typing import NDArray

from assistant.prompt import FOLDER
from assistant.relevance.estimate import set_confidence
from assistant.settings import RelevanceSettings, TurnSettings
from assistant.text import quote, sentences
from assistant.types import Embedder, Estimator, Intent, Parts, Retriever, Turn
from ptkb.extract import only_tells

_LOG = logging.getLogger(__name__)
TALK: frozenset[Intent] = frozenset({"small_talk", "conversation"})
_GREETING = 2
# What asks about a piece of writing: how to do it, who did it, what it says; not "How about a poem?".
_ABOUT = re.compile(r"\W*(?:(?:what|how)(?! about)|which|who|whose|where|when|why)\b", re.IGNORECASE)


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `intent`; talk that the library surely answers is a question."""
    intent = intent_of(turn.said, parts.embedder, parts.settings.turn)
    intent = "question" if intent in TALK and _looked_up(turn, parts, stop) else intent
    yield turn.grow(intent=intent)


def intent_of(utterance: str, embedder: Embedder, knobs: TurnSettings) -> Intent:
    """The intent of an utterance: that of its most demanding sentence.

    A sentence is small talk or about the conversation where their probabilities together reach `intent_threshold`, and
    asks for a piece of writing from `writing_threshold` on. That may go on with what is to stand in it: only a question
    mark makes a question of it, and none does behind a colon ("Translate this: Where is the station?"). What only tells
    of its writer asks for nothing.
    """
    pieces = [quote(utterance, span) for span in sentences(utterance)] or [utterance]
    learned, vectors = _learned(embedder), embedder.encode(pieces)
    if _to_be_written(pieces, learned.writing(vectors), knobs.writing_threshold):
        return "writing"
    found = {_of_one(odds, knobs.intent_threshold) for odds in learned.talk(vectors)}
    if "question" in found:
        return "small_talk" if only_tells(utterance, embedder) else "question"
    return "conversation" if "conversation" in found else "small_talk"


def library_answers(
    utterance: str, retriever: Retriever, estimator: Estimator, knobs: RelevanceSettings, stop: Event
) -> bool:
    """Whether a passage surely answers what seems talk. A word or two, such as a greeting, is not looked up."""
    passages = retriever.search(utterance, knobs.candidates) if len(utterance.split()) > _GREETING else []
    found = estimator.estimate(utterance, passages, stop) if passages else []
    return bool(found) and set_confidence(found) >= knobs.talk


def _looked_up(turn: Turn, parts: Parts, stop: Event) -> bool:
    knobs = parts.settings.relevance
    if parts.estimator is None or knobs.estimator == "llm" or only_tells(turn.said, parts.embedder):
        return False
    try:
        return library_answers(turn.said, parts.retriever, parts.estimator(parts.llm), knobs, stop)
    except Exception:  # noqa: BLE001 - a model may fail in any way, and talk doesn't depend on this one
        _LOG.exception("the relevance estimator failed")
        return False


def _to_be_written(pieces: list[str], odds: list[dict[str, float]], threshold: float) -> bool:
    likely = {piece for piece, odd in zip(pieces, odds, strict=True) if odd["writing"] >= threshold}
    wanted = [n for n, piece in enumerate(pieces) if piece in likely and not _ABOUT.match(piece)]
    if not wanted:
        return False
    own = next((n for n in wanted if ":" in pieces[n]), len(pieces))
    return not any(piece.endswith("?") for n, piece in enumerate(pieces[:own]) if n not in wanted)


def _of_one(odds: dict[str, float], threshold: float) -> Intent:
    if 1 - odds["question"] < threshold:
        return "question"
    return "conversation" if odds["conversation"] > odds["small_talk"] else "small_talk"


@dataclass(frozen=True, slots=True)
class _Regression:
    """A logistic regression; `weights` has the bias as last row: shape (dimension + 1, labels)."""

    labels: tuple[str, ...]
    weights: NDArray[np.float32]

    def __call__(self, vectors: NDArray[np.float32]) -> list[dict[str, float]]:
        """The labels' odds for each row."""
        scores = np.hstack([vectors, np.ones((len(vectors), 1), np.float32)]) @ self.weights
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        odds /= odds.sum(axis=1, keepdims=True)
        return [dict(zip(self.labels, row.tolist(), strict=True)) for row in odds]


@dataclass(frozen=True, slots=True)
class _Learned:
    """Two regressions: what is talk, and, apart from that, what asks for a piece of writing."""

    talk: _Regression
    writing: _Regression


@lru_cache(maxsize=2)
def _learned(embedder: Embedder) -> _Learned:
    table = tomllib.loads((FOLDER / "intents.toml").read_text(encoding="utf-8"))
    texts = [text for examples in table.values() for text in examples]
    labels = [intent for intent, examples in table.items() for _ in examples]
    vectors = embedder.encode(texts)
    talk = [n for n, label in enumerate(labels) if label != "writing"]
    writing = ["writing" if label == "writing" else "other" for label in labels]
    return _Learned(_fitted(vectors[talk], [labels[n] for n in talk]), _fitted(vectors, writing))


def _fitted(vectors: NDArray[np.float32], labels: list[str]) -> _Regression:
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415 - a second to import

    model = LogisticRegression(C=20.0, max_iter=1000).fit(vectors, labels)
    weights, bias = model.coef_, model.intercept_
    if len(weights) == 1:  # of two labels only the second has weights
        weights, bias = np.vstack([np.zeros_like(weights), weights]), np.append(0.0, bias)
    return _Regression(tuple(map(str, model.classes_)), np.vstack([weights.T, bias]).astype(np.float32))
