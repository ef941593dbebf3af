"""Concatenation first; if its answer is unknown, post-fusion over the same passages (post-fusion, section 3.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.protocols import Parts
from assistant.strategies import concat, post_fusion
from assistant.types import Turn

TITLE = "All together, then one by one"
SUMMARY = "Reads all passages at once; if they give no answer, asks each alone and lets them vote."

run = concat.run


def retry(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """First asks each passage alone; when called again, takes the next best of these answers."""
    if turn.has_event("fell_back"):
        yield from post_fusion.retry(turn, parts, stop)
        return
    # an unknown answer must neither be shown meanwhile nor be stored if the turn is stopped here
    turn = replace(turn.with_event("fell_back"), answer=None, sentences=(), citations=())
    yield turn
    yield from post_fusion.run(turn, parts, stop)
