"""Offers to remember what the user said about themselves; nothing is stored here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.protocols import Parts
from assistant.types import Turn
from ptkb.extract import offers


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:  # noqa: ARG001 - it is over in milliseconds
    """Adds `offers`; in a temporary chat there are none."""
    yield (
        turn if turn.temporary else replace(turn, offers=offers(turn.utterance_in_english, turn.known, parts.embedder))
    )
