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
from assistant.whole.lines import Line, laid_out, said_too
from assistant.whole.summary import read_through

# From this cosine on, two lines speak of the same matter.
SAME_MATTER = 0.6
BOTH, ONLY = "In both", "Only in {}"


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `answer`: the lines that both have, in pairs, then those of one, as it grows."""
    lines: list[Line] = []
    for turn, more in read_through(turn, parts, stop):
        lines += more
        yield turn
    if turn.work and lines:
        yield laid_out(replace(turn, wait=None), _sorted(lines, turn, parts, stop))


def _sorted(lines: list[Line], turn: Turn, parts: Parts, stop: Event) -> list[Line]:
    documents, names = (turn.work.documents, turn.work.names) if turn.work else ((), ())
    first, second = ([one for one in lines if document_of(one.passages[0].id) == document] for document in documents)
    pairs = _pairs(first, second, parts)
    paired = {id(line) for pair in pairs for line in pair}
    found = [line for pair in pairs for line in pair]
    sides = [[line for line in side if id(line) not in paired] for side in (first, second)]
    for n, other in enumerate(reversed(documents)):
        passages = [one for one in turn.passages if document_of(one.id) == other]
        too = said_too(sides[n], passages, turn, parts, stop)
        found += filter(None, too)
        sides[n] = [line for line, both in zip(sides[n], too, strict=True) if not both]
    return [
        *([Line(BOTH), *found] if found else []),
        *(line for name, side in zip(names, sides, strict=True) if side for line in (Line(ONLY.format(name)), *side)),
    ]


def _pairs(first: list[Line], second: list[Line], parts: Parts) -> list[tuple[Line, Line]]:
    """Each the other's nearest, and near."""
    if not first or not second:
        return []
    vectors = parts.embedder.encode([line.text for line in (*first, *second)])
    near = vectors[: len(first)] @ vectors[len(first) :].T
    best = [(n, int(row.argmax())) for n, row in enumerate(near)]
    return [(first[n], second[m]) for n, m in best if near[:, m].argmax() == n and near[n, m] >= SAME_MATTER]
