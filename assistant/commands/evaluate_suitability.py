"""`evaluate suitability`: does the judge tell what clashes with what a person said of themselves?"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from threading import Event
from typing import Annotated, Any

import typer
from rich.table import Table

from assistant.commands.bars import bar
from assistant.commands.common import Backend, DataDir, Model, SettingsFile, out, settings_of
from assistant.commands.experiment import AsJson, Limit, Seed
from assistant.evaluation import suitability as measured
from assistant.experiment.datasets import sample
from assistant.judges.suitability.judge import judge_of
from assistant.judges.suitability.knowledge import SHIPPED
from assistant.parts import load_embedder, load_llm
from assistant.protocols import Embedder, SuitabilityJudge
from assistant.settings import Settings

BY_LLM = "llm"
# Where the language model says yes more likely than no.
EVEN = 0.5


def suitability(  # noqa: PLR0913 - the experiment's knobs
    *,
    pairs: Annotated[Path, typer.Option(help="Pairs: a .jsonl[.gz] file of {fact, text, clash}.")],
    judge: Annotated[
        str, typer.Option(help="The folder of a trained judge, or 'llm': the language model's own yes or no.")
    ] = str(SHIPPED),
    corpus: Annotated[
        list[Path] | None,
        typer.Option(help="Passages that pairs point into; may be given again.", show_default=False),
    ] = None,
    limit: Limit = None,
    seed: Seed = 0,
    model: Model = None,
    backend: Backend = None,
    as_json: AsJson = False,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """How well are clashes told? AUC, precision, recall, the share of false alarms, milliseconds a pair."""
    rows = sample(measured.read_pairs(pairs, corpus or ()), limit, seed)
    if judge == BY_LLM:
        summary = measured.measure(rows, _asked(settings_of(settings, data_dir, model=model, backend=backend)), EVEN)
    else:
        trained = judge_of(Path(judge), _embedder(settings_of(settings, data_dir)))
        summary = measured.measure(rows, partial(_read, trained), trained.threshold)
    _tell({"judge": judge, **summary}, as_json)


def _read(judge: SuitabilityJudge, fact: str, text: str) -> float:
    return judge.clashes([fact], [text], Event())[0][0]


def _asked(settings: Settings) -> measured.Judge:
    with bar("Language model") as progress:
        return measured.by_llm(load_llm(settings, progress))


def _embedder(settings: Settings) -> Embedder:
    with bar("Encoder") as progress:
        return load_embedder(settings, progress)


def _tell(summary: dict[str, Any], as_json: bool) -> None:
    if as_json:
        out.print_json(json.dumps(summary))
        return
    table = Table("pairs", "of them clashing", "precision", "recall", "false alarms", box=None)
    for name, row in {"all": summary, **summary["kinds"]}.items():
        shares = (row["precision"], row["recall"], row["false_alarms"])
        table.add_row(
            f"{name} ({row['pairs']})", str(row["clashing"]), *("" if one is None else f"{one:.3f}" for one in shares)
        )
    out.print(table)
    auc = "unknown" if summary["auc"] is None else f"{summary['auc']:.3f}"
    out.print(f"AUC {auc}, {summary['ms']:.1f} ms a pair, at the threshold {summary['threshold']:g}.")
