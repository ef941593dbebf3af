"""Facts that a reply offered for remembering: stored on a click, forgotten, and taken back with their message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from assistant.errors import StoreError
from assistant.store.conversations import Conversations
from assistant.types import Fact, FactOffer, Turn
from ptkb.extract import entails
from ptkb.store import Ptkb, comparison_key

OLD_FACT_KEPT = "Remembered. The fact that it was to replace has changed, and was kept."


def remember(ptkb: Ptkb, user: str, turn: Turn, position: int) -> str:
    """Store the offer at this position, instead of the fact that it contradicts if that still says the same.

    Returns what to tell the person.

    Raises:
        StoreError: the turn makes no such offer.
    """
    if not 0 <= position < len(turn.offers):
        raise StoreError("This offer is no longer there; reload the page.")
    offer, facts = turn.offers[position], ptkb.facts(user)
    replaced_fact = _unchanged(turn, offer, facts)
    if replaced_fact:
        ptkb.replace(user, replaced_fact.id, offer.text, turn.id)
    else:
        ptkb.add(user, offer.text, turn.id)
    return OLD_FACT_KEPT if not replaced_fact and _find(facts, offer.replaces) else "Remembered."


def forget(ptkb: Ptkb, conversations: Conversations, user: str, fact_id: str) -> None:
    """Delete a fact; what said it in the conversation that it comes from counts no more there."""
    facts = ptkb.facts(user)
    ptkb.remove(user, fact_id)
    fact = next(fact for fact in facts if fact.id == fact_id)
    for spot in conversations.message_links(user, [fact.source]).values():
        for turn in conversations.get(user, spot.conversation).turns:
            stated = tuple(text for text in turn.stated if not entails(fact.in_english, text))
            if stated != turn.stated and turn.status != "running":  # what is being written is saved by its writer
                conversations.save_turn(user, spot.conversation, replace(turn, stated=stated))


def take_back(ptkb: Ptkb, user: str, versions: Sequence[Turn]) -> None:
    """Forget the facts that were remembered from a reply's versions; one that took another's place gives it back."""
    for turn in versions:
        facts = ptkb.facts(user)
        own_facts = [fact for fact in facts if fact.source == turn.id]
        for fact, replaced_fact in zip(own_facts, _replaced_facts(turn, own_facts, facts), strict=True):
            if replaced_fact:
                ptkb.restore(user, fact.id, replaced_fact)
            else:
                ptkb.remove(user, fact.id)


def _replaced_facts(turn: Turn, own_facts: Sequence[Fact], facts: Sequence[Fact]) -> list[Fact | None]:
    """The facts whose places those from a turn took, None where one took none, or one that is there all the same.

    A fact that was edited no longer says what was offered, so it is taken for an offer that no other fact says.
    """
    ids, keys = {fact.id for fact in facts}, {comparison_key(fact.text) for fact in facts}
    own_keys = [comparison_key(fact.text) for fact in own_facts]
    gone_facts = {
        comparison_key(offer.text): replaced_fact
        for offer in turn.offers
        if (replaced_fact := _find(turn.known, offer.replaces))
        and replaced_fact.id not in ids
        and comparison_key(replaced_fact.text) not in keys
    }
    offered_keys = {comparison_key(offer.text) for offer in turn.offers}
    unclaimed_facts = iter([fact for key, fact in gone_facts.items() if key not in own_keys])
    return [gone_facts.get(key) if key in offered_keys else next(unclaimed_facts, None) for key in own_keys]


def _unchanged(turn: Turn, offer: FactOffer, facts: Sequence[Fact]) -> Fact | None:
    """The fact that the offer replaces, if there is one that says what it said when the offer was made."""
    replaced_fact = _find(turn.known, offer.replaces)
    return next(
        (fact for fact in facts if replaced_fact and comparison_key(fact.text) == comparison_key(replaced_fact.text)),
        None,
    )


def _find(facts: Sequence[Fact], fact_id: str) -> Fact | None:
    return next((fact for fact in facts if fact.id == fact_id), None)
