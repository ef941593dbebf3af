"""The interface of a file in `assistant/strategies`: how it answers, and its next answers if one is unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from threading import Event

from assistant.protocols import Parts, Step
from assistant.registry import variants
from assistant.types import Passage, Turn


def _no_sources(_: Turn) -> tuple[Passage, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Strategy:
    """How a question is answered from the turn's passages.

    `run` adds an `answer`, which is not cited yet. If that is unknown, `retry` adds the next best answer, and yields
    nothing once there is no other. `sources` are further passages, besides the turn's, that the answer may be from.
    """

    run: Step
    retry: Step | None = None
    sources: Callable[[Turn], tuple[Passage, ...]] = _no_sources


def strategy_named(name: str) -> Strategy:
    """The strategy of this name.

    Raises:
        SettingsError: there is no such strategy; the message lists those there are.
    """
    module = variants.module("strategies", name)
    return Strategy(module.run, getattr(module, "retry", None), getattr(module, "sources", _no_sources))


def is_unanswered(turn: Turn) -> bool:
    """Whether the strategy was asked and its answer is unknown."""
    answer = turn.answer
    return answer is not None and answer.unknown and answer.outcome == "written" and answer.origin != "model"


def in_full(strategy: Strategy) -> Step:
    """The strategy as one step, which goes on to the next answer as long as the last is unknown; nothing is cited."""

    def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
        """Adds what the strategy adds."""
        for turn in strategy.run(turn, parts, stop):
            yield turn
        yield from next_answers(strategy, lambda *_: iter(()), turn, parts, stop)

    return run


def next_answers(strategy: Strategy, check: Step, turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds the strategy's next `answer` and what `check` adds, until an answer is known or there are no more."""
    while strategy.retry and is_unanswered(turn) and not stop.is_set():
        previous = turn
        for turn in strategy.retry(turn, parts, stop):
            yield turn
        if turn is previous:
            return
        for turn in check(turn, parts, stop):
            yield turn
