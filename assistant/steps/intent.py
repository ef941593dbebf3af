"""Classifies messages: questions need sources; small talk, talk about the conversation and requests to write don't.

The classifiers are logistic regressions over Sentence-BERT embeddings, trained at start on the examples in
prompts/intents.toml. A message is a question if one of its sentences asks something ("Hello! What is the capital of
Norway?") or if the classifier is in doubt, since a needless search does less harm than a withheld answer. A message
that looks like talk ("My coffee runs too slowly.") is also a question if the relevance estimator is sure that the
library answers it.
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
from ptkb.extract import only_states_facts

_LOG = logging.getLogger(__name__)
Encode = Callable[[Sequence[str], Embedder], NDArray[np.float32]]
TALK: frozenset[Intent] = frozenset({"small_talk", "conversation"})
MEMORY: tuple[Asks, ...] = ("recall", "forget", "why")
# The tables of examples that separate talk from questions, and further tables that are used only for this.
TALK_OR_NOT: tuple[Intent, ...] = ("small_talk", "conversation", "question")
MORE: dict[Intent, str] = {"small_talk": "more_small_talk", "question": "more_questions"}
MORE_LIKELY = 0.5
_GREETING_WORDS = 2
_OPENING_WORDS = 4
# Questions about a piece of writing: how to do it, who did it, what it says; not "How about a poem?".
_ABOUT = re.compile(r"\W*(?:(?:what|how)(?! about)|which|who|whose|where|when|why)\b", re.IGNORECASE)


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `intent` and `asks`; talk that the library surely answers counts as a question."""
    knobs, embedder, encoded = (
        parts.settings.turn,
        parts.embedder,
        _encoded_utterance(turn.utterance_in_english, parts.embedder),
    )
    asks = _asks(encoded, embedder, knobs)
    if asks:
        yield replace(turn, intent="conversation", asks=asks)
        return
    intent = _intent(turn.utterance_in_english, encoded, embedder, knobs)
    intent = "question" if intent in TALK and _is_answered_by_library(turn, parts, stop) else intent
    yield replace(turn, intent=intent)


def intent_of(utterance: str, embedder: Embedder, knobs: TurnSettings) -> Intent:
    """The intent of an utterance: that of its most demanding sentence.

    A sentence is small talk or about the conversation if the sum of both probabilities reaches `intent_threshold`. It
    asks for a piece of writing if that probability reaches `writing_threshold`. Such a request may contain the text to
    work on, so a further sentence makes the message a question only if it ends with a question mark and doesn't follow
    a colon ("Translate this: Where is the station?"). A message that only states something about its writer is no
    question.
    """
    return _intent(utterance, _encoded_utterance(utterance, embedder), embedder, knobs)


def asks_of(utterance: str, embedder: Embedder, knobs: TurnSettings) -> Asks:
    """What an utterance asks about the stored facts, "" for nothing.

    One sentence that asks about them is enough, unless another sentence is a question about something else.
    """
    return _asks(_encoded_utterance(utterance, embedder), embedder, knobs)


