"""`train multi-hop`: teaches the judge of which questions need more than one look-up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from assistant.commands.bars import bar
from assistant.commands.common import DataDir, SettingsFile, out, settings_of, talk
from assistant.commands.experiment import AsJson
from assistant.evaluation.data import read_questions


def multi_hop(
    *,
    several: Annotated[
        list[Path],
        typer.Option(help="Multi-hop questions: a .jsonl[.gz] file of {id, question, answers}; may be given again."),
    ],
    single: Annotated[list[Path], typer.Option(help="Questions that one look-up answers; may be given again.")],
    into: Annotated[Path, typer.Option("--out", help="The folder for what was learned.")],
    as_json: AsJson = False,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Teach the judge of multi-hop questions, for the embedder that is set; a fifth of the questions tests it."""
    from assistant.parts import load_embedder  # noqa: PLC0415
    from assistant.training.multi_hop.train import Source, train  # noqa: PLC0415 - scikit-learn

    sources = [
        Source(str(path), tuple(question.text for question in read_questions(path)), kind)
        for paths, kind in ((several, True), (single, False))
        for path in paths
    ]
    with bar("Encoder") as progress:
        embedder = load_embedder(settings_of(settings, data_dir), progress)
    summary = train(into, embedder, sources)
    if as_json:
        out.print_json(json.dumps(summary))
        return
    table = Table("questions of", "kept for testing", "multi-hop", "found to be", box=None)
    for name, row in summary["test"].items():
        table.add_row(name, str(row["questions"]), "yes" if row["several"] else "no", f"{row['found']:.1%}")
    out.print(table)
    told = f"AUC {summary['auc']:.3f}, precision {summary['precision']:.3f} at {summary['threshold']:.3f}"
    talk.print(f"{told}. The judge is in {into}.", soft_wrap=True)
