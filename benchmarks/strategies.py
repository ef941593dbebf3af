"""`bench strategies`: what they cost beside concatenation, on the same questions and passages in one run.

Strategy by strategy, in rounds, so that what else the machine does falls on all of them. Each time the passages' titles
are marked anew, so that none is still in the model's memory from when it was asked before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from threading import Event
from time import perf_counter
from typing import Annotated

import typer
from rich.table import Table

from assistant.commands.common import (
    Backend,
    DataDir,
    Model,
    SettingsFile,
    by_words_only,
    out,
    results_folder,
    settings_of,
    talk,
    writing,
)
from assistant.commands.experiment import indexed, with_models
from assistant.evaluation.answers import Experiment, Material, Passages, prepare
from assistant.evaluation.scores import Setting
from assistant.experiment.options import Corpus, Questions, Seed
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


def strategies(  # noqa: PLR0913 - the experiment's knobs
    *,
    corpus: Corpus,
    questions: Questions,
    strategy: Annotated[
        list[str] | None,
        typer.Option(help="Besides concat; may be repeated.", show_default="post_fusion, concat_pf"),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Times that all is asked; medians are over these.")] = 3,
    k: Annotated[int, typer.Option("--k", min=1, help="Passages shown.")] = 5,
    limit: Annotated[int, typer.Option(min=1, help="Questions asked.")] = 12,
    seed: Seed = 0,
    into: Annotated[
        Path | None, typer.Option("--out", help="A folder for strategies.json.", show_default=False)
    ] = None,
    model: Model = None,
    backend: Backend = None,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Time strategies side by side: seconds a question, and times those of concatenation."""
    names = tuple(dict.fromkeys([BASE, *(strategy or ["post_fusion", "concat_pf"])]))
    experiment = Experiment(corpus, questions, names, (Setting(k),), limit=limit, seed=seed)
    material = prepare(experiment)
    knobs = by_words_only(settings_of(settings, data_dir, model=model, backend=backend))
    results_folder(into)
    parts = with_models(knobs, indexed(corpus, knobs))
    costs = measure(experiment, material, parts, rounds, each=_tell)
    found = ratios(costs)
    out.print(_table(found))
    if into:
        report = {"model": parts.llm.name, "ratios": {name: asdict(one) for name, one in found.items()},
                  "costs": [asdict(cost) for cost in costs]}  # fmt: skip
        with writing(into):
            (into / "strategies.json").write_text(json.dumps(report, indent=1), encoding="utf-8")


def _tell(cost: Cost) -> None:
    talk.print(f"{cost.seconds:5.1f} s  {cost.strategy}: {cost.question}", style="dim")


def _table(found: dict[str, Ratio]) -> Table:
    table = Table("strategy", "seconds a question", "times concat", "times concat where it did not fall back")
    for name, one in found.items():
        table.add_row(name, *(("-" if value is None else f"{value:.2f}") for value in asdict(one).values()))
    return table
