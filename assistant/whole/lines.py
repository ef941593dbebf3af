"""Lines of a result and what they rest on: by the same alignment and the same judge that cite any other reply."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Event

from assistant.errors import ModelError
from assistant.grounding.citations import with_citations
from assistant.grounding.claims import is_claim, segments
from assistant.grounding.evidence import Evidence, nearest_evidence
from assistant.grounding.support import Finding, judge_sentences
from assistant.protocols import Parts
from assistant.text.overlap import coverage, says_most_of
from assistant.text.sentences import ends_a_sentence, quote
from assistant.types import Answer, Passage, Span, Turn, Verdict

# Markers have two digits.
MAX_SOURCES = 99
CERTAIN = Verdict(1.0, "supported")
_ITEM = re.compile(r"^(?:[-*•]|\d{1,2}[.)])\s+")  # with which a list's items begin
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a result, and what it rests on; a heading rests on nothing."""

    text: str
    finding: Finding | None = None

    @property
    def passages(self) -> tuple[Passage, ...]:
        """Those that it rests on."""
        return self.finding.passages if self.finding else ()


def quoted_line(text: str, passage: Passage, span: Span) -> Line:
    """A line that says nothing but what stands at this place."""
    return Line(text, Finding((Evidence(passage, span, 1.0),), CERTAIN))


def supported_sentences(
    text: str, passages: Sequence[Passage], turn: Turn, parts: Parts, stop: Event
) -> tuple[list[Line], int]:
    """The sentences of a text that passages say, each as a line, and how many others claim something.

    What is no whole sentence, such as an item of a list of names, is neither.

    Raises:
        ModelError: there is no judge, or it can't be used.
    """
    items = [_ITEM.sub("", quote(text, span)) for span in segments(text)]
    texts = [item if is_claim(item) and ends_a_sentence(item) else "" for item in items]
    findings = _findings(texts, passages, turn, parts, stop)
    lines = [
        Line(sentence, finding)
        for sentence, finding in zip(texts, findings, strict=True)
        if finding and _has_support(finding)
    ]
    return lines, sum(map(bool, texts)) - len(lines)


def with_further_sources(
    lines: Sequence[Line], passages: Sequence[Passage], turn: Turn, parts: Parts, stop: Event
) -> list[Line | None]:
    """For each line the same with these passages as further sources, where they say all of it; None where they don't.

    A judge takes one matter for another that is like it, so they must have all of the line's words, too.

    Raises:
        ModelError: there is no judge, or it can't be used.
    """
    findings = _findings([line.text for line in lines], passages, turn, parts, stop)
    return [_with_further(line, further_finding) for line, further_finding in zip(lines, findings, strict=True)]


def _with_further(line: Line, further_finding: Finding | None) -> Line | None:
    if line.finding is None or further_finding is None or further_finding.verdict.state != "supported":
        return None
    if coverage(line.text, " ".join(passage.titled for passage in further_finding.passages)) < 1:
        return None
    return replace(line, finding=replace(line.finding, further=(*line.finding.further, further_finding)))


def _findings(
    texts: Sequence[str], passages: Sequence[Passage], turn: Turn, parts: Parts, stop: Event
) -> list[Finding | None]:
    """What the judge says of each text, beside the passages that are nearest to it."""
    if parts.support is None:
        raise ModelError("Work on whole documents needs a judge of support, which cites it; set turn.support.")
    evidence = nearest_evidence(texts, passages, [frozenset[str]()] * len(texts), parts.embedder)
    return judge_sentences(texts, evidence, turn, parts.support(parts.llm), stop)


def without_repetitions(lines: Sequence[Line], earlier_lines: Sequence[Line]) -> list[Line]:
    """Those that no line before them says, with all their numbers."""
    new_lines: list[Line] = []
    for line in lines:
        if not any(_says_all(earlier_line.text, line.text) for earlier_line in (*earlier_lines, *new_lines)):
            new_lines.append(line)
    return new_lines


def with_answer_lines(turn: Turn, lines: Sequence[Line]) -> Turn:
    """The turn with these lines for an answer: headings and a list, with markers behind what rests on passages.

    Lines for whose sources there are no numbers left are counted beneath.
    """
    text, spans, findings, shown_lines = "", list[Span](), list[Finding | None](), _within_source_limit(lines)
    for line in shown_lines:
        text += ("\n" if text else "") + ("- " if line.finding else "\n**" if text else "**")
        spans.append(Span(len(text), len(text) + len(line.text)))
        findings.append(line.finding)
        text += line.text if line.finding else f"{line.text}**\n"
    text += not_shown_note(len(lines) - len(shown_lines))
    return with_citations(replace(turn, answer=Answer(text)), text, spans, findings)


def not_shown_note(count: int) -> str:
    """The note beneath a result about so many lines that have no place in it; "" for none."""
    return f"\n\n{count:,} more found, not shown: a reply numbers {MAX_SOURCES} sources at most." if count else ""


def _says_all(text: str, other: str) -> bool:
    """Whether the text says the other, which may be shorter, with all its numbers."""
    return says_most_of(text, other) and set(_NUMBER.findall(other)) <= set(_NUMBER.findall(text))


def _has_support(finding: Finding) -> bool:
    return finding.verdict.state != "not"


def _within_source_limit(lines: Sequence[Line]) -> list[Line]:
    """As many lines as there are numbers for their sources."""
    numbered, shown_lines = set[str](), list[Line]()
    for line in lines:
        source_ids = numbered | {passage.id for passage in line.passages}
        if len(source_ids) <= MAX_SOURCES:
            numbered = source_ids
            shown_lines.append(line)
    return shown_lines
