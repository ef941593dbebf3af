"""`train suitability`: teaches the judge of what clashes with what a person says of themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assistant.commands.common import talk
from assistant.commands.experiment import Basic, embedder_of, show, spread
from assistant.experiment.options import Seed
from assistant.experiment.report import markdown


@spread
def suitability(
    *,
    into: Annotated[Path, typer.Option("--out", help="The folder for what was learned.")],
    seed: Seed = 0,
    usual: Basic,
) -> None:
    """Teach the suitability judge the tables that come with Sequitur, for the embedder that is set; about a minute."""
    from assistant.training.suitability.train import train  # noqa: PLC0415 - scikit-learn

    summary = train(into, embedder_of(usual.knobs()), seed)
    show(summary, markdown({"groups of facts": summary["test"]}), usual.as_json)
    talk.print(f"The judge is in {into}; measure it with `evaluate suitability --judge {into}`.")
