"""`evaluate personal`: is what a question leaves to the person's facts put into it?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from assistant.commands.bars import bar
from assistant.commands.common import Backend, DataDir, Model, SettingsFile, load_llm, out, settings_of
from assistant.commands.experiment import AsJson, Limit, Nothing, Seed
from assistant.experiment.conditions import model_of
from assistant.experiment.datasets import sample
from assistant.parts import load_embedder
from assistant.protocols import Parts


def personal(  # noqa: PLR0913 - the experiment's knobs
    *,
    pairs: Annotated[Path, typer.Option(help="A .jsonl[.gz] file of {facts, question, must, history, split}.")],
    split: Annotated[str, typer.Option(help="Only pairs of this split, where the file names any.")] = "",
    into: Annotated[
        Path | None, typer.Option("--out", help="A folder that keeps every rewrite; a run that is there goes on.")
    ] = None,
    limit: Limit = None,
    seed: Seed = 0,
    model: Model = None,
    backend: Backend = None,
    as_json: AsJson = False,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """How often does the rewritten question say what the facts tell ("my country": Germany)? The share, by kind."""
    from assistant.evaluation import personal as measured  # noqa: PLC0415 - scipy

    every = measured.read_pairs(pairs, split)
    chosen = sample(every, limit, seed) if limit else every
    knobs = settings_of(settings, data_dir, model=model, backend=backend)
    run = measured.open_run(into, pairs, model_of(knobs)) if into else None
    with bar("Sentence-BERT") as progress:
        embedder = load_embedder(knobs, progress)
    with bar("Language model") as progress:
        parts = Parts(knobs, load_llm(knobs, progress), embedder, Nothing())
    with bar("Questions") as progress:
        rows = measured.measure(chosen, parts, run, progress)
    summary = measured.summarise(chosen, rows)
    if as_json:
        out.print_json(json.dumps(summary))
        return
    table = Table("question", "rewritten", "right", box=None)
    for pair in chosen:
        row = rows[pair.id]
        table.add_row(row["question"], row["rewrite"], "yes" if row["right"] else "no")
    out.print(table)
    for kind, one in {**summary["kinds"], "all": summary}.items():
        value = one.get("value", one.get("accuracy"))
        out.print(f"{kind}: {value:.2f} ({one['low']:.2f} to {one['high']:.2f}) of {one['n']}")
