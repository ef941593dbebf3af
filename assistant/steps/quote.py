"""Quotes the sentence of the passages that answers the question, where the model's own words were no answer.

A small model misreads what a passage says; the passage itself doesn't. The sentences are ranked by the relevance
estimator, and the best is a reply only if it passes the same checks as any other.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.protocols import Parts
from assistant.steps import cite
from assistant.steps.answer import is_from_passages
from assistant.text.sentences import quote, sentences
from assistant.types import Answer, Turn

_LOG = logging.getLogger(__name__)


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds a quotation as the `answer` of a chat turn that its passages gave none; else leaves it as it is."""
    sentence = _best(turn, parts, stop) if _wanted(turn, parts) and not stop.is_set() else ""
    if not sentence:
        yield turn
        return
    *_, quoted = cite.run(replace(turn, answer=Answer(sentence), sentences=(), citations=()), parts, stop)
    found = quoted.answer is not None and not quoted.answer.unknown and not stop.is_set()
    yield quoted.with_event("quoted") if found else turn


def _wanted(turn: Turn, parts: Parts) -> bool:
    """Whether a chat turn was to be answered from its passages, and wasn't."""
    unknown = turn.answer is not None and turn.answer.unknown
    return unknown and turn.choices.form == "chat" and is_from_passages(turn, parts)


def _best(turn: Turn, parts: Parts, stop: Event) -> str:
    """The sentence that the estimator finds most relevant; "" where there is none, or nobody to ask."""
    if parts.estimator is None:
        return ""
    found = [
        replace(passage, id=f"{passage.id} {n}", text=quote(passage.text, span))
        for passage in turn.shown
        for n, span in enumerate(sentences(passage.text))
    ]
    try:
        scores = parts.estimator(parts.llm).estimate(turn.question, found, stop)
    except Exception:  # noqa: BLE001 - a model may fail in any way, and the turn goes on without this one
        _LOG.exception("the relevance estimator failed")
        return ""
    best = max(zip(scores, found, strict=True), key=lambda one: one[0].score, default=None)
    return best[1].text if best else ""
