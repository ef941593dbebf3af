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
# What is no answer to `WHICH`: a question, a request, a greeting, or a word that ends the matter.
_NO_PLACE = re.compile(
    r"\?|\b(?:no|not|never|nothing|thanks?|forget|stop|skip|don['’]t|what|how|who|when|which|why|write|tell|give|show|list|"
    r"explain|describe|search|find|look|compare|translate|make|help|name|recommend|suggest|can|could|should|would|hello|"
    r"hi|hey|bye|good|great|cool|fine|like|love|hate|want|need)\b",
    re.IGNORECASE,
)
# What a place is told with. Without it, a place is a few words; "I'm vegetarian" is no place, and "I'm Norwegian" is.
_LED = re.compile(
    r"\W*(?:(?:well|oh|um|sorry|yes|sure|ok|okay|and|it['’]s|it is|that['’]s|that is|my \w+ is|(?:i|we) (?:live|come|"
    r"grew up|was born|stay|work)|i['’]?m|i am|living|based|born|from|in|near|at)\b\W*)+",
    re.IGNORECASE,
)
_IN = re.compile(r"\b(?:in|from|near|at)\b", re.IGNORECASE)
_FEW_WORDS = 3
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
    return asked and len(said.split()) <= _LONGEST_PLACE and not _NO_PLACE.search(said) and _is_place(said)


def _is_place(said: str) -> bool:
    """Whether it is put like the name of a place; which names there are is not known here."""
    led = _LED.match(said)
    lead, name = (led.group(), said[led.end() :]) if led else ("", said)
    if re.search(r"\b(?:i['’]?m|i am)\b", lead, re.IGNORECASE) and not _IN.search(lead):
        return name[:1].isupper()
    few = len(name.split()) <= _FEW_WORDS or bool(re.search(r"\s[A-Z]", name))
    return bool(name.strip()) and (bool(_IN.search(lead)) or few)
