"""Another answer where the first one is none: the strategy's next, until one has support or there are no more."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from assistant.protocols import Parts
from assistant.steps import cite
from assistant.strategies.shared.strategy import is_unanswered, next_answers, strategy_named
from assistant.types import Turn


def is_due(turn: Turn, parts: Parts) -> bool:  # noqa: ARG001 - asked as all steps are
    """Whether the strategy gave no answer that stands, and has another way."""
    return is_unanswered(turn) and strategy_named(turn.choices.strategy).retry is not None


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds the next `answer` of the strategy, cited as the first was."""
    yield from next_answers(strategy_named(turn.choices.strategy), cite.run, turn, parts, stop)
