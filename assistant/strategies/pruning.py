"""Reasons which passages do not hold the answer, rules them out one by one, and answers from those that are left.

One prompt with one example of such a chain of thought (post-fusion, section 3.2.2 and figure 8).
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from assistant.protocols import Parts
from assistant.strategies.shared.reasoning import think
from assistant.types import Turn

TITLE = "Rule out, then answer"
SUMMARY = "Reasons which passages don't hold the answer, and answers from those that are left."


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `reasoning`, and `answer`."""
    yield from think("pruning", turn, parts, stop)
