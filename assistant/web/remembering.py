"""Facts that a reply offered for remembering: stored on a click, forgotten, and taken back with their message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from assistant.errors import StoreError
from assistant.store.conversations import Conversations
from assistant.types import Fact, FactOffer, Turn
from ptkb.extract import says
from ptkb.store import Ptkb, key

KEPT = "Remembered. The fact that it was to replace has changed, and was kept."


def remember(ptkb: Ptkb, user: str, turn: Turn, place: int) -> str:
    """Store the offer at this place, instead of the fact that it contradicts if that still says the same.

    Returns what to tell the person.

    Raises:
        StoreError: the turn makes no such offer.
    """
    if not 0 <= place < len(turn.offers):
        raise StoreError("This offer is no longer there; reload the page.")
    offer, facts = turn.offers[place], ptkb.facts(user)
    old = _unchanged(turn, offer, facts)
    if old:
        ptkb.replace(user, old.id, offer.text, turn.id)
    else:
        ptkb.add(user, offer.text, turn.id)
    return KEPT if not old and _find(facts, offer.replaces) else "Remembered."


def forget(ptkb: Ptkb, conversations: Conversations, user: str, fact_id: str) -> None:
    """Delete a fact; what said it in the conversation that it comes from counts no more there."""
    facts = ptkb.facts(user)
    ptkb.remove(user, fact_id)
    fact = next(one for one in facts if one.id == fact_id)
    for spot in conversations.spots(user, [fact.source]).values():
        for turn in conversations.get(user, spot.conversation).turns:
            stated = tuple(text for text in turn.stated if not says(fact.in_english, text))
            if stated != turn.stated and turn.status != "running":  # what is being written is saved by its writer
                conversations.save_turn(user, spot.conversation, replace(turn, stated=stated))


def take_back(ptkb: Ptkb, user: str, versions: Sequence[Turn]) -> None:
    """Forget the facts that were remembered from a reply's versions; one that took another's place gives it back."""
    facts, told = ptkb.facts(user), {turn.id: turn for turn in versions}
    for fact in (one for one in facts if one.source in told):
        turn = told[fact.source]
        offer = next((one for one in turn.offers if key(one.text) == key(fact.text)), None)
        old = _find(turn.known, offer.replaces) if offer else None
        if old and key(old.text) not in {key(one.text) for one in facts}:
            ptkb.restore(user, fact.id, old)
        else:
            ptkb.remove(user, fact.id)


def _unchanged(turn: Turn, offer: FactOffer, facts: Sequence[Fact]) -> Fact | None:
    """The fact that the offer replaces, if there is one that says what it said when the offer was made."""
    seen = _find(turn.known, offer.replaces)
    return next((fact for fact in facts if seen and key(fact.text) == key(seen.text)), None)


def _find(facts: Sequence[Fact], wanted: str) -> Fact | None:
    return next((fact for fact in facts if fact.id == wanted), None)
