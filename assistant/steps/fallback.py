"""Tries the strategy's next answers if the first one is unknown, until one has support or there are no more."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from assistant.protocols import Parts
from assistant.steps import cite
from assistant.strategies.shared.strategy import is_unanswered, next_answers, strategy_named
from assistant.types import Turn


def is_due(turn: Turn, parts: Parts) -> bool:  # noqa: ARG001 - called like all conditions
    """Whether the strategy's answer is unknown, and the strategy can give others."""
    return is_unanswered(turn) and strategy_named(turn.choices.strategy).retry is not None


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds the strategy's next `answer`, cited and checked like the first."""
    yield from next_answers(strategy_named(turn.choices.strategy), cite.run, turn, parts, stop)
