"""Does a piece of work on whole documents, whichever it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from threading import Event

from assistant.errors import LibraryError
from assistant.protocols import Parts, Step
from assistant.types import Answer, Turn, Work, WorkKind
from assistant.whole import changes, compare, summary, table
from assistant.whole.plan import check

TASKS: Mapping[WorkKind, Step] = {
    "summary": summary.run,
    "compare": compare.run,
    "changes": changes.run,
    "table": table.run,
}
TITLES: Mapping[WorkKind, str] = {
    "summary": "Summarise {}",
    "compare": "Compare {}",
    "changes": "What changed from {}",
    "table": "Make a table of {}",
}
_BETWEEN: Mapping[WorkKind, str] = {"summary": "", "compare": " and ", "changes": " to ", "table": ""}
NOTHING_SUPPORTED = "Nothing that could be said of it stands in its passages."


def title(work: Work) -> str:
    """What the work is, as the message that it stands for: "Summarise oats.pdf"."""
    text = TITLES[work.task].format(_BETWEEN[work.task].join(work.names))
    return f"{text}: {', '.join(work.columns)}" if work.columns else text


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `answer`, its sentences and citations, from the turn's passages, which are all of its documents'.

    What was done before `stop` is kept. Lines that no passage says are left out, and an event counts them.

    Raises:
        LibraryError: the turn has no work, or the work can't be begun.
        ModelError: there is no judge of support, or it can't be used.
    """
    if turn.work is None:
        raise LibraryError("Name the documents to work on.")
    check(turn.work)
    for turn in TASKS[turn.work.task](turn, parts, stop):
        yield turn
    turn = replace(turn, wait=None)
    if turn.left_lines:
        turn = turn.with_event("lines_left", turn.left_lines)
    yield turn if turn.answer or stop.is_set() else replace(turn, answer=Answer(NOTHING_SUPPORTED, unknown=True))
