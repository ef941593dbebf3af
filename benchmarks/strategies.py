"""`bench strategies`: what they cost beside concatenation, on the same questions and passages in one run.

Strategy by strategy, in rounds, so that what else the machine does falls on all of them. Each time the passages' titles
are marked anew, so that none is still in the model's memory from when it was asked before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from threading import Event
from time import perf_counter
from typing import Annotated

import typer
from pandas import DataFrame

from assistant.commands.common import by_words, error_console
from assistant.commands.experiment import corpus_index, load_turn_parts
from assistant.commands.option_groups import ModelOptions
from assistant.evaluation.answers import Experiment, Material, PassageProvider, prepare
from assistant.evaluation.scores import Setting
from assistant.experiment.options import Corpus, Questions, Seed
from assistant.protocols import Parts
from assistant.strategies.shared.strategy import in_full, strategy_named
from assistant.types import Choices, Turn
from benchmarks.figures import Figures

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
    passages = PassageProvider(experiment, material.corpus, parts)
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
    return replace(
        turn, passages=tuple(replace(passage, title=f"{mark}: {passage.title}") for passage in turn.passages)
    )


def _cost(name: str, n: int, turn: Turn, parts: Parts) -> Cost:
    turn = replace(turn, choices=Choices(name, k=len(turn.passages), form="factoid"))
    step, start = in_full(strategy_named(name)), perf_counter()
    *_, turn = step(turn, parts, Event())
    return Cost(name, n, turn.question, perf_counter() - start, turn.has_event("fell_back"))


def ratios(costs: Sequence[Cost]) -> dict[str, Ratio]:
    """For each strategy what it costs beside `BASE`."""
    key_columns = ["round", "question"]
    all_costs = DataFrame(map(asdict, costs))
    base = all_costs[all_costs["strategy"] == BASE].set_index(key_columns)["seconds"].rename("base")
    return {
        str(name): _ratio(strategy_costs.join(base, on=key_columns))
        for name, strategy_costs in all_costs.groupby("strategy", sort=False)
    }


def _ratio(costs: DataFrame) -> Ratio:
    answered_costs = costs[~costs["fell_back"]]
    return Ratio(
        float(costs["seconds"].median()), _times(costs), _times(answered_costs) if len(answered_costs) else None
    )


def _times(costs: DataFrame) -> float:
    """The median over rounds of how many times the seconds of `BASE` all questions took."""
    sums = costs.groupby("round")[["seconds", "base"]].sum()
    return float((sums["seconds"] / sums["base"]).median())


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
    figures: Figures,
    options: ModelOptions,
) -> None:
    """Time strategies side by side: seconds a question, and times those of concatenation."""
    names = tuple(dict.fromkeys([BASE, *(strategy or ["post_fusion", "concat_pf"])]))
    experiment = Experiment(corpus, questions, names, (Setting(k),), limit=limit, seed=seed)
    material = prepare(experiment)
    settings = by_words(options.load_settings())
    parts = load_turn_parts(settings, corpus_index(corpus, settings))
    costs = measure(experiment, material, parts, rounds, each=_tell)
    ratio_rows = {name: asdict(ratio) for name, ratio in ratios(costs).items()}
    report = {"model": parts.llm.name, "ratios": ratio_rows, "costs": [asdict(cost) for cost in costs]}
    figures.tell("strategies", report, {f"seconds, and times those of {BASE}": ratio_rows})


def _tell(cost: Cost) -> None:
    error_console.print(f"{cost.seconds:5.1f} s  {cost.strategy}: {cost.question}", style="dim")
