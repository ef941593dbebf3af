"""A table of what a document tells: read section by section, with every cell as it stands in its passage."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from threading import Event

from assistant.grounding.citations import with_citations
from assistant.grounding.evidence import Evidence
from assistant.grounding.support import Finding
from assistant.prompting.budget import fit
from assistant.protocols import Parts
from assistant.text.overlap import coverage
from assistant.text.sentences import clean, normalise, sentences
from assistant.types import Answer, Options, Passage, Span, Turn, Wait
from assistant.whole.lines import CERTAIN, MAX_SOURCES, Line, not_shown_note
from assistant.whole.plan import TABLE_WORDS, readable_sections

_MAX_TOKENS = 400
ROWS_OF_SECTION = 20
# A negative number has its sign; signs of money and shares are words of their own, which a cell may lack.
_WORD = re.compile(r"(?:(?<!\w)-(?=\d))?\w+(?:[.,:]\w+)*|[$€£¥%]")
_MINUS = str.maketrans("−–", "--")


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `answer`, a table in Markdown, as it grows; rows that no passage holds are left out and counted."""
    columns = turn.work.columns if turn.work else ()
    rows: dict[str, Line] = {}
    done, total = 0, len(turn.passages)
    fitting = readable_sections(
        turn.passages, TABLE_WORDS, "whole/rows", parts.llm, _MAX_TOKENS, columns=tuple(columns)
    )
    for section in fitting:
        if stop.is_set():
            return
        yield replace(turn, wait=Wait("passages", done=done, total=total))
        for cells in _rows(section, columns, parts, stop):
            line = _line(_without_names(cells, columns), section)
            if line is None:
                turn = replace(turn, left_lines=turn.left_lines + 1)
            else:
                rows.setdefault(line.text, line)
        done += len(section)
        yield replace(_laid_out(turn, columns, list(rows.values())), wait=Wait("passages", done=done, total=total))


def _rows(section: Sequence[Passage], columns: Sequence[str], parts: Parts, stop: Event) -> Iterator[list[str]]:
    """What the model finds in a section: a row of cells each, as many as there are columns."""
    messages, _ = fit("whole/rows", parts.llm, _MAX_TOKENS, passages=section, columns=tuple(columns))
    row = {"type": "array", "items": {"type": "string"}, "minItems": len(columns), "maxItems": len(columns)}
    schema = {
        "type": "object",
        "properties": {"rows": {"type": "array", "items": row, "maxItems": ROWS_OF_SECTION}},
        "required": ["rows"],
    }
    text = parts.llm.complete([messages], Options(max_tokens=_MAX_TOKENS, schema=json.dumps(schema)), stop)[0].text
    for cells in _complete_rows(text):
        if len(cells) == len(columns) and any(cells):
            yield cells


def _complete_rows(text: str) -> list[list[str]]:
    """The rows of a JSON text, without those after which it breaks off.

    A model that no schema constrains may put a sentence or a fence before it.
    """
    text = text[max(text.find("{"), 0) :]
    ends = reversed([match.end() for match in re.finditer(r"\]", text)])
    for candidate in (text, *(text[:end] + "]}" for end in ends)):
        try:
            parsed = json.loads(candidate)
        except ValueError:
            continue
        rows = parsed.get("rows", []) if isinstance(parsed, dict) else []
        return [[clean(str(cell)) for cell in row] for row in rows if isinstance(row, list)]
    return []


def _without_names(cells: Sequence[str], columns: Sequence[str]) -> list[str]:
    """The cells; one that only repeats a column's name is empty."""
    names = {normalise(name) for name in columns}
    return ["" if normalise(cell) in names else cell for cell in cells]


def _line(cells: Sequence[str], section: Sequence[Passage]) -> Line | None:
    """The row, with the sentence of the section that has most of it.

    None where no passage has all its cells as they stand, or where it tells nothing of what it names.
    """
    row_text = " ".join(cells)
    matching = [
        passage for passage in section if all(_spaced_words(cell) in _spaced_words(passage.titled) for cell in cells)
    ]
    if not matching or sum(map(bool, cells)) < min(2, len(cells)):
        return None
    candidates = [(passage, span) for passage in matching for span in sentences(passage.text)]
    passage, span = max(
        candidates, key=lambda candidate: coverage(row_text, candidate[0].text[candidate[1].start : candidate[1].end])
    )
    row = " | ".join(cell.replace("|", "/").replace("\n", " ") for cell in cells)
    return Line(f"| {row} |", Finding((Evidence(passage, span, 1.0),), CERTAIN))


def _spaced_words(text: str) -> str:
    """The words of a text, with a space before and behind each, so that a cell is sought whole."""
    words = " ".join(_WORD.findall(text.casefold().translate(_MINUS)))
    return f" {words} " if words else ""


def _laid_out(turn: Turn, columns: Sequence[str], rows: Sequence[Line]) -> Turn:
    text = f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}"
    spans, findings = list[Span](), list[Finding | None]()
    for line in rows[:MAX_SOURCES]:
        text += "\n"
        spans.append(Span(len(text), len(text) + len(line.text)))
        findings.append(line.finding)
        text += line.text
    text += not_shown_note(len(rows[MAX_SOURCES:]))
    return with_citations(replace(turn, answer=Answer(text)), text, spans, findings) if rows else turn
