"""Generate, retrieve, generate: the model's own answer is the query (GRG for TREC iKAT, section 2.1).

The question alone is searched for first, so that there are sources to look at while the model writes; its ranking and
the draft's are fused by reciprocal rank. The draft is short (`turn.max_draft_tokens`), where the paper asks for a long
one: on a CPU each of its tokens delays the answer. Where the question's own passages are relevant enough
(`turn.draft_threshold`), none is written. With X = 2 the digests go back to the model, whose answer is the next query.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from assistant.flow.timing import timed
from assistant.loops.shared import draft
from assistant.protocols import Parts
from assistant.retrieve.search import look, sought
from assistant.steps import digest, quality, relevance
from assistant.types import Query, Turn

TITLE = "With a draft of the answer"
SUMMARY = "Writes a first answer from its own knowledge, and searches with it and with your question."


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `draft`, `queries` and `passages`."""
    turn = look(turn, parts, Query("question", sought(turn)))
    yield turn
    if parts.estimator and parts.settings.turn.draft_threshold < 1:
        for turn in timed("relevance", relevance.run, turn, parts, stop):
            yield turn
        if turn.confidence and turn.confidence.value >= parts.settings.turn.draft_threshold:
            return
    for x in range(turn.choices.loops):
        if x:
            for turn in _read(turn, parts, stop):
                yield turn
        for turn in timed("draft", draft.run, turn, parts, stop):
            yield turn
        if stop.is_set():
            return
        turn = look(turn, parts, Query("question", sought(turn)), Query("draft", turn.draft))
        yield turn


def _read(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds the digests that the next draft is written from, of what the turn will be answered from as well."""
    if parts.settings.turn.quality_model:
        for turn in timed("quality", quality.run, turn, parts, stop):
            yield turn
    yield from timed("digests", digest.run, turn, parts, stop)
