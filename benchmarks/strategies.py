"""What a strategy costs beside concatenation: seconds of the same questions and passages, in one run.

Strategy by strategy, in rounds, so that what else the machine does falls on all of them. Each time the passages' titles
are marked anew, so that none is still in the model's memory from when it was asked before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from threading import Event
from time import perf_counter

from assistant.evaluation.answers import Experiment, Material, Passages
from assistant.protocols import Parts
from assistant.strategies.shared.strategy import in_full, strategy_named
from assistant.types import Choices, Turn

BASE = "concat"


@dataclass(frozen=True, slots=True)
class Cost:
    """One question by one strategy: seconds, and whether its passages together gave no answer (`fell_back`)."""

    strategy: str
    round: int
    question: str
    seconds: float
    fell_back: bool


@dataclass(frozen=True, slots=True)
class Ratio:
    """Medians over rounds: seconds a question, and how many times those of concatenation.

    `all` is over all questions, `answered` over those that were answered without falling back (None: there were none).
    """

    seconds: float
    all: float
    answered: float | None


def measure(
    experiment: Experiment, material: Material, parts: Parts, rounds: int, each: Callable[[Cost], None]
) -> list[Cost]:
    """Ask every question by every strategy, `rounds` times; the first strategy has to be concatenation."""
    passages = Passages(experiment, material.corpus, parts)
    setting = experiment.settings[0]
    costs = []
    for n in range(rounds):
        for name in experiment.strategies:
            for question in material.questions:
                turn = _unread(passages.turn(setting, question, experiment.loop), f"{name} {n}")
                costs.append(_cost(name, n, turn, parts))
                each(costs[-1])
    return costs


def _unread(turn: Turn, mark: str) -> Turn:
    """The turn with passages that begin like none that the model has read so far."""
    return replace(turn, passages=tuple(replace(one, title=f"{mark}: {one.title}") for one in turn.passages))


def _cost(name: str, n: int, turn: Turn, parts: Parts) -> Cost:
    turn = replace(turn, choices=Choices(name, k=len(turn.passages), form="factoid"))
    step, since = in_full(strategy_named(name)), perf_counter()
    *_, turn = step(turn, parts, Event())
    return Cost(name, n, turn.question, perf_counter() - since, turn.has_event("fell_back"))


def ratios(costs: Sequence[Cost]) -> dict[str, Ratio]:
    """For each strategy what it costs beside `BASE`."""
    return {name: _ratio(costs, name) for name in dict.fromkeys(cost.strategy for cost in costs)}


def _ratio(costs: Sequence[Cost], name: str) -> Ratio:
    rounds = sorted({cost.round for cost in costs})
    own = [{c.question: c for c in costs if c.strategy == name and c.round == n} for n in rounds]
    base = [{c.question: c for c in costs if c.strategy == BASE and c.round == n} for n in rounds]
    straight = [[q for q, cost in mine.items() if not cost.fell_back] for mine in own]
    answered = [_times(mine, theirs, some) for mine, theirs, some in zip(own, base, straight, strict=True) if some]
    return Ratio(
        seconds=median(cost.seconds for mine in own for cost in mine.values()),
        all=median(_times(mine, theirs, list(mine)) for mine, theirs in zip(own, base, strict=True)),
        answered=median(answered) if answered else None,
    )


def _times(mine: dict[str, Cost], theirs: dict[str, Cost], questions: Sequence[str]) -> float:
    return sum(mine[q].seconds for q in questions) / sum(theirs[q].seconds for q in questions)