@dataclass(frozen=True, slots=True)
class _EncodedUtterance:
    """The sentences of an utterance, and for each the vector of the sentence and that of its first words: (n, 2 d)."""

    pieces: list[str]
    both: NDArray[np.float32]

    @property
    def vectors(self) -> NDArray[np.float32]:
        """The vectors of the sentences alone: (n, d)."""
        return self.both[:, : self.both.shape[1] // 2]


def _encoded_utterance(utterance: str, embedder: Embedder) -> _EncodedUtterance:
    pieces = [quote(utterance, span) for span in sentences(utterance)] or [utterance]
    return _EncodedUtterance(pieces, _with_opening(pieces, embedder))


def _intent(utterance: str, encoded: _EncodedUtterance, embedder: Embedder, knobs: TurnSettings) -> Intent:
    classifiers = _classifiers(embedder)
    if _asks_to_write(encoded.pieces, classifiers.writing(encoded.vectors), knobs.writing_threshold):
        return "writing"
    intents = {
        _sentence_intent(probabilities, knobs.intent_threshold) for probabilities in classifiers.talk(encoded.vectors)
    }
    if "question" in intents:
        return "small_talk" if only_states_facts(utterance, embedder) else "question"
    return "conversation" if "conversation" in intents else "small_talk"


def _asks(encoded: _EncodedUtterance, embedder: Embedder, knobs: TurnSettings) -> Asks:
    classifiers = _classifiers(embedder)
    requests = [_memory_request(probabilities) for probabilities in classifiers.memory(encoded.both)]
    intents = [
        _sentence_intent(probabilities, knobs.intent_threshold) for probabilities in classifiers.talk(encoded.vectors)
    ]
    if any(intent == "question" for intent, request in zip(intents, requests, strict=True) if not request):
        return ""
    return next(filter(None, requests), "")


def library_answers(
    utterance: str, retriever: Retriever, estimator: Estimator, knobs: RelevanceSettings, stop: Event
) -> bool:
    """Whether a passage surely answers what looks like talk. One or two words, such as "Hi!", are not searched for."""
    passages = retriever.search(utterance, knobs.rerank_depth) if len(utterance.split()) > _GREETING_WORDS else []
    return set_confidence(estimates(utterance, passages, estimator, stop)) >= knobs.small_talk_threshold


def _is_answered_by_library(turn: Turn, parts: Parts, stop: Event) -> bool:
    knobs = parts.settings.relevance
    if (
        parts.estimator is None
        or knobs.estimator == "llm"
        or only_states_facts(turn.utterance_in_english, parts.embedder)
    ):
        return False
    try:
        return library_answers(turn.utterance_in_english, parts.retriever, parts.estimator(parts.llm), knobs, stop)
    except Exception:  # noqa: BLE001 - a model may fail in any way, and talk doesn't depend on this one
        _LOG.exception("the relevance estimator failed")
        return False


def _asks_to_write(pieces: list[str], probabilities: list[dict[str, float]], threshold: float) -> bool:
    likely_pieces = {
        piece for piece, probability in zip(pieces, probabilities, strict=True) if probability["writing"] >= threshold
    }
    requests = [n for n, piece in enumerate(pieces) if piece in likely_pieces and not _ABOUT.match(piece)]
    if not requests:
        return False
    colon_index = next((n for n in requests if ":" in pieces[n]), len(pieces))
    return not any(piece.endswith("?") for n, piece in enumerate(pieces[:colon_index]) if n not in requests)


def _sentence_intent(probabilities: dict[str, float], threshold: float) -> Intent:
    if 1 - probabilities["question"] < threshold:
        return "question"
    return "conversation" if probabilities["conversation"] > probabilities["small_talk"] else "small_talk"


def _memory_request(probabilities: dict[str, float]) -> Asks:
    best = max(MEMORY, key=probabilities.__getitem__)
    return best if probabilities[best] > MORE_LIKELY else ""


@dataclass(frozen=True, slots=True)
class _Classifiers:
    """Three regressions: talk or question, request to write or not, and which request about stored facts."""

    talk: Regression
    writing: Regression
    memory: Regression


@lru_cache(maxsize=2)
def _classifiers(embedder: Embedder) -> _Classifiers:
    table = examples("intents")
    request_of_text = {text: request for request in MEMORY for text in table[request]}
    other_pairs = [(text, "other") for text in table["beside"]]
    pairs = [(text, intent) for intent in (*TALK_OR_NOT, "writing") for text in table[intent]]
    extra_pairs = [(text, intent) for intent, name in MORE.items() for text in table[name]]
    talk_pairs = [(text, intent) for text, intent in pairs if intent != "writing"] + extra_pairs
    other_pairs += [(text, "other") for text, _ in pairs if text not in request_of_text]
    return _Classifiers(
        _trained(talk_pairs, embedder),
        _trained([(text, "writing" if intent == "writing" else "other") for text, intent in pairs], embedder),
        _trained([*request_of_text.items(), *other_pairs], embedder, _with_opening),
    )


def _encoded(texts: Sequence[str], embedder: Embedder) -> NDArray[np.float32]:
    return embedder.encode(texts)


def _with_opening(texts: Sequence[str], embedder: Embedder) -> NDArray[np.float32]:
    """For each text its vector and that of its first words, which show what kind of request it is: (texts, 2 d)."""
    openings = [" ".join(text.split()[:_OPENING_WORDS]) for text in texts]
    vectors = embedder.encode([*texts, *openings])
    return np.hstack([vectors[: len(texts)], vectors[len(texts) :]])


def _trained(pairs: Sequence[tuple[str, str]], embedder: Embedder, encode: Encode = _encoded) -> Regression:
    """A regression trained on texts with their labels."""
    return fitted(encode([text for text, _ in pairs], embedder), [label for _, label in pairs])
