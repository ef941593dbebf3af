"""The command line: `python -m assistant --help`."""

from __future__ import annotations

import sys

import typer
from rich.text import Text

from assistant.commands import (
    ask,
    bench,
    evaluate,
    facts,
    ikat,
    index,
    models,
    train,
    train_blend,
    train_joint,
    train_quality,
    train_reader,
    train_suitability,
    train_support,
    users,
)
from assistant.commands.common import talk
from assistant.commands.ending import MENDABLE, end_with
from assistant.errors import SequiturError

app = typer.Typer(
    name="python -m assistant",
    help="Sequitur: a personal assistant whose answers follow from sources.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command()(ask.ask)
app.command()(ask.chat)
app.command("index")(index.index)
app.add_typer(models.app, name="models")
app.add_typer(facts.app, name="facts")
app.add_typer(users.app, name="users")
app.add_typer(evaluate.app, name="evaluate")
app.add_typer(train.app, name="train")
train.app.command()(train_quality.quality)
train.app.command()(train_reader.reader)
train.app.command()(train_suitability.suitability)
train.app.command()(train_support.support)
train.app.command()(train_joint.joint)
train.app.command()(train_blend.blend)
app.command("ikat")(ikat.ikat)
app.command("ikat-validate")(ikat.validate)
app.command("ikat-index")(ikat.index)
app.add_typer(bench.app, name="bench")


def main() -> None:
    """Run a command; an error that a person can mend is one sentence and exit code 2."""
    try:
        app()
    except SequiturError as error:
        talk.print(Text.assemble(("Error:", "red"), f" {error}"), soft_wrap=True)
        sys.exit(MENDABLE)


if __name__ == "__main__":
    end_with(main)
