"""Asks back where a message speaks of the person's own place and nothing tells which that is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from threading import Event

from assistant.types import Answer, Parts, Turn

WHICH = (
    "Which place is that? Tell me where you live or come from, and I look it up. If you let me keep it as a fact, I "
    "know it next time."
)
_MY_PLACE = re.compile(
    r"\bmy (?:(?:home|own|native) )?(?:country|city|town|village|hometown|homeland|continent)\b"
    r"|\bwhere i(?:['’]m| am)? (?:live|come from|from|was born|grew up)\b",
    re.IGNORECASE,
)


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:  # noqa: ARG001 - it is over at once
    """Adds `answer`, which asks for the place."""
    yield turn.grow(question=turn.utterance, answer=Answer(WHICH, origin="conversation"))


def speaks_of_own_place(utterance: str) -> bool:
    """Whether it speaks of the person's country, town or the like, without its name."""
    return bool(_MY_PLACE.search(utterance))


def unclear(turn: Turn) -> bool:
    """Whether nobody can tell which place is meant: no fact was found to matter, and nothing was said before."""
    return not turn.history and not turn.used_facts and speaks_of_own_place(turn.utterance)


def told(turn: Turn) -> bool:
    """Whether the utterance comes in reply to `WHICH`."""
    return bool(turn.history) and turn.history[-1].reply == WHICH
