"""The reply written anew with its markers, and each marker's place in a passage."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from assistant.grounding.claims import BLOCK
from assistant.grounding.support import Finding
from assistant.text.sentences import quote
from assistant.types import Answer, Citation, Sentence, Span, Turn

_LAST_BAR = re.compile(r"\s*\|$")


def with_citations(turn: Turn, text: str, spans: Sequence[Span], found: Sequence[Finding | None]) -> Turn:
    """The turn with its answer written anew: markers behind the sentences that have support.

    Those of a table's row stand inside its last cell, since what follows the last bar is not shown, and those of a
    block of code beneath it.
    """
    numbers: dict[str, int] = {}
    cited: list[Citation] = []
    pieces: list[str] = []
    result: list[Sentence] = []
    last = 0
    for span, finding in zip(spans, found, strict=True):
        sentence = quote(text, span)
        here = _citations(finding, sentence, numbers) if finding else []
        cited.extend(here)
        result.append(_sentence(sentence, finding, here))
        last, before = span.start + len(_LAST_BAR.sub("", sentence)), last
        markers = "".join(f" [{citation.n}]" for citation in here)
        pieces.append(text[before:last] + (_beneath(markers) if BLOCK.match(sentence) else markers))
    answer = replace(turn.answer or Answer(""), text="".join(pieces) + text[last:])
    return replace(turn, answer=answer, sentences=tuple(result), citations=tuple(cited))


def _sentence(text: str, finding: Finding | None, cited: Sequence[Citation]) -> Sentence:
    """The sentence as it was found; code that no passage says is no claim."""
    if finding is None or (BLOCK.match(text) and not cited):
        return Sentence(text, "unchecked", finding.verdict.probability if finding else None)
    verdict = finding.verdict
    return Sentence(text, verdict.state, verdict.probability, tuple(one.n for one in cited))


def _beneath(markers: str) -> str:
    """The markers as a paragraph of their own."""
    return f"\n\n{markers.strip()}\n" if markers else ""


def _citations(finding: Finding, sentence: str, numbers: dict[str, int]) -> list[Citation]:
    """What a sentence is cited with; `numbers` grows by the passages that have none yet."""
    if finding.verdict.state == "not":
        return []
    return [
        Citation(
            n=numbers.setdefault(one.passage.id, len(numbers) + 1),
            passage_id=one.passage.id,
            start=one.span.start,
            end=one.span.end,
            sentence=sentence,
            quote=quote(one.passage.text, one.span),
            support=found.verdict.probability,
            partly=found.verdict.state == "partly",
            further=place > 0,
        )
        for place, found in enumerate((finding, *finding.further))
        for one in found.evidence
    ]
