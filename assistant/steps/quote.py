"""Quotes the sentence of the passages that answers the question, where the model's own words were no answer.

A small model misreads what a passage says; the passage itself doesn't. The sentences are ranked by the relevance
estimator, and the best is a reply only if it passes the same checks as any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant import citations
from assistant.errors import SequiturError
from assistant.text import quote, sentences
from assistant.types import Answer, Parts, Turn

QUOTED = "No reply in the model's own words passed, so a sentence that answers is quoted."


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds a quotation as the `answer` of a chat turn that has passages and no answer; else leaves it as it is."""
    answer = turn.answer
    if answer is None or not answer.unknown or answer.origin == "model" or turn.choices.form != "chat" or stop.is_set():
        yield turn
        return
    sentence = _best(turn, parts, stop)
    if not sentence:
        yield turn
        return
    *_, quoted = citations.settle(turn.grow(answer=Answer(sentence), sentences=(), citations=()), parts, stop)
    found = quoted.answer is not None and not quoted.answer.unknown and not stop.is_set()
    yield quoted.told(QUOTED) if found else turn


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
    except SequiturError:
        return ""
    best = max(zip(scores, found, strict=True), key=lambda one: one[0].score, default=None)
    return best[1].text if best else ""
