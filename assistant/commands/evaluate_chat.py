"""`evaluate chat`: whole chat turns on questions whose answers are known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from assistant import turn as flow
from assistant.commands.bars import bar
from assistant.commands.common import Backend, DataDir, Model, SettingsFile, by_words_only, settings_of, usual_choices
from assistant.commands.experiment import (
    AsJson,
    Corpus,
    Limit,
    Out,
    Questions,
    Seed,
    Skip,
    command_line,
    indexed,
    tell,
    with_models,
)
from assistant.experiment.conditions import model_of


def chat(  # noqa: PLR0913 - the experiment's knobs
    *,
    corpus: Corpus,
    questions: Questions,
    into: Out,
    beside: Annotated[
        Path | None,
        typer.Option(help="The folder of another run on the same questions, to compare with.", show_default=False),
    ] = None,
    limit: Limit = None,
    seed: Seed = 0,
    skip: Skip = 0,
    model: Model = None,
    backend: Backend = None,
    as_json: AsJson = False,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Run whole chat turns; count gold answers in replies, what they rest on, and how often the fallback helps."""
    from assistant.evaluation import chat as measured  # noqa: PLC0415 - scipy
    from assistant.experiment.datasets import read_questions, sample  # noqa: PLC0415
    from assistant.experiment.runs import rows_of  # noqa: PLC0415

    asked = sample(read_questions(questions), limit, seed, skip)
    knobs = by_words_only(settings_of(settings, data_dir, model=model, backend=backend))
    choices = usual_choices(knobs)
    flow.check(choices)
    other = rows_of(beside) if beside else None
    run = measured.open_run(into, corpus, questions, choices, knobs, model_of(knobs))
    if any(one.id not in run.rows for one in asked):
        parts = with_models(knobs, indexed(corpus, knobs))
        with bar("Questions") as progress:
            measured.measure(asked, choices, run, parts, progress)
    summary = measured.summarise(asked, run.rows, other, seed)
    table = measured.table(summary)
    run.write("summary.json", json.dumps(summary, indent=2) + "\n")
    where = run.write("report.md", f"    {command_line()}\n\n{table}\n")
    tell(summary, table, where.parent, as_json)
