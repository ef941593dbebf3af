"""Search for several aspects of the question at once (Abbasiantaeb et al. 2024, as runs of TREC iKAT 2024 do).

The model writes a few short queries, each about another thing that has to be looked up; their rankings and the
question's own are fused by reciprocal rank.
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

TITLE = "With several short queries"
SUMMARY = "Writes a few short queries, each on another side of your question, and searches with all of them."
MOST = 3
# Tokens for all of them.
_ROOM = 60


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `queries` and `passages`: those of the question at first, so that there are sources to look at."""
    question = Query("question", sought(turn))
    turn = look(turn, parts, question)
    yield turn
    for turn in timed("aspects", write, turn, parts, stop):
        yield turn
    if not stop.is_set():
        yield look(turn, parts, question, *turn.queries[1:])


def write(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds to `queries` what the model writes, "aspect 1" and so on; a line that repeats another is left out."""
    messages, cuts = fit("aspects", parts.llm, _ROOM, facts=turn.used_facts, question=turn.question)
    [completion] = parts.llm.complete([messages], Options(max_tokens=_ROOM), stop)
    lines = completion.text.splitlines()
    if completion.finish == "length":
        lines.pop()  # it ends in the middle
    texts = list(dict.fromkeys(line.strip(" -*\t") for line in lines))
    aspects = (Query(f"aspect {n}", text) for n, text in enumerate(filter(None, texts[:MOST]), 1))
    yield replace(turn, queries=(*turn.queries, *aspects), cuts=turn.cuts + cuts)
