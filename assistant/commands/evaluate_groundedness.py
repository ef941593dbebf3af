"""`evaluate groundedness`: do answers follow from their passages, and are they cited rightly?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from assistant import turn as flow
from assistant.commands.bars import bar
from assistant.commands.common import Backend, DataDir, Model, SettingsFile, by_words_only, settings_of
from assistant.commands.experiment import AsJson, Limit, Out, Questions, Seed, command_line, indexed, tell, with_models
from assistant.experiment.conditions import model_of
from assistant.protocols import Retriever
from assistant.settings import Settings
from assistant.types import Choices


def groundedness(  # noqa: PLR0913 - the experiment's knobs
    *,
    questions: Questions,
    into: Out,
    corpus: Annotated[
        Path | None,
        typer.Option(help="Passages to answer from: a .jsonl[.gz] file.", show_default="the library"),
    ] = None,
    library: Annotated[str | None, typer.Option(help="The library to answer from.", show_default=False)] = None,
    loop: Annotated[str | None, typer.Option(help="How passages are found.")] = None,
    loops: Annotated[int, typer.Option(min=1, max=5, help="The X of Generate-Retrieve-Generate.")] = 1,
    strategy: Annotated[str | None, typer.Option(help="How they are answered from.")] = None,
    k: Annotated[int | None, typer.Option("--k", min=1, max=20, help="Passages shown to the model.")] = None,
    read: Annotated[
        int, typer.Option(min=0, help="Write so many sentences to reading.jsonl, for a person to label.")
    ] = 0,
    labels: Annotated[
        Path | None,
        typer.Option(help="What a person found: compare the check with it.", show_default=False),
    ] = None,
    limit: Limit = None,
    seed: Seed = 0,
    model: Model = None,
    backend: Backend = None,
    as_json: AsJson = False,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Measure how many sentences of answers a passage supports, and the precision and recall of citations."""
    from assistant.evaluation import answers_report as report  # noqa: PLC0415 - matplotlib
    from assistant.evaluation import groundedness as measured  # noqa: PLC0415
    from assistant.experiment.datasets import read_questions, sample  # noqa: PLC0415

    asked = sample(read_questions(questions), limit, seed)
    found = measured.read_labels(labels) if labels else []
    knobs = by_words_only(settings_of(settings, data_dir, model=model, backend=backend, library=library))
    loop = loop or knobs.turn.loop
    choices = Choices(
        strategy or knobs.turn.strategy,
        loop,
        k or knobs.retrieve.k_for(loop),
        str(corpus) if corpus else knobs.library,
        loops=loops,
        below=knobs.relevance.below_for("factoid"),
    )
    flow.check(choices)
    plan = measured.Plan(questions, choices.library, choices, _digest(knobs), knobs.turn.support_threshold)
    run = measured.open_run(into, plan, model_of(knobs))
    if any(one.id not in run.rows for one in asked):
        parts = with_models(knobs, _retriever(knobs, corpus))
        with bar("Questions") as progress:
            measured.measure(asked, plan, run, parts, progress)
    summary = measured.summarise(asked, plan, run, seed)
    if found:
        summary["agreement"] = measured.agreement(found, run, plan.threshold)
    if read:
        rows = measured.to_read(asked, run, read, seed)
        run.write("reading.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    tables = report.groundedness_table(summary)
    run.write("summary.json", json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
    where = run.write("report.md", f"    {command_line()}\n\n{tables}\n")
    tell(summary, tables, where.parent, as_json)


def _digest(knobs: Settings) -> str:
    """How passages are cut down, for a run to say."""
    name = knobs.turn.digest
    return f"{name} ({knobs.turn.summariser})" if name == "seq2seq" else name


def _retriever(knobs: Settings, corpus: Path | None) -> Retriever:
    if corpus:
        return indexed(corpus, knobs)
    from assistant.library.shelves import open_library  # noqa: PLC0415 - starts the JVM

    return open_library(knobs.library, knobs)
