"""Which of the user's facts matter for this turn: Sentence-BERT relevance, with a threshold (GRG, section 2.2.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.protocols import Parts
from assistant.types import Turn
from ptkb.extract import outdated
from ptkb.rank import rank


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:  # noqa: ARG001 - it is over in milliseconds
    """Adds `facts`: all that are switched on, most relevant first, with those that are used marked.

    A fact that a newer one contradicts is left out.
    """
    knobs, contradicted = parts.settings.facts, outdated(turn.known)
    facts = [fact for fact in turn.known if fact.id not in contradicted]
    yield replace(
        turn,
        facts=rank(
            facts,
            turn.said,
            turn.history,
            parts.embedder,
            knobs.threshold,
            knobs.max_facts,
            knobs.max_chars_to_tell_all,
        ),
    )
