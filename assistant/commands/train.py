"""`train`: the parts that learn."""

from __future__ import annotations

import typer

from assistant.commands.train_blend import blend
from assistant.commands.train_joint import joint
from assistant.commands.train_quality import quality
from assistant.commands.train_reader import reader
from assistant.commands.train_relevance import pack, relevance
from assistant.commands.train_suitability import suitability
from assistant.commands.train_support import support

app = typer.Typer(help="Train the parts that learn.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Train the parts that learn."""


for command in (relevance, pack, quality, reader, suitability, support, joint, blend):
    app.command()(command)
