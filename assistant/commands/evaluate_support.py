"""`evaluate support`: is what a passage says told from what only sounds alike?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from assistant.commands.bars import bar
from assistant.commands.common import Backend, DataDir, Model, SettingsFile, out, settings_of
from assistant.commands.experiment import AsJson, Limit, Seed
from assistant.experiment.datasets import sample
from assistant.parts import load_embedder, load_llm
from assistant.protocols import SupportJudge, silent
from assistant.settings import Settings

SHIPPED, BY_LLM, ADDRESSES = "shipped", "llm", "addresses"


def support(  # noqa: PLR0913 - the experiment's knobs
    *,
    pairs: Annotated[
        Path, typer.Option(help="A .jsonl[.gz] file of {question, claim, title, evidence, label}, the first optional.")
    ],
    judge: Annotated[
        str,
        typer.Option(
            help="'shipped', the folder of a trained judge, 'llm': the language model's yes or no, or 'addresses': "
            "whether it finds that the claim answers the question as the evidence tells."
        ),
    ] = SHIPPED,
    split: Annotated[str, typer.Option(help="Only pairs of this split, where the file names any.")] = "",
    limit: Limit = None,
    seed: Seed = 0,
    model: Model = None,
    backend: Backend = None,
    as_json: AsJson = False,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """How well is "supported" told from the rest? AUC, balanced accuracy, precision, recall, milliseconds a pair."""
    from assistant.evaluation import support as measured  # noqa: PLC0415

    every = measured.read_pairs(pairs, split)
    rows = sample(every, limit, seed) if limit else every
    asked = _judge(judge, settings_of(settings, data_dir, model=model, backend=backend))
    scores = measured.by_judge(asked)
    with bar("Pairs") as progress:
        found = {"judge": judge, **measured.measure(rows, scores, asked.threshold, lambda n: progress(n, len(rows)))}
    if as_json:
        out.print_json(json.dumps(found))
        return
    table = Table("pairs", "right", box=None)
    for name, right in found["right"].items():
        table.add_row(name, right)
    out.print(table)
    shares = ", ".join(
        f"{name.replace('_', ' ')} {found[name]:.3f}"
        for name in ("auc", "balanced_accuracy", "precision", "recall")
        if found[name] is not None
    )
    out.print(f"{len(rows)} pairs: {shares}, {found['ms']:.1f} ms a pair, at the threshold {asked.threshold:g}.")


def _judge(name: str, knobs: Settings) -> SupportJudge:
    from assistant.judges.support.trained import SHIPPED as FOLDER  # noqa: PLC0415
    from assistant.judges.support.trained import Support  # noqa: PLC0415

    if name == BY_LLM:
        from assistant.judges.support.llm import ByLLM  # noqa: PLC0415

        return ByLLM(load_llm(knobs, silent), knobs.turn.support_threshold, load_embedder(knobs, silent))
    if name == ADDRESSES:
        from assistant.judges.addresses import Addresses  # noqa: PLC0415

        return Addresses(load_llm(knobs, silent), Support(FOLDER), knobs.turn.addresses_threshold)
    return Support(FOLDER if name == SHIPPED else Path(name))
