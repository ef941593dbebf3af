"""`evaluate scenarios`: whole turns as people type them, judged by their own marks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from assistant import turn as flow
from assistant.commands.bars import bar
from assistant.commands.common import Backend, DataDir, Model, SettingsFile, ready, settings_of
from assistant.commands.experiment import AsJson, Limit, Out, Seed, command_line, tell
from assistant.experiment.conditions import model_of
from assistant.experiment.datasets import sample
from assistant.settings import Settings
from assistant.types import Choices


def scenarios(  # noqa: PLR0913 - the experiment's knobs
    *,
    file: Annotated[
        Path,
        typer.Option(
            "--scenarios", help="A .jsonl[.gz] file of {id, kind, facts, history, documents, ask, expect, …}."
        ),
    ],
    into: Out,
    limit: Limit = None,
    seed: Seed = 0,
    model: Model = None,
    backend: Backend = None,
    as_json: AsJson = False,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Run whole turns with facts, history and documents, and count those that pass their own marks, by kind."""
    from assistant.evaluation import scenarios as measured  # noqa: PLC0415 - scipy

    asked = sample(measured.read_scenarios(file), limit, seed) if limit else measured.read_scenarios(file)
    knobs = settings_of(settings, data_dir, model=model, backend=backend)
    choices = _choices(knobs)
    run = measured.open_run(into, file, choices, model_of(knobs))
    with bar("Scenarios") as progress:
        measured.measure(asked, run, lambda: ready(knobs), choices, progress)
    summary = measured.summarise(asked, run.rows)
    table = measured.table(summary)
    run.write("summary.json", json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
    where = run.write("report.md", f"    {command_line()}\n\n{table}\n\n{measured.answers(asked, run.rows)}")
    tell(summary, table, where.parent, as_json)


def _choices(knobs: Settings) -> Choices:
    loop = knobs.turn.loop
    choices = Choices(
        knobs.turn.strategy, loop, knobs.retrieve.k_for(loop), knobs.library, retriever=knobs.retrieve.retriever
    )
    flow.check(choices)
    return choices
