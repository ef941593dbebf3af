"""Which facts about the user matter for this turn: Sentence-BERT relevance, with a threshold (GRG, section 2.2.1).

These are the stored facts, and what the messages of this conversation state ("I'm vegan. What could I cook?").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.protocols import Parts
from assistant.types import RankedFact, Turn
from ptkb.extract import lasting, outdated
from ptkb.rank import rank
from ptkb.stated import stated_before, stated_now


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:  # noqa: ARG001 - it is over in milliseconds
    """Adds `stated`, and `facts`: all that are switched on, most relevant first, with those that are used marked.

    A fact that a newer one contradicts is left out. What the message itself states comes first; the search has it
    already, with the message, so it isn't marked as used.
    """
    knobs, embedder = parts.settings.facts, parts.embedder
    turn = replace(turn, stated=lasting(turn.said, embedder))
    before, told = stated_before(turn, embedder), stated_now(turn, embedder)
    contradicted = outdated([*turn.known, *before, *told])
    ranked = rank(
        [fact for fact in (*turn.known, *before) if fact.id not in contradicted],
        turn.said,
        turn.history,
        embedder,
        knobs.threshold,
        knobs.max_facts,
        knobs.max_chars_to_tell_all,
    )
    stored = {fact.id for fact in turn.known}
    facts = [replace(fact, stored=fact.id in stored) for fact in ranked]
    of_message = [RankedFact(fact.id, fact.text, 1.0, used=False, told=True, stored=False) for fact in told]
    yield replace(turn, facts=(*of_message, *facts))
