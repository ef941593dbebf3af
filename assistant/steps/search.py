"""Finds passages by the loop that the turn has chosen."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from assistant.flow.stage import step_named
from assistant.protocols import Parts
from assistant.types import Turn


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds what the loop adds: `passages`, `queries`, and a draft or documents where it writes such."""
    yield from step_named("loops", turn.choices.loop)(turn, parts, stop)
