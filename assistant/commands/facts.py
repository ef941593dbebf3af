"""`facts`: what the assistant knows about a user."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assistant.commands.common import error_console, print_table, print_text
from assistant.commands.option_groups import Group, SettingsOptions
from assistant.errors import FactError
from assistant.store.database import connect
from ptkb.store import ImportReport, Ptkb

app = Group(help="What the assistant knows about you.", no_args_is_help=True)
User = Annotated[str, typer.Option(help="Whose facts.")]
FactId = Annotated[str, typer.Argument(metavar="ID", help="The fact's id, as `facts list` shows it.")]
Statement = Annotated[str, typer.Argument(metavar="TEXT", help="A sentence about yourself.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON, with all that is known of each fact.")]


@app.command("list")
def list_(user: User = "me", as_json: AsJson = False, *, options: SettingsOptions) -> None:
    """List the facts with their ids."""
    ptkb = _ptkb(options)
    if as_json:
        typer.echo(ptkb.export_json(user), nl=False)
        return
    rows = ((fact.id, fact.text, "yes" if fact.on else "no") for fact in ptkb.facts(user))
    print_table(("id", "fact", "on"), rows)


@app.command()
def add(text: Statement, user: User = "me", *, options: SettingsOptions) -> None:
    """Add a fact and print its id."""
    typer.echo(_ptkb(options).add(user, text).id)


@app.command()
def edit(
    fact: FactId,
    text: Statement,
    user: User = "me",
    *,
    options: SettingsOptions,
) -> None:
    """Change a fact's text."""
    _ptkb(options).edit(user, fact, text)


@app.command()
def remove(fact: FactId, user: User = "me", *, options: SettingsOptions) -> None:
    """Delete a fact."""
    _ptkb(options).remove(user, fact)


@app.command()
def on(fact: FactId, user: User = "me", *, options: SettingsOptions) -> None:
    """Let answers use a fact again."""
    _ptkb(options).switch(user, fact, on=True)


@app.command()
def off(fact: FactId, user: User = "me", *, options: SettingsOptions) -> None:
    """Keep a fact without using it."""
    _ptkb(options).switch(user, fact, on=False)


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="Text with a fact a line, or .json as `export --json` writes it.")],
    user: User = "me",
    *,
    options: SettingsOptions,
) -> None:
    """Add the facts of a file; what can't be added is reported and skipped."""
    text = _read(file)
    ptkb = _ptkb(options)
    _print_report(ptkb.import_json(user, text) if file.suffix.lower() == ".json" else ptkb.import_text(user, text))


@app.command()
def export(user: User = "me", as_json: AsJson = False, *, options: SettingsOptions) -> None:
    """Print all facts, one a line or as JSON, so that they can be imported again."""
    ptkb = _ptkb(options)
    typer.echo(ptkb.export_json(user) if as_json else ptkb.export_text(user), nl=False)


def _ptkb(options: SettingsOptions) -> Ptkb:
    return Ptkb(connect(options.load_settings().database_url))


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FactError(f"{file} is not UTF-8 text; save it as UTF-8 and try again.") from error
    except OSError as error:
        raise FactError(f"{file} can't be read ({error.strerror}); check the path.") from error


def _print_report(report: ImportReport) -> None:
    error_console.print(f"{len(report.added)} added, {len(report.skipped)} skipped.")
    for entry in report.skipped:
        print_text(f"  {entry.number}: {entry.text}: {entry.reason}", error_console)
