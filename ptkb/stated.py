"""What the messages of a conversation state about their writer, which counts in it before it is stored as a fact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assistant.protocols import Embedder
from assistant.types import Asked, Exchange, Fact, new_id
from ptkb.extract import lasting, says, unknown


def stated_before(turn: Asked, embedder: Embedder) -> list[Fact]:
    """What earlier messages state, as facts that aren't stored, oldest first.

    What a stored fact says, switched on or off, is left to that fact. A message that asks to forget something takes
    back what it repeats ("Forget that I'm vegan").
    """
    found = list[Fact]()
    for exchange in sorted((*turn.history, *turn.unanswered), key=lambda one: one.created):
        if exchange.asks == "forget":
            found = [fact for fact in found if not says(exchange.question, fact.text)]
        texts = exchange.stated if exchange.turn else lasting(exchange.utterance, embedder)
        found += _facts(unknown(texts, [*turn.known, *found], embedder), exchange)
    return found


def stated_now(turn: Asked, embedder: Embedder) -> list[Fact]:
    """What the message itself states (`turn.stated`) and no fact says that is switched on."""
    told = unknown(turn.stated, [fact for fact in turn.known if fact.on], embedder)
    return list(_facts(told, turn))


def _facts(texts: Sequence[str], told_in: Exchange | Asked) -> Iterator[Fact]:
    for text in texts:
        yield Fact(new_id(), text, told_in.created, told_in.created)
