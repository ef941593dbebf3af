"""Search, write a text, search with it, write it again from the latest passages alone (ITRG, section 2.3.2)."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from assistant.loops.shared.iterations import iterate, write
from assistant.protocols import Parts
from assistant.types import Turn

TITLE = "In rounds, writing anew"
SUMMARY = "Searches, writes a text, searches with it, and writes it anew from what was found, a few times over."


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `iterations`, `queries` and `passages`."""
    yield from iterate(turn, parts, stop, document)


def document(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """document_t = G(question, passages_t)."""
    yield from write("itrg_refresh", turn, parts, stop, passages=turn.passages)
