"""Ties the sentences of an answer to the passages that say the same, and looks at the reply once more.

A judge of support reads each sentence, as a reply to the question, beside the few passages nearest to it. What it finds
supported, in full or partly, is cited, numbered by first use; numbers that the model wrote are hints on where to look.
A sentence that no passage says is marked and stays, and an answer of such sentences alone counts as unknown.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from threading import Event

from assistant.errors import ModelError, SequiturError
from assistant.flow.timing import timed
from assistant.grounding.citations import with_citations
from assistant.grounding.claims import claims, segments
from assistant.grounding.evidence import hinted, nearest_evidence
from assistant.grounding.support import Finding, judge_sentences
from assistant.judges.addresses import addressed
from assistant.protocols import Parts
from assistant.strategies.shared.strategy import strategy_named
from assistant.text.markers import Marked, read
from assistant.text.sentences import quote
from assistant.types import Passage, Span, Turn

_LOG = logging.getLogger(__name__)


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Cites the answer and looks at it again, as the two steps of a turn do; for answers that come after the first."""
    if is_due(turn, parts):
        for turn in timed("citations", citations, turn, parts, stop):
            yield turn
    if is_looked_at_again(turn, parts):
        yield from timed("addresses", second_look, turn, parts, stop)


def is_due(turn: Turn, parts: Parts) -> bool:  # noqa: ARG001 - asked as all steps are
    """Whether the answer claims to know from passages: only such a chat answer is cited."""
    answer = turn.answer
    if answer is None or turn.choices.form != "chat":
        return False
    return answer.outcome == "written" and answer.origin != "model" and not answer.unknown


def is_looked_at_again(turn: Turn, parts: Parts) -> bool:
    """Whether it has found places that say so, and a second look is set."""
    return is_due(turn, parts) and bool(turn.citations) and parts.settings.turn.addresses_threshold > 0


def citations(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `sentences` and `citations` to an answer that claims to know; without support it becomes unknown.

    Passages that only the strategy knows of are among `passages` where they are cited. Where a judge can't be used,
    nothing is checked, and an event says why.
    """
    if turn.answer is None or stop.is_set():
        yield turn
        return
    more = strategy_named(turn.choices.strategy).sources(turn)
    passages = (*turn.passages, *more)
    marked = read(turn.answer.text, most=len(passages))
    spans = segments(marked.text)
    try:
        found = _found(marked, spans, passages, turn, parts, stop)
    except Exception as error:  # noqa: BLE001 - a model may fail in any way, and the answer is there without it
        yield with_citations(turn.with_event("not_checked", _why(error)), marked.text, spans, [None] * len(spans))
        return
    if not stop.is_set():
        turn = with_citations(turn, marked.text, spans, found)
        cited = {one.passage_id for one in turn.citations}
        turn = replace(
            turn,
            passages=(*turn.passages, *(passage for passage in more if passage.id in cited)),
            answer=replace(turn.answer, unknown=not turn.citations) if turn.answer else None,
        )
    yield turn


def second_look(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Makes a cited answer unknown that doesn't answer the question as its sources tell.

    Language model and judge of support look at the reply beside what was cited.
    """
    if turn.answer is None or stop.is_set():
        yield turn
        return
    try:
        passed = addressed(turn, read(turn.answer.text).text, parts, stop)
    except SequiturError as error:
        yield turn.with_event("second_look_failed", error)
        return
    if not passed and not stop.is_set():
        turn = replace(turn.with_event("set_aside"), answer=replace(turn.answer, unknown=True))
    yield turn


def _found(
    marked: Marked, spans: Sequence[Span], passages: Sequence[Passage], turn: Turn, parts: Parts, stop: Event
) -> list[Finding | None]:
    texts = claims([quote(marked.text, span) for span in spans])
    if not any(texts):
        return [None] * len(spans)
    if parts.support is None:
        raise ModelError("no judge is set.")
    evidence = nearest_evidence(texts, passages, [hinted(marked, span, passages) for span in spans], parts.embedder)
    return judge_sentences(texts, evidence, turn, parts.support(parts.llm), stop)


def _why(error: Exception) -> str:
    if isinstance(error, SequiturError):
        return str(error)
    _LOG.error("the judge of support failed", exc_info=error)
    return f"the judge failed ({error})."
