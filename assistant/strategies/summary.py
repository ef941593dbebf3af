"""Summarises what the passages say about the question, and answers from that summary.

One prompt with one example of such a chain of thought (post-fusion, section 3.2.2 and figure 9).
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from assistant.protocols import Parts
from assistant.strategies.shared.reasoning import think
from assistant.types import Turn

TITLE = "Sum up, then answer"
SUMMARY = "Sums up what the passages say about the question, and answers from that."


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `reasoning`, and `answer`."""
    yield from think("summary", turn, parts, stop)
