"""`train reader`: the cross-encoder of the suitability judge, which reads fact and text together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assistant.commands.bars import bar
from assistant.commands.common import talk
from assistant.commands.experiment import Basic, embedder_of, show, spread
from assistant.experiment.options import Seed
from assistant.experiment.report import markdown
from assistant.judges.suitability.knowledge import SHIPPED
from assistant.judges.support.trained import SHIPPED as SUPPORT


@spread
def reader(  # noqa: PLR0913 - the training's knobs
    *,
    into: Annotated[Path, typer.Option("--out", help="The folder for the model; a training that is there goes on.")],
    tables: Annotated[Path, typer.Option(help="What `train suitability` learned, which it is weighed with.")] = SHIPPED,
    base: Annotated[Path, typer.Option(help="The folder of a cross-encoder or encoder to start from.")] = SUPPORT,
    pairs: Annotated[
        list[Path] | None,
        typer.Option(
            help="More development pairs to choose weight and threshold on, as `evaluate suitability` reads them; may "
            "be given again.",
            show_default=False,
        ),
    ] = None,
    corpus: Annotated[
        list[Path] | None,
        typer.Option(help="Passages that pairs point into; may be given again.", show_default=False),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Pairs of a step.")] = 32,
    rate: Annotated[float, typer.Option(min=0, help="AdamW's highest learning rate.")] = 1e-4,
    seed: Seed = 0,
    usual: Basic,
) -> None:
    """Train the reader of the suitability judge, and weigh it with the tags; pack it with `train pack`."""
    from assistant.evaluation.suitability import read_pairs  # noqa: PLC0415
    from assistant.judges.suitability.reader import LENGTH  # noqa: PLC0415
    from assistant.training.loop import MODEL  # noqa: PLC0415 - torch
    from assistant.training.suitability.reader import train  # noqa: PLC0415 - torch
    from assistant.training.trainer import Plan  # noqa: PLC0415 - torch

    more = {f"of {path.name}": read_pairs(path, corpus or ()) for path in pairs or ()}
    embedder = embedder_of(usual.knobs())
    plan = Plan(str(base), batch=batch, rate=rate, length=LENGTH, seed=seed, dropout=0.0, save_every=150)
    with bar("Steps") as progress:
        summary = train(into, plan, tables, embedder, progress, more)
    show(summary, markdown(summary), usual.as_json)
    talk.print(f"The best model and its blend are in {into / MODEL}; pack it with `train pack`.", soft_wrap=True)
