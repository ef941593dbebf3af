"""Asks back where a message speaks of the person's own place and nothing tells which that is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from threading import Event

from assistant.types import Answer, Parts, Turn

WHICH = (
    "Which place is that? Tell me where you live or come from, and I look it up. Kept under your facts, I can use it "
    "next time."
)
# Capitals are titles and names ("My Country, 'Tis of Thee"), and a name may follow ("my country Portugal").
_MY_PLACE = re.compile(
    r"\b[Mm]y (?:home |own |native )?(?:country|city|town|village|hometown|homeland|continent)\b"
    r"(?! (?:house|club|hall|flat|apartment|cottage|council|(?:is |called )?[A-Z]))"
    r"|\b[Ww]here [Ii](?:['’]m| am)? (?:live|come from|from|was born|grew up)\b"
)
# "in Oslo", "of the Netherlands": somebody named a place.
_NAMED = re.compile(r"\b(?:in|from|of|to|near|is) (?:the )?[A-Z]")
_LONGEST = 15
# What is no answer to `WHICH`: a question, or a word that ends the matter.
_NO_PLACE = re.compile(
    r"\?|\b(?:no|not|never|nothing|thanks?|forget|stop|skip|don['’]t|what|how|who|when|which|why|write|tell)\b",
    re.IGNORECASE,
)
_LONGEST_PLACE = 8


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:  # noqa: ARG001 - it is over at once
    """Adds `answer`, which asks for the place."""
    yield turn.grow(question=turn.utterance, answer=Answer(WHICH, origin="conversation"))


def speaks_of_own_place(utterance: str) -> bool:
    """Whether it speaks of the person's country, town or the like, without its name."""
    return bool(_MY_PLACE.search(utterance))


def unclear(turn: Turn) -> bool:
    """Whether nobody can tell which place a short message means: no fact was used, and the person named none."""
    if turn.used_facts or len(turn.utterance.split()) > _LONGEST or not speaks_of_own_place(turn.utterance):
        return False
    return not any(_NAMED.search(said) for said in (turn.utterance, *(one.utterance for one in turn.history)))


def told(turn: Turn) -> bool:
    """Whether the utterance is a place, in reply to `WHICH`."""
    asked, said = bool(turn.history) and turn.history[-1].reply == WHICH, turn.utterance
    return asked and len(said.split()) <= _LONGEST_PLACE and not _NO_PLACE.search(said)
