"""Quotes the sentence of the passages that answers the question, where the model's own words were no answer.

A small model misreads what a passage says; the passage itself doesn't. The sentences are ranked by the relevance
estimator. Whether the best one answers is told by its estimate and by the judge of support, which reads the sentence by
itself as a reply to the question: together they tell it better than either, and better than a second look of the
language model (docs/results/support.md). What is quoted needs no other check: it is what the passage says.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.judges.addresses import together
from assistant.protocols import Parts
from assistant.steps import cite
from assistant.steps.answer import is_from_passages
from assistant.strategies.shared.strategy import is_unanswered
from assistant.text.sentences import quote, sentences
from assistant.types import Answer, Claim, Passage, Turn

_LOG = logging.getLogger(__name__)


def is_due(turn: Turn, parts: Parts) -> bool:
    """Whether a chat turn was to be answered from its passages, and there is no answer yet that stands."""
    return is_unanswered(turn) and turn.choices.form == "chat" and is_from_passages(turn, parts)


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds a quotation as the `answer`, where one sentence is likelier than `turn.quote_threshold` to be one."""
    sentence = _best(turn, parts, stop)
    if not sentence or stop.is_set():
        yield turn
        return
    asked = replace(turn, answer=Answer(sentence), sentences=(), citations=())
    *_, quoted = cite.citations(asked, parts, stop)
    yield quoted.with_event("quoted") if quoted.citations and not stop.is_set() else turn


def _best(turn: Turn, parts: Parts, stop: Event) -> str:
    """The sentence that the estimator finds most relevant; "" where it isn't likely to answer, or nobody can tell."""
    if parts.estimator is None or stop.is_set():
        return ""
    found = [
        replace(passage, id=f"{passage.id} {n}", text=quote(passage.text, span))
        for passage in turn.shown
        for n, span in enumerate(sentences(passage.text))
    ]
    try:
        estimates = parts.estimator(parts.llm).estimate(turn.question, found, stop)
        best = max(zip(estimates, found, strict=True), key=lambda one: one[0].score, default=None)
        if best is None or stop.is_set():
            return ""
        likely = together(best[0].confidence, *_read(turn.question, best[1], parts, stop))
    except Exception:  # noqa: BLE001 - a model may fail in any way, and the turn goes on without this one
        _LOG.exception("no sentence could be looked for")
        return ""
    return best[1].text if likely >= parts.settings.turn.quote_threshold else ""


def _read(question: str, sentence: Passage, parts: Parts, stop: Event) -> list[float]:
    """What the judge of support says of the sentence as a reply, with nothing beside it; nothing without a judge."""
    if parts.support is None:
        return []
    [verdict] = parts.support(parts.llm).judge([Claim(sentence.text, (sentence,), question)], stop)
    return [verdict.probability]
