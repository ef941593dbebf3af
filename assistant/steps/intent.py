"""Tells questions from small talk and from talk about the conversation, which need no sources.

Sentence-BERT compares every sentence of the utterance to the examples in prompts/intents.toml: one sentence that asks
something makes the utterance a question ("Hello! What is the capital of Norway?"). When in doubt it is a question,
since a needless search does less harm than a withheld answer.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from threading import Event
from typing import cast

import numpy as np

from assistant.prompt import FOLDER
from assistant.text import quote, sentences
from assistant.types import Embedder, Intent, Parts, Turn


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:  # noqa: ARG001 - it is over in milliseconds
    """Adds `intent`."""
    threshold = parts.settings.turn.intent_threshold
    yield turn.grow(intent=intent_of(turn.utterance, parts.embedder, threshold))


def intent_of(utterance: str, embedder: Embedder, threshold: float) -> Intent:
    """The intent of an utterance: that of its most demanding sentence."""
    pieces = [quote(utterance, span) for span in sentences(utterance)] or [utterance]
    found = {_of_sentence(piece, embedder, threshold) for piece in pieces}
    if "question" in found:
        return "question"
    return "conversation" if "conversation" in found else "small_talk"


def _of_sentence(sentence: str, embedder: Embedder, threshold: float) -> Intent:
    examples = _examples()
    vectors = embedder.encode([sentence, *(text for _, text in examples)])
    similarity = vectors[1:] @ vectors[0]
    best = int(np.argmax(similarity))
    return examples[best][0] if similarity[best] >= threshold else "question"


@cache
def _examples() -> tuple[tuple[Intent, str], ...]:
    table = tomllib.loads((FOLDER / "intents.toml").read_text(encoding="utf-8"))
    return tuple((cast("Intent", intent), text) for intent, texts in table.items() for text in texts)
