"""Tells questions from small talk, talk about the conversation and what is to be written, which need no sources.

A logistic regression over Sentence-BERT embeddings, learned at start from the examples in prompts/intents.toml. One
sentence that asks something makes the utterance a question ("Hello! What is the capital of Norway?"). When in doubt it
is a question: a needless search does less harm than a withheld answer. What seems talk ("My coffee runs too slowly.")
is a question as well where the library surely answers it, which the relevance estimator tells without the language
model.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Event

import numpy as np
from numpy.typing import NDArray

from assistant.judges.examples import Regression, examples, fitted
from assistant.judges.relevance.estimate import estimates, set_confidence
from assistant.protocols import Embedder, Estimator, Parts, Retriever
from assistant.settings import RelevanceSettings, TurnSettings
from assistant.text.sentences import quote, sentences
from assistant.types import Asks, Intent, Turn
from ptkb.extract import only_tells

_LOG = logging.getLogger(__name__)
Encode = Callable[[Sequence[str], Embedder], NDArray[np.float32]]
TALK: frozenset[Intent] = frozenset({"small_talk", "conversation"})
MEMORY: tuple[Asks, ...] = ("recall", "forget", "why")
# The tables that tell talk from questions, and those that only serve for that.
TALK_OR_NOT: tuple[Intent, ...] = ("small_talk", "conversation", "question")
MORE: dict[Intent, str] = {"small_talk": "more_small_talk", "question": "more_questions"}
MORE_LIKELY = 0.5
_GREETING = 2
_OPENING = 4
# What asks about a piece of writing: how to do it, who did it, what it says; not "How about a poem?".
_ABOUT = re.compile(r"\W*(?:(?:what|how)(?! about)|which|who|whose|where|when|why)\b", re.IGNORECASE)


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `intent` and `asks`; talk that the library surely answers is a question."""
    asks = asks_of(turn.said, parts.embedder, parts.settings.turn)
    if asks:
        yield replace(turn, intent="conversation", asks=asks)
        return
    intent = intent_of(turn.said, parts.embedder, parts.settings.turn)
    intent = "question" if intent in TALK and _looked_up(turn, parts, stop) else intent
    yield replace(turn, intent=intent)


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


def asks_of(utterance: str, embedder: Embedder, knobs: TurnSettings) -> Asks:
    """What an utterance wants with what is known of its writer, "" for nothing.

    It is what its sentences more likely want than not, where none of them is a question beside.
    """
    pieces = [quote(utterance, span) for span in sentences(utterance)] or [utterance]
    learned, vectors = _learned(embedder), embedder.encode(pieces)
    wanted = [_wanted(odds) for odds in learned.memory(_with_opening(pieces, embedder))]
    kinds = [_of_one(odds, knobs.intent_threshold) for odds in learned.talk(vectors)]
    if any(kind == "question" for kind, want in zip(kinds, wanted, strict=True) if not want):
        return ""
    return next(filter(None, wanted), "")


def library_answers(
    utterance: str, retriever: Retriever, estimator: Estimator, knobs: RelevanceSettings, stop: Event
) -> bool:
    """Whether a passage surely answers what seems talk. A word or two, such as a greeting, is not looked up."""
    passages = retriever.search(utterance, knobs.rerank_depth) if len(utterance.split()) > _GREETING else []
    found = estimates(utterance, passages, estimator, stop)
    return set_confidence(found) >= knobs.small_talk_threshold


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


def _wanted(odds: dict[str, float]) -> Asks:
    best = max(MEMORY, key=odds.__getitem__)
    return best if odds[best] > MORE_LIKELY else ""


@dataclass(frozen=True, slots=True)
class _Learned:
    """Three regressions: what is talk, and, apart from that, what asks for writing, and what for what is known."""

    talk: Regression
    writing: Regression
    memory: Regression


@lru_cache(maxsize=2)
def _learned(embedder: Embedder) -> _Learned:
    table = examples("intents")
    asks = {text: want for want in MEMORY for text in table[want]}
    none = [(text, "other") for text in table["beside"]]
    pairs = [(text, intent) for intent in (*TALK_OR_NOT, "writing") for text in table[intent]]
    more = [(text, intent) for intent, name in MORE.items() for text in table[name]]
    talk = [(text, intent) for text, intent in pairs if intent != "writing"] + more
    return _Learned(
        _taught(talk, embedder),
        _taught([(text, "writing" if intent == "writing" else "other") for text, intent in pairs], embedder),
        _taught(
            [*asks.items(), *none, *((text, "other") for text, _ in pairs if text not in asks)], embedder, _with_opening
        ),
    )


def _encoded(texts: Sequence[str], embedder: Embedder) -> NDArray[np.float32]:
    return embedder.encode(texts)


def _with_opening(texts: Sequence[str], embedder: Embedder) -> NDArray[np.float32]:
    """Each text beside its first words, which tell what it wants with whatever it is about; shape (texts, 2 d)."""
    openings = [" ".join(text.split()[:_OPENING]) for text in texts]
    vectors = embedder.encode([*texts, *openings])
    return np.hstack([vectors[: len(texts)], vectors[len(texts) :]])


def _taught(pairs: Sequence[tuple[str, str]], embedder: Embedder, encode: Encode = _encoded) -> Regression:
    """Learned from texts with their labels."""
    return fitted(encode([text for text, _ in pairs], embedder), [label for _, label in pairs])
