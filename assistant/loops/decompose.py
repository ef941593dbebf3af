"""Search for the question, read, and search for what is still missing: two rounds at most.

A question whose answer is found in two steps ("Where was the director of ... born?") names only the first. The model
reads the best passages and writes the one query that is still needed, or that none is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.flow.timing import timed
from assistant.prompting.budget import fit
from assistant.protocols import Parts
from assistant.retrieve.search import look, sought
from assistant.types import Options, Query, Turn

TITLE = "In two steps"
SUMMARY = "Searches with your question, reads, and searches once more for what is still missing."
# Of the best passages as many are read; a query is short.
_READ, _ROOM = 3, 40
_NONE = "none"


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `queries` and `passages`: those of the question alone where nothing is missing."""
    question = Query("question", sought(turn))
    turn = look(turn, parts, question)
    yield turn
    for turn in timed("missing", write, turn, parts, stop):
        yield turn
    if not stop.is_set() and len(turn.queries) > 1:
        yield look(turn, parts, question, *turn.queries[1:])


def write(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds to `queries` what is still to be searched for, "missing"; nothing where that is the question once more."""
    passages = turn.passages[:_READ]
    messages, cuts = fit("decompose", parts.llm, _ROOM, passages=passages, question=turn.question)
    [completion] = parts.llm.complete([messages], Options(max_tokens=_ROOM, stop=("\n",)), stop)
    text = completion.text.strip().strip('"')
    is_needed = text and text.casefold().strip(" .") not in {_NONE, turn.question.casefold().strip(" .?")}
    queries = (*turn.queries, Query("missing", text)) if is_needed else turn.queries
    yield replace(turn, queries=queries, cuts=turn.cuts + cuts)
