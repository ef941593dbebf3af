"""All passages in one prompt, in the order of their rank; the model says "unknown" if they don't hold the answer."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from assistant.protocols import Parts
from assistant.strategies.shared.reading import read
from assistant.types import Turn

TITLE = "All together"
SUMMARY = "Reads all passages at once, and says so if they hold no answer."


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `answer`, streamed."""
    yield from read("concat", turn, parts, stop, passages=turn.shown)
