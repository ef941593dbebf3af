"""Cites the passages that support each sentence of an answer, and then checks the reply as a whole.

A judge of support reads each sentence, as a reply to the question, beside the few passages nearest to it. A sentence
that the judge finds supported, fully or partly, gets citations. Sources are numbered by first use; numbers that the
model wrote only hint at where to look. A sentence without support stays and is marked. An answer in which no sentence
has support becomes unknown.
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
from assistant.judges.addresses import addresses_question
from assistant.protocols import Parts
from assistant.strategies.shared.strategy import strategy_named
from assistant.text.markers import UnmarkedText, extract_markers
from assistant.text.sentences import quote
from assistant.types import Passage, Span, Turn

_LOG = logging.getLogger(__name__)


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Both stages in one, for an answer that replaces an earlier one: cites it, then checks the reply as a whole."""
    if is_due(turn, parts):
        for turn in timed("citations", citations, turn, parts, stop):
            yield turn
    if is_looked_at_again(turn, parts):
        yield from timed("addresses", second_look, turn, parts, stop)


def is_due(turn: Turn, parts: Parts) -> bool:  # noqa: ARG001 - called like all conditions
    """Whether this is a chat answer written from passages and not unknown: only such answers are cited."""
    answer = turn.answer
    if answer is None or turn.choices.form != "chat":
        return False
    return answer.outcome == "written" and not answer.unknown


def is_looked_at_again(turn: Turn, parts: Parts) -> bool:
    """Whether the answer has citations, and the settings ask for a second look."""
    return is_due(turn, parts) and bool(turn.citations) and parts.settings.turn.addresses_threshold > 0


def citations(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `sentences` and `citations`; an answer without any citation becomes unknown.

    Cited passages that only the strategy knew of are added to `passages`. If the judge can't be used, nothing is
    checked, and an event says why.
    """
    if turn.answer is None or stop.is_set():
        yield turn
        return
    strategy_sources = strategy_named(turn.choices.strategy).sources(turn)
    passages = (*turn.passages, *strategy_sources)
    marked = extract_markers(turn.answer.text, max_number=len(passages))
    spans = segments(marked.text)
    try:
        findings = _findings(marked, spans, passages, turn, parts, stop)
    except Exception as error:  # noqa: BLE001 - a model may fail in any way, and the answer is there without it
        yield with_citations(turn.with_event("not_checked", _reason(error)), marked.text, spans, [None] * len(spans))
        return
    if not stop.is_set():
        turn = with_citations(turn, marked.text, spans, findings)
        cited_ids = {citation.passage_id for citation in turn.citations}
        turn = replace(
            turn,
            passages=(*turn.passages, *(passage for passage in strategy_sources if passage.id in cited_ids)),
            answer=replace(turn.answer, unknown=not turn.citations) if turn.answer else None,
        )
    yield turn


def second_look(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds how likely a cited answer really answers the question; if that is too unlikely, the answer becomes unknown.

    The language model and the judge of support both read the reply beside the cited text.
    """
    if turn.answer is None or stop.is_set():
        yield turn
        return
    try:
        verdict = addresses_question(turn, extract_markers(turn.answer.text).text, parts, stop)
    except SequiturError as error:
        yield turn.with_event("second_look_failed", error)
        return
    if stop.is_set():
        yield turn
        return
    passed = verdict.state == "supported"
    answer = replace(turn.answer, unknown=not passed, likely=verdict.probability)
    yield replace(turn if passed else turn.with_event("set_aside"), answer=answer)


def _findings(
    marked: UnmarkedText, spans: Sequence[Span], passages: Sequence[Passage], turn: Turn, parts: Parts, stop: Event
) -> list[Finding | None]:
    texts = claims([quote(marked.text, span) for span in spans])
    if not any(texts):
        return [None] * len(spans)
    if parts.support is None:
        raise ModelError("no judge is set.")
    evidence = nearest_evidence(texts, passages, [hinted(marked, span, passages) for span in spans], parts.embedder)
    return judge_sentences(texts, evidence, turn, parts.support(parts.llm), stop)


def _reason(error: Exception) -> str:
    if isinstance(error, SequiturError):
        return str(error)
    _LOG.error("the judge of support failed", exc_info=error)
    return f"the judge failed ({error})."
