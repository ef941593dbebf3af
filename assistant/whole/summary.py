"""A summary: what each section says, and in front what all of that comes to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from threading import Event

from assistant.library.passages import document_of
from assistant.prompting.budget import fit
from assistant.prompting.render import render
from assistant.protocols import Parts
from assistant.text.sentences import finished_text
from assistant.types import Options, Passage, Turn, Wait
from assistant.whole.lines import Line, supported_sentences, with_answer_lines, without_repetitions
from assistant.whole.plan import SECTION_WORDS, readable_sections

MAX_TOKENS = 100
# Of fewer lines, nothing in front says what they come to.
_MIN_LINES = 4
SHORT, PARTS = "In short", "Section by section"


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `answer`, with its sentences and citations, as it grows; what no passage says is left out and counted."""
    lines: list[Line] = []
    for turn, new_lines in read_through(turn, parts, stop):
        lines += new_lines
        yield turn
    if len(lines) >= _MIN_LINES and not stop.is_set():
        front_lines, dropped = _in_short(lines, turn, parts, stop)
        turn = _with_left(turn, dropped, stop)
        if front_lines := without_repetitions(front_lines, ()):
            remaining_lines = without_repetitions(lines, front_lines)
            yield with_answer_lines(
                turn, [Line(SHORT), *front_lines, *([Line(PARTS), *remaining_lines] if remaining_lines else [])]
            )


def read_through(turn: Turn, parts: Parts, stop: Event) -> Iterator[tuple[Turn, list[Line]]]:
    """Each section's lines, with the turn as it is then: the lines so far for an answer, and how far the work is.

    Raises:
        ModelError: there is no judge, or it can't be used.
        LibraryError: there are too many passages.
    """
    lines: list[Line] = []
    done, total = 0, len(turn.passages)
    for section in readable_sections(turn.passages, SECTION_WORDS, "whole/section", parts.llm, MAX_TOKENS):
        if stop.is_set():
            return
        turn = replace(turn, wait=Wait("passages", done=done, total=total))
        yield turn, []
        supported_lines, dropped = supported_sentences(_note(section, parts, stop), section, turn, parts, stop)
        new_lines = without_repetitions(supported_lines, [line for line in lines if _is_of(line, section)])
        done, lines = done + len(section), [*lines, *new_lines]
        turn = _with_left(turn, dropped, stop)
        turn = with_answer_lines(turn, lines) if lines else turn
        yield replace(turn, wait=Wait("passages", done=done, total=total)), new_lines


def _with_left(turn: Turn, dropped: int, stop: Event) -> Turn:
    """The turn with so many more lines left out; after a stop none is counted, since not all were judged."""
    return turn if stop.is_set() else replace(turn, left_lines=turn.left_lines + dropped)


def _is_of(line: Line, section: Sequence[Passage]) -> bool:
    """Whether a line is from the document of a section."""
    return document_of(line.passages[0].id) == document_of(section[0].id)


def _note(section: Sequence[Passage], parts: Parts, stop: Event) -> str:
    """What the model writes of a section."""
    messages, _ = fit("whole/section", parts.llm, MAX_TOKENS, passages=section)
    return finished_text(parts.llm.complete([messages], Options(max_tokens=MAX_TOKENS), stop)[0], "chat")


def _in_short(lines: Sequence[Line], turn: Turn, parts: Parts, stop: Event) -> tuple[list[Line], int]:
    """What all lines come to, and how many sentences of that no passage says."""
    texts = _condensed([line.text for line in lines], parts, stop)
    cited = list({passage.id: passage for passage in chain.from_iterable(line.passages for line in lines)}.values())
    return supported_sentences(_short_summary(texts, parts, stop), cited, turn, parts, stop)


def _condensed(texts: list[str], parts: Parts, stop: Event) -> list[str]:
    """Notes that fit into one prompt: while there are too many, halves of them are summed up."""
    fits = parts.llm.count(render("whole/short", notes=tuple(texts))) <= parts.llm.context - MAX_TOKENS
    if fits or len(texts) < 2 * _MIN_LINES or stop.is_set():
        return texts
    middle = len(texts) // 2
    return [_short_summary(_condensed(half, parts, stop), parts, stop) for half in (texts[:middle], texts[middle:])]


def _short_summary(texts: Sequence[str], parts: Parts, stop: Event) -> str:
    messages, _ = fit("whole/short", parts.llm, MAX_TOKENS, notes=tuple(texts))
    return finished_text(parts.llm.complete([messages], Options(max_tokens=MAX_TOKENS), stop)[0], "chat")
