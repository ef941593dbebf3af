"""`train suitability`: teaches the judge of what clashes with what a person says of themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from assistant.commands.bars import bar
from assistant.commands.common import DataDir, SettingsFile, out, settings_of, talk
from assistant.experiment.options import AsJson, Seed


def suitability(
    *,
    into: Annotated[Path, typer.Option("--out", help="The folder for what was learned.")],
    seed: Seed = 0,
    as_json: AsJson = False,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Teach the suitability judge the tables that come with Sequitur, for the embedder that is set; about a minute."""
    from assistant.parts import load_embedder  # noqa: PLC0415
    from assistant.training.suitability.train import train  # noqa: PLC0415 - scikit-learn

    with bar("Encoder") as progress:
        embedder = load_embedder(settings_of(settings, data_dir), progress)
    summary = train(into, embedder, seed)
    if as_json:
        out.print_json(json.dumps(summary))
        return
    table = Table("groups of facts", "pairs", "AUC", "precision", "recall", "false alarms", box=None)
    for name, row in summary["test"].items():
        shares = (f"{row[key]:.3f}" for key in ("auc", "precision", "recall", "false_alarms"))
        table.add_row(name, str(row["pairs"]), *shares)
    out.print(table)
    talk.print(f"The judge is in {into}; measure it with `evaluate suitability --judge {into}`.")
