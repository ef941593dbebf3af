"""The command line: `python -m assistant --help`, or `sequitur --help` where Sequitur is installed."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, NoReturn

import typer
from rich.text import Text
from typer.core import TyperGroup
from typer.main import get_group

from assistant.commands.exit_status import USER_ERROR, end_with
from assistant.errors import SequiturError, SettingsError

# Where each command is, and its summary: the help needs no more, and imports none of them.
COMMANDS = {
    "ask": ("assistant.commands.ask:ask", "Ask one question and print the answer with its sources."),
    "chat": (
        "assistant.commands.ask:chat",
        "Talk in the terminal; an empty line or Ctrl-D ends it, Ctrl-C stops an answer.",
    ),
    "serve": ("assistant.commands.serve:serve", "Serve Sequitur's page, and load the models meanwhile."),
    "mcp": (
        "assistant.commands.mcp:mcp",
        "Answer programs that speak the Model Context Protocol, with one tool, `ask`; they start this command.",
    ),
    "index": (
        "assistant.commands.index:index",
        "Index documents, so that they can be searched and asked about with --library.",
    ),
    "digest": (
        "assistant.commands.digest:digest",
        "Read whole documents from beginning to end, and tell what they say, every line with its source.",
    ),
    "search": ("assistant.commands.search:search", "Search passages for words, without a model."),
    "ikat": (
        "assistant.commands.ikat:ikat",
        "Play the conversations of TREC iKAT turn by turn and write the run that the track wants.",
    ),
    "ikat-validate": ("assistant.commands.ikat:validate", "Check a run against the rules of TREC iKAT."),
    "ikat-index": (
        "assistant.commands.ikat:index",
        "Cut ClueWeb22 into the passages of TREC iKAT and index them, so that `ikat --index` can search them.",
    ),
    "models": (
        "assistant.commands.models:app",
        "Show which model answers and which ones run here; with a command: list, fetch, measure or verify models.",
    ),
    "facts": ("assistant.commands.facts:app", "What the assistant knows about you."),
    "users": (
        "assistant.commands.users:app",
        "Logins for a page that other computers can reach, and tokens for programs.",
    ),
    "backup": (
        "assistant.commands.backup:backup",
        "Write everything that people told and added to one file; the page may go on running.",
    ),
    "restore": ("assistant.commands.backup:restore", "Put back what `backup` wrote; what is there now is kept aside."),
    "evaluate": ("assistant.commands.evaluate:app", "Measure answers, rankings and rewriting on real data."),
    "reproduce": (
        "assistant.commands.reproduce:reproduce",
        "Make tables of docs/results again, from raw files to Markdown, and store their rows; or list them.",
    ),
    "train": ("assistant.commands.train:app", "Train the parts that learn."),
    "bench": ("benchmarks.commands:app", "Measure speed and memory."),
}


class CommandLine(TyperGroup):
    """Imports a command when it is asked for, so that help comes at once."""

    # what typer has of click is private to it, hence Any
    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Put the command itself in the place of its summary."""
        name, summary, remaining = super().resolve_command(ctx, args)
        return name, load(name) if name else summary, remaining


def load(name: str) -> Any:
    """The command of that name, or the group of commands.

    Raises:
        SettingsError: it is not part of what is installed.
    """
    from assistant.commands.option_groups import Group  # noqa: PLC0415 - the help needs none of what it imports

    module, attribute = COMMANDS[name][0].split(":")
    try:
        command_or_group = getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name != "benchmarks":
            raise
        raise SettingsError(
            "The benchmarks come with Sequitur's source alone: run `python -m assistant bench` in a checkout of it."
        ) from error
    group = Group(rich_markup_mode=None)
    if isinstance(command_or_group, typer.Typer):
        group.add_typer(command_or_group, name=name)
    else:
        group.command(name)(command_or_group)
    return get_group(group).commands[name]


app = typer.Typer(
    name="python -m assistant",
    cls=CommandLine,
    help="Sequitur: a personal assistant whose answers follow from sources.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command, (_, summary) in COMMANDS.items():
    app.command(command, help=summary)(lambda: None)


def main() -> None:
    """Run a command; an error that a person can mend is one sentence and exit code 2."""
    try:
        app()
    except SequiturError as error:
        from assistant.commands.common import error_console  # noqa: PLC0415 - the help needs none of what it imports

        error_console.print(Text.assemble(("Error:", "red"), f" {error}"), soft_wrap=True)
        sys.exit(USER_ERROR)


def run() -> NoReturn:
    """Run a command, and end the process as it ended."""
    end_with(main)


if __name__ == "__main__":
    run()
