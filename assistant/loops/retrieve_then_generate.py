"""Retrieve, then generate: the question alone is the query (the baseline of GRG, table 5)."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from assistant.protocols import Parts
from assistant.retrieve.search import search_and_fuse, search_text
from assistant.types import Query, Turn

TITLE = "With the question alone"
SUMMARY = "Searches with your question as it stands; the quickest."


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:  # noqa: ARG001 - it is over in milliseconds
    """Adds `queries` and `passages`."""
    yield search_and_fuse(turn, parts, Query("question", search_text(turn)))
