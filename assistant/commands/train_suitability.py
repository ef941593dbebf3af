"""`train suitability`: a small judge that learns what clashes with what a person says of themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from assistant.commands.bars import bar
from assistant.commands.common import DataDir, SettingsFile, out, settings_of, talk
from assistant.commands.experiment import AsJson, Seed


def suitability(  # noqa: PLR0913 - the training's knobs
    *,
    into: Annotated[Path, typer.Option("--out", help="The folder for the model; a training that is there goes on.")],
    base: Annotated[
        str, typer.Option(help="The encoder to start from: a name of the catalogue, a hub id or a folder.")
    ] = "all-MiniLM-L6-v2",
    pairs: Annotated[int, typer.Option(min=1000, help="Pairs to learn from, each once.")] = 40_000,
    batch: Annotated[int, typer.Option(min=1, help="Pairs of a step.")] = 16,
    rate: Annotated[float, typer.Option(min=0, help="AdamW's highest learning rate.")] = 1e-4,
    seed: Seed = 0,
    as_json: AsJson = False,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Train the suitability judge on pairs made from the tables that come with Sequitur; pack it with `train pack`."""
    from assistant.llm.catalogue import Catalogue  # noqa: PLC0415
    from assistant.training.suitability.train import train  # noqa: PLC0415 - torch
    from assistant.training.trainer import MODEL, Plan  # noqa: PLC0415 - torch

    with bar("Encoder") as progress:
        folder = Catalogue.load().resolve(base, settings_of(settings, data_dir), progress)
    with bar("Steps") as progress:
        summary = train(into, Plan(str(folder), batch=batch, rate=rate, seed=seed), pairs, progress)
    if as_json:
        out.print_json(json.dumps(summary))
        return
    table = Table("step", "loss", "AUC of dev", "best so far", box=None)
    for stage in summary["stages"]:
        best = "yes" if stage["best"] else ""
        table.add_row(str(stage["step"]), f"{stage['loss']:.4f}", f"{stage['auc']:.4f}", best)
    out.print(table)
    out.print(summary["test"])
    talk.print(f"The best model is {into / MODEL}; measure it with `evaluate suitability --judge {into / MODEL}`.")
