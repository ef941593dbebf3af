"""`models`: what the catalogue holds, fetching it, and checking it."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from assistant.commands.bars import bar_of_bytes
from assistant.commands.common import DataDir, SettingsFile, out, settings_of
from assistant.commands.servers import app as servers_app
from assistant.errors import ModelError
from assistant.llm.catalogue import Catalogue, Entry
from assistant.settings import Settings

app = typer.Typer(help="List, fetch and verify the models that Sequitur knows.", no_args_is_help=True)
app.add_typer(servers_app, name="servers")


@app.command("list")
def list_models(
    servers: Annotated[
        bool, typer.Option("--servers", help="Show the servers that run on this computer instead.")
    ] = False,
    settings_file: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Show the catalogue: names, sizes, licences, what is here already."""
    if servers:
        _list_servers()
        return
    settings = settings_of(settings_file, data_dir)
    catalogue = Catalogue.load()
    table = Table("name", "size", "context", "licence", "here", "what for", box=None)
    for entry in catalogue.entries:
        here = "yes" if catalogue.is_here(entry.name, settings) else "no"
        table.add_row(_names(entry), _size(entry), str(entry.context), entry.licence, here, entry.about)
    out.print(table)
    out.print(f"Models are kept in {settings.models_dir}.", soft_wrap=True, highlight=False)


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="A name of the catalogue, or a hub id.")],
    settings_file: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Download a model and check it; a download that was broken off goes on where it stopped."""
    settings = settings_of(settings_file, data_dir)
    with bar_of_bytes(f"Fetching {name}") as progress:
        path = Catalogue.load().fetch(name, settings, progress)
    out.print(f"{name} is at {path}.", soft_wrap=True, highlight=False, markup=False)


@app.command()
def verify(
    name: Annotated[str, typer.Argument(help="A name of the catalogue; all that are here if left out.")] = "",
    settings_file: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Read models' files again and compare them with their pinned hashes."""
    settings = settings_of(settings_file, data_dir)
    catalogue = Catalogue.load()
    names = [name] if name else _fetched(catalogue, settings)
    errors = [error for error in (_verified(catalogue, each, settings) for each in names) if error]
    if errors:
        raise ModelError(" ".join(errors))
    if not names:
        out.print("No model has been fetched yet.")


def _list_servers() -> None:
    from assistant.llm.servers.meet import on_this_computer  # noqa: PLC0415 - takes a second to import

    found = asyncio.run(on_this_computer())
    table = Table("server", "address", "models", box=None)
    for server in found:
        table.add_row(server.kind, server.address, "\n".join(map(escape, server.models)) or "none")
    if found:
        out.print(table)
        out.print(
            "Set llm.backend to server, llm.server to an address, and llm.model to one of its models.", soft_wrap=True
        )
    else:
        out.print("No server of language models answers on this computer.")


def _fetched(catalogue: Catalogue, settings: Settings) -> list[str]:
    return [entry.name for entry in catalogue.entries if entry.folder(settings).exists()]


def _verified(catalogue: Catalogue, name: str, settings: Settings) -> str:
    try:
        with bar_of_bytes(f"Verifying {name}") as progress:
            catalogue.verify(name, settings, progress)
    except ModelError as error:
        return str(error)
    out.print(f"{name} is whole.", highlight=False, markup=False)
    return ""


def _names(entry: Entry) -> str:
    return entry.name + "".join(f"\n= {alias}" for alias in entry.aliases)


def _size(entry: Entry) -> str:
    return f"{entry.size / 1e6:.0f} MB" if entry.size else "not pinned"
