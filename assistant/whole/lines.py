"""Lines of a result and what they rest on: by the same alignment and the same judge that cite any other reply."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Event

from assistant.errors import ModelError
from assistant.grounding.citations import with_citations
from assistant.grounding.claims import claims, segments
from assistant.grounding.evidence import Evidence, nearest_evidence
from assistant.grounding.support import Finding, judge_sentences
from assistant.protocols import Parts
from assistant.text.sentences import quote
from assistant.types import Answer, Passage, Span, Turn, Verdict

# Markers have two digits.
SOURCES_MOST = 99
CERTAIN = Verdict(1.0, "supported")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a result, and what it rests on; a heading rests on nothing."""

    text: str
    finding: Finding | None = None

    @property
    def passages(self) -> tuple[Passage, ...]:
        """Those that it rests on."""
        return self.finding.passages if self.finding else ()


def quoted(text: str, passage: Passage, span: Span) -> Line:
    """A line that says nothing but what stands at this place."""
    return Line(text, Finding((Evidence(passage, span, 1.0),), CERTAIN))


def supported(text: str, passages: Sequence[Passage], turn: Turn, parts: Parts, stop: Event) -> tuple[list[Line], int]:
    """The sentences of a text that passages say, each as a line, and how many others claim something.

    Raises:
        ModelError: there is no judge, or it can't be used.
    """
    if parts.support is None:
        raise ModelError("Work on whole documents needs a judge of support, which cites it; set turn.support.")
    texts = claims([quote(text, span) for span in segments(text)])
    evidence = nearest_evidence(texts, passages, [frozenset[str]()] * len(texts), parts.embedder)
    found = judge_sentences(texts, evidence, turn, parts.support(parts.llm), stop)
    lines = [Line(one, finding) for one, finding in zip(texts, found, strict=True) if finding and _stands(finding)]
    return lines, sum(map(bool, texts)) - len(lines)


def laid_out(turn: Turn, lines: Sequence[Line]) -> Turn:
    """The turn with these lines for an answer: headings and a list, with markers behind what rests on passages."""
    text, spans, found = "", list[Span](), list[Finding | None]()
    for line in _within(lines):
        text += ("\n" if text else "") + ("- " if line.finding else "\n**" if text else "**")
        spans.append(Span(len(text), len(text) + len(line.text)))
        found.append(line.finding)
        text += line.text if line.finding else f"{line.text}**\n"
    return with_citations(replace(turn, answer=Answer(text)), text, spans, found)


def _stands(finding: Finding) -> bool:
    return finding.verdict.state != "not"


def _within(lines: Sequence[Line]) -> list[Line]:
    """As many lines as there are numbers for their sources."""
    numbered, kept = set[str](), list[Line]()
    for line in lines:
        more = numbered | {passage.id for passage in line.passages}
        if len(more) <= SOURCES_MOST:
            numbered = more
            kept.append(line)
    return kept
