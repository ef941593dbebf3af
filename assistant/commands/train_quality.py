"""`train quality`: a classifier that learns from labelled texts which passages are reliable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from assistant.commands.bars import bar
from assistant.commands.common import talk, writing
from assistant.commands.experiment import show
from assistant.errors import DataError
from assistant.experiment.options import AsJson
from assistant.experiment.report import markdown


def quality(
    *,
    data: Annotated[Path, typer.Option(help="Texts: a .jsonl[.gz] file of {text, label, source, split}.")],
    into: Annotated[Path, typer.Option("--out", help="The file for the model, .npz; its report goes beside it.")],
    unseen: Annotated[
        bool, typer.Option("--unseen", help="Also measure every source by a model that never saw it; takes minutes.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Decides the interval.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Train the classifier of passage quality: reliable, unreliable or junk."""
    from assistant.evaluation import quality as measured  # noqa: PLC0415 - scikit-learn

    if into.suffix.lower() != ".npz":  # its report's files differ from it in this alone
        raise DataError(f"The model goes into a .npz file, beside which its report is written; {into.name} is none.")
    examples = measured.read_examples(data)
    with bar("Training") as progress:
        progress(0, 1)
        model = measured.train(examples)
    model.save(into)
    summary = measured.measure(model, examples, seed)
    if unseen:
        with bar("Sources") as progress:
            summary["unseen"] = measured.unseen(examples, progress)
    tables = markdown(summary)
    beside = into.with_suffix(".md")
    with writing(beside):
        into.with_suffix(".json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
        beside.write_text(tables + "\n", encoding="utf-8")
    show(summary, tables, as_json)
    talk.print(f"The model is in {into}, its report in {beside}.", highlight=False, markup=False, soft_wrap=True)
