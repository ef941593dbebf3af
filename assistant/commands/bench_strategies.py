"""`bench strategies`: what strategies cost beside concatenation, on the same questions in one run."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from assistant.commands.experiment import Corpus, Questions, Seed, indexed, with_models

if TYPE_CHECKING:
    from benchmarks.strategies import Cost, Ratio


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
    from assistant.evaluation.answers import Experiment, Setting, prepare  # noqa: PLC0415
    from benchmarks import strategies as bench  # noqa: PLC0415

    names = tuple(dict.fromkeys([bench.BASE, *(strategy or ["post_fusion", "concat_pf"])]))
    experiment = Experiment(corpus, questions, names, (Setting(k),), limit=limit, seed=seed)
    material = prepare(experiment)
    knobs = by_words_only(settings_of(settings, data_dir, model=model, backend=backend))
    results_folder(into)
    parts = with_models(knobs, indexed(corpus, knobs))
    costs = bench.measure(experiment, material, parts, rounds, each=_tell)
    found = bench.ratios(costs)
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
