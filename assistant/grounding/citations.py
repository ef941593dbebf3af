"""Writes the citation markers into a reply, and records where in a passage each of them points."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from assistant.grounding.support import Finding
from assistant.text.markers import BLOCK
from assistant.text.sentences import quote
from assistant.types import Answer, Citation, Sentence, Span, Turn

_LAST_BAR = re.compile(r"\s*\|$")


def with_citations(turn: Turn, text: str, spans: Sequence[Span], findings: Sequence[Finding | None]) -> Turn:
    """The turn with markers after those sentences of its answer that have support.

    Markers of a table row go into its last cell, since text after the last bar is not shown; those of a code block go
    below it.
    """
    numbers: dict[str, int] = {}
    citations: list[Citation] = []
    pieces: list[str] = []
    marked_sentences: list[Sentence] = []
    end = 0
    for span, finding in zip(spans, findings, strict=True):
        sentence = quote(text, span)
        sentence_citations = _citations(finding, sentence, numbers) if finding else []
        citations.extend(sentence_citations)
        marked_sentences.append(_sentence(sentence, finding, sentence_citations))
        start, end = end, span.start + len(before_marker(sentence))
        markers = "".join(f" [{citation.n}]" for citation in sentence_citations)
        pieces.append(text[start:end] + (_paragraph(markers) if BLOCK.match(sentence) else markers))
    answer = replace(turn.answer or Answer(""), text="".join(pieces) + text[end:])
    return replace(turn, answer=answer, sentences=tuple(marked_sentences), citations=tuple(citations))


def before_marker(sentence: str) -> str:
    """The part of a sentence that comes before its markers: of a table row all but the last bar."""
    return _LAST_BAR.sub("", sentence)


def _sentence(text: str, finding: Finding | None, citations: Sequence[Citation]) -> Sentence:
    """The sentence with its state; code without support counts as unchecked, since it claims nothing."""
    if finding is None or (BLOCK.match(text) and not citations):
        return Sentence(text, "unchecked", finding.verdict.probability if finding else None)
    verdict = finding.verdict
    return Sentence(text, verdict.state, verdict.probability, tuple(citation.n for citation in citations))


def _paragraph(markers: str) -> str:
    """The markers as a paragraph of their own."""
    return f"\n\n{markers.strip()}\n" if markers else ""


def _citations(finding: Finding, sentence: str, numbers: dict[str, int]) -> list[Citation]:
    """The citations of a sentence; passages that have no number yet get the next one in `numbers`."""
    if finding.verdict.state == "not":
        return []
    return [
        Citation(
            n=numbers.setdefault(evidence.passage.id, len(numbers) + 1),
            passage_id=evidence.passage.id,
            start=evidence.span.start,
            end=evidence.span.end,
            sentence=sentence,
            quote=quote(evidence.passage.text, evidence.span),
            support=cited_finding.verdict.probability,
            partly=cited_finding.verdict.state == "partly",
            further=position > 0,
        )
        for position, cited_finding in enumerate((finding, *finding.further))
        for evidence in cited_finding.evidence
    ]
