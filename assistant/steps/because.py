"""Which of the facts that a turn was given show in its answer: only those are named as its reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.markers import read
from assistant.text import quote, sentences
from assistant.types import Parts, Turn

# Cosine to the answer, or to one of its sentences, from which a fact shows in it. In the conversations that were read
# for this, facts that had no part in the answer were at 0.05 to 0.20, the others at 0.25 to 0.72.
SHOWS = 0.24


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Marks in `facts`, of those that were used, which show."""
    if turn.used_facts and turn.answer and not stop.is_set():
        text = read(turn.answer.text).text
        said = [text, *(quote(text, span) for span in sentences(text))]
        vectors = parts.embedder.encode([*turn.used_facts, *said])
        count = len(turn.used_facts)
        nearness = iter((vectors[:count] @ vectors[count:].T).max(axis=1).tolist())
        marked = (replace(fact, shows=next(nearness) >= SHOWS) if fact.used else fact for fact in turn.facts)
        turn = turn.grow(facts=tuple(marked))
    yield turn
