"""`train support`: a small judge that learns what a passage says, as a reply to a question."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assistant.commands.bars import bar
from assistant.commands.common import talk
from assistant.commands.experiment import Basic, show, spread
from assistant.experiment.options import Seed
from assistant.experiment.report import markdown


@spread
def support(  # noqa: PLR0913 - the training's knobs
    *,
    data: Annotated[
        Path,
        typer.Option(help="A folder with squad/, nq/, hotpotqa/ and 2wikimultihopqa/, each with corpus and questions."),
    ],
    into: Annotated[Path, typer.Option("--out", help="The folder for the model; a training that is there goes on.")],
    base: Annotated[
        str, typer.Option(help="The encoder to start from: a name of the catalogue, a hub id or a folder.")
    ] = "all-MiniLM-L6-v2",
    pairs: Annotated[int, typer.Option(min=100, help="Pairs to learn from at most, each once.")] = 16_000,
    batch: Annotated[int, typer.Option(min=1, help="Pairs of a step.")] = 16,
    rate: Annotated[float, typer.Option(min=0, help="AdamW's highest learning rate.")] = 1e-4,
    length: Annotated[int, typer.Option(min=16, max=512, help="Leave out pairs of more tokens than that.")] = 256,
    hand: Annotated[
        Path | None,
        typer.Option(
            help="Pairs labelled by hand: the threshold is chosen on their split 'dev', too.", show_default=False
        ),
    ] = None,
    seed: Seed = 0,
    usual: Basic,
) -> None:
    """Train the support judge on pairs made from question sets, by a recipe; pack it with `train pack`."""
    from assistant.llm.catalogue import Catalogue  # noqa: PLC0415
    from assistant.training.loop import MODEL  # noqa: PLC0415 - torch
    from assistant.training.support.train import hold_out, train  # noqa: PLC0415 - torch
    from assistant.training.trainer import Plan  # noqa: PLC0415 - torch

    with bar("Encoder") as progress:
        folder = Catalogue.load().resolve(base, usual.knobs(), progress)
    plan = Plan(str(folder), batch=batch, rate=rate, length=length, seed=seed, dropout=0.0, save_every=200)
    with bar("Steps") as progress:
        summary = train(into, plan, data, pairs, progress, hand)
    misses = hold_out(into, data, seed)
    show({**summary, "near_misses": str(misses)}, markdown(summary), usual.as_json)
    talk.print(f"The best model is {into / MODEL}; measure it with `evaluate support --judge`, as on {misses}.")
