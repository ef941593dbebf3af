"""How passages are found for a turn: one file for each loop.

A loop searches, and may run steps in between, such as asking the relevance estimator. Steps know nothing of loops: the
stage "passages" of `turn.py` runs the loop that was chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from typing import cast

from assistant.protocols import Parts, Step
from assistant.registry import variants
from assistant.types import Turn


def named(name: str) -> Step:
    """The loop of this name.

    Raises:
        SettingsError: there is no such loop; the message lists those there are.
    """
    return cast("Step", variants.module("loops", name).run)


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Runs the chosen loop, which adds `passages` and `queries`, and the draft or documents that it writes."""
    yield from named(turn.choices.loop)(turn, parts, stop)
