"""Generate, retrieve, generate: the model's own answer is the query (GRG for TREC iKAT, section 2.1).

The question alone is searched for first, so that there are sources to look at while the model writes. The rankings of
question and draft are then fused by reciprocal rank. The draft is short (`turn.max_draft_tokens`), unlike the paper's,
since on a CPU each of its tokens delays the answer. No draft is written if the passages found by the question are
relevant enough (`turn.draft_threshold`). `grg_draft` is the loop as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from assistant.flow.timing import timed
from assistant.loops.shared import draft
from assistant.protocols import Parts
from assistant.retrieve.search import search_and_fuse, search_text
from assistant.steps import relevance
from assistant.types import Query, Turn

TITLE = "With a draft of the answer"
SUMMARY = "Writes a first answer from its own knowledge, and searches with it and with your question."
# The number of its rounds can be chosen (`Choices.loops`).
DRAFTS = True


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `draft`, `queries` and `passages`."""
    turn = search_and_fuse(turn, parts, Query("question", search_text(turn)))
    yield turn
    if parts.estimator and parts.settings.turn.draft_threshold < 1:
        for turn in timed("relevance", relevance.run, turn, parts, stop):
            yield turn
        if turn.confidence and turn.confidence.value >= parts.settings.turn.draft_threshold:
            return

    def search(turn: Turn) -> Turn:
        return search_and_fuse(turn, parts, Query("question", search_text(turn)), Query("draft", turn.draft))

    yield from draft.rounds(turn, parts, stop, search)
