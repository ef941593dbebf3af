"""Two documents side by side: what both speak of, and what only one of them does.

What stands under the name of one alone was looked for in the other, too: its lines are not all that it says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.library.passages import document_of
from assistant.protocols import Parts
from assistant.types import Turn
from assistant.whole.lines import Line, with_answer_lines, with_further_sources
from assistant.whole.pairs import nearest_pairs
from assistant.whole.summary import read_through

# From this cosine on, two lines speak of the same matter.
SAME_MATTER = 0.6
BOTH, ONLY = "In both", "Only in {}"


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `answer`: the lines that both have, in pairs, then those of one, as it grows."""
    lines: list[Line] = []
    for turn, new_lines in read_through(turn, parts, stop):
        lines += new_lines
        yield turn
    compared_lines = _compared_lines(lines, turn, parts, stop) if lines and not stop.is_set() else []
    # of what was not read or judged to its end, nobody knows that only one says it
    if compared_lines and not stop.is_set():
        yield with_answer_lines(replace(turn, wait=None), compared_lines)


def _compared_lines(lines: list[Line], turn: Turn, parts: Parts, stop: Event) -> list[Line]:
    documents, names = (turn.work.documents, turn.work.names) if turn.work else ((), ())
    first, second = ([line for line in lines if document_of(line.passages[0].id) == document] for document in documents)
    first_texts, second_texts = ([line.text for line in side] for side in (first, second))
    nearest = nearest_pairs(first_texts, second_texts, SAME_MATTER, parts.embedder)
    pairs = [(first[n], second[m]) for n, m in nearest]
    paired = {id(line) for pair in pairs for line in pair}
    common_lines = [line for pair in pairs for line in pair]
    sides = [[line for line in side if id(line) not in paired] for side in (first, second)]
    for n, document in enumerate(reversed(documents)):
        passages = [passage for passage in turn.passages if document_of(passage.id) == document]
        further_lines = with_further_sources(sides[n], passages, turn, parts, stop)
        common_lines += filter(None, further_lines)
        sides[n] = [line for line, further_line in zip(sides[n], further_lines, strict=True) if not further_line]
    return [
        *([Line(BOTH), *common_lines] if common_lines else []),
        *(line for name, side in zip(names, sides, strict=True) if side for line in (Line(ONLY.format(name)), *side)),
    ]
