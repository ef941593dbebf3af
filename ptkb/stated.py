"""What the messages of a conversation state about their writer: it counts in the conversation without being stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assistant.protocols import Embedder
from assistant.types import Exchange, Fact, TurnInput, new_id
from ptkb.extract import entails, lasting_statements, outdated_facts, unknown_statements


def stated_before(turn: TurnInput, embedder: Embedder) -> list[Fact]:
    """What earlier messages state, as facts that aren't stored, oldest first.

    A statement that a stored fact already makes, switched on or off, is left to that fact. A message that asks to
    forget something takes back what it repeats ("Forget that I'm vegan").
    """
    stated_facts = list[Fact]()
    for exchange in sorted((*turn.history, *turn.unanswered), key=lambda exchange: exchange.created):
        if exchange.asks == "forget":
            stated_facts = [fact for fact in stated_facts if not entails(exchange.question, fact.text)]
        texts = exchange.stated if exchange.turn else lasting_statements(exchange.utterance, embedder)
        stated_facts += _facts(unknown_statements(texts, _in_force([*turn.known, *stated_facts]), embedder), exchange)
    return stated_facts


def stated_now(turn: TurnInput, earlier_facts: Sequence[Fact], embedder: Embedder) -> list[Fact]:
    """What the message itself states (`turn.stated`), unless a stored fact that is on and still holds says it.

    A stored fact that an earlier message contradicts (`earlier_facts`) no longer holds, so that what it says may be
    stated again.
    """
    facts = [fact for fact in turn.known if fact.on]
    still_valid_ids = {fact.id for fact in _in_force([*facts, *earlier_facts])}
    new_texts = unknown_statements(turn.stated, [fact for fact in facts if fact.id in still_valid_ids], embedder)
    return list(_facts(new_texts, turn))


def _in_force(facts: Sequence[Fact]) -> list[Fact]:
    """The facts that no newer one contradicts."""
    contradicted_ids = outdated_facts(facts)
    return [fact for fact in facts if fact.id not in contradicted_ids]


def _facts(texts: Sequence[str], source: Exchange | TurnInput) -> Iterator[Fact]:
    for text in texts:
        yield Fact(new_id(), text, source.created, source.created)
