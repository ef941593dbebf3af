"""Search again in other words where the first search found nothing sure (Yan et al. 2024, corrective retrieval).

How sure is what the relevance estimator says of the question's own passages. Where that is under
`relevance.threshold`, the model writes a few short queries, as the loop `aspects` does, and what those find takes the
place of what the question found; under `turn.draft_threshold` it stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from assistant.flow.timing import timed
from assistant.loops import aspects
from assistant.protocols import Parts
from assistant.retrieve.search import look, sought
from assistant.steps import relevance
from assistant.types import Query, Turn

TITLE = "Again in other words, where it must be"
SUMMARY = "Searches with your question, and again with other words where what was found is not sure to answer it."


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `queries`, `passages` and `confidence`; without an estimator it searches for the question alone."""
    question = Query("question", sought(turn))
    turn = look(turn, parts, question)
    yield turn
    for turn in timed("relevance", relevance.run, turn, parts, stop):
        yield turn
    sure = turn.confidence
    if sure is None or sure.value >= parts.settings.turn.draft_threshold or stop.is_set():
        return
    for turn in timed("aspects", aspects.write, turn, parts, stop):
        yield turn
    others = turn.queries[1:]
    if stop.is_set() or not others:
        return
    yield look(turn, parts, *(others if sure.value < sure.threshold else (question, *others)))
