"""Search, write a text, search with it, improve the text with the new passages (ITRG, section 2.3.1)."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from assistant.loops import itrg_refresh
from assistant.loops.shared.iterations import iterate, new_passages, write
from assistant.protocols import Parts
from assistant.types import Turn

TITLE = "In rounds, improving one text"
SUMMARY = "Searches, writes a text, searches with it, and improves it by what is new, a few times over."


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `iterations`, `queries` and `passages`."""
    yield from iterate(turn, parts, stop, document)


def document(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """document_t = G(question, document_{t-1}, new passages); without new passages the document stays as it is."""
    passages = new_passages(turn)
    if not turn.document:
        yield from itrg_refresh.document(turn, parts, stop)
    elif passages:
        yield from write("itrg_refine", turn, parts, stop, passages=passages, document=turn.document)
    else:
        yield turn
