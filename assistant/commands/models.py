"""`models`: lists the catalogue and what of it this computer can run, fetches models, and verifies them."""

from __future__ import annotations

import asyncio
from threading import Event
from typing import Annotated

import typer
from rich.table import Column

from assistant.commands.common import load_llm, print_table, print_text
from assistant.commands.option_groups import Group, ModelOptions, SettingsOptions, with_option_groups
from assistant.commands.progress_bars import bar_of_bytes
from assistant.commands.servers import app as servers_app
from assistant.errors import ModelError
from assistant.judges.adapted import BASE
from assistant.llm.catalogue import Catalogue, Entry
from assistant.llm.known_models import KnownModels
from assistant.llm.load import AUTO, model_of
from assistant.llm.rating import Rating, model_ratings
from assistant.llm.speed_test import MeasuredSpeed, speeds
from assistant.llm.speed_test import measure_speed as measure_engine
from assistant.settings import Settings

app = Group()
app.add_typer(servers_app, name="servers")
_GB = 1e9


@app.callback(invoke_without_command=True)
@with_option_groups
def rate(context: typer.Context, options: SettingsOptions) -> None:
    """Show which model answers and which ones run here; with a command: list, fetch, measure or verify models.

    A turn's time follows from the speed that `models measure` found, scaled by size where another model was measured.
    """
    if context.invoked_subcommand is None:
        settings = options.load_settings()
        print_text(_answering_model(settings))
        if judges_note := _missing_judges(settings):
            print_text(judges_note)
        _show_ratings(settings)
    elif options != SettingsOptions():
        raise typer.BadParameter(f"put the options behind `{context.invoked_subcommand}`")


@app.command()
def measure(options: ModelOptions) -> None:
    """Measure in some seconds how fast the model that the settings name reads and writes here, and store that."""
    settings = options.load_settings()
    with bar_of_bytes("Loading the model") as progress:
        engine = load_llm(settings, progress)
    speed = measure_engine(engine, settings, Event())
    if speed:
        print_text(_speed_sentence(speed))
        _show_ratings(settings, engine.name)


@app.command("list")
def list_models(
    servers: Annotated[
        bool, typer.Option("--servers", help="Instead, show the servers of language models that run on this computer.")
    ] = False,
    *,
    options: SettingsOptions,
) -> None:
    """Show the catalogue: names, sizes, contexts, licences, what is here already, and what each model is for."""
    if servers:
        _list_servers()
        return
    settings = options.load_settings()
    catalogue = Catalogue.load()
    for entry in catalogue.entries:
        names = " = ".join((entry.name, *entry.aliases))
        here = ", is here" if catalogue.is_here(entry.name, settings) else ""
        print_text(f"{names}: {_size(entry)}, {entry.context:,} tokens, {entry.terms}{here}\n    {entry.about}")
    print_text(f"Models are kept in {settings.models_dir}.")


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="A name of the catalogue, or a hub id.")],
    *,
    options: SettingsOptions,
) -> None:
    """Download a model and check it; a download that was broken off goes on where it stopped."""
    settings = options.load_settings()
    with bar_of_bytes(f"Fetching {name}") as progress:
        path = Catalogue.load().fetch(name, settings, progress)
    print_text(f"{name} is at {path}.")


@app.command()
def verify(
    name: Annotated[str, typer.Argument(help="A name of the catalogue; all that are here if left out.")] = "",
    *,
    options: SettingsOptions,
) -> None:
    """Read the files of models again and compare them with the hashes that they have to have."""
    settings = options.load_settings()
    catalogue = Catalogue.load()
    fetched = [entry.name for entry in catalogue.entries if entry.folder(settings).exists()]
    names = [name] if name else fetched
    errors = [error for error in (_verified(catalogue, model_name, settings) for model_name in names) if error]
    if errors:
        raise ModelError(" ".join(errors))
    if not names:
        print_text("No model has been fetched yet.")


def _answering_model(settings: Settings) -> str:
    """Which model the page answers with, as it is or would be started now."""
    start_model = KnownModels(settings).at_start()
    entry = Catalogue.load().entry(model_of(settings)) if start_model.id == AUTO else None
    title, about = (entry.name, entry.about) if entry else (start_model.title, start_model.about)
    return f"The page answers with {title} ({about})."


def _missing_judges(settings: Settings) -> str:
    """That the larger judges are not here, and what that means; "" where they are, or none is set."""
    larger = (settings.relevance.estimator, settings.turn.support, settings.facts.suitability)
    if "large" not in larger or Catalogue.load().is_here(BASE, settings):
        return ""
    return (
        f"The encoder of the larger judges ({BASE}, {_size(Catalogue.load().entry(BASE))}) is not here: the next start"
        " fetches it and, where it can't be had, smaller judges stand in for them."
    )


def _show_ratings(settings: Settings, running: str = "") -> None:
    ratings = model_ratings(settings, running)
    rows = []
    for rating in ratings:
        verdict = f"{rating.verdict}, the best" if rating.best else str(rating.verdict)
        turn = "not known" if rating.seconds is None else f"{rating.seconds:.0f} s"
        memory, here = f"{rating.needs / _GB:.1f} GB", "yes" if rating.here else "no"
        rows.append((_names(rating.entry), _size(rating.entry), memory, turn, verdict, here))
    print_table((Column("name", no_wrap=True), "size", "memory", "a turn", "on this computer", "here"), rows)
    for entry in (rating.entry for rating in ratings if not rating.entry.commercial):
        print_text(f"{entry.name} is under {entry.terms}.")
    print_text(_advice(ratings, settings))


def _advice(ratings: list[Rating], settings: Settings) -> str:
    """Where the times come from, or how to have some."""
    if all(rating.seconds is None for rating in ratings):
        return "How fast they would be isn't known yet: run `models measure`."
    newest = speeds(settings)[-1]
    return (
        f"{_speed_sentence(newest)} A turn should take {settings.llm.target_turn_seconds:.0f} s at most"
        " (llm.target_turn_seconds)."
    )


def _speed_sentence(speed: MeasuredSpeed) -> str:
    return (
        f"{speed.model} read {speed.read:.0f} and wrote {speed.written:.1f} tokens a second on {speed.backend}"
        f" ({speed.processor})."
    )


def _list_servers() -> None:
    from assistant.llm.servers.discovery import local_servers  # noqa: PLC0415 - takes a second to import

    servers = asyncio.run(local_servers())
    if servers:
        rows = ((server.kind, server.address, "\n".join(server.models) or "none") for server in servers)
        print_table(("server", "address", "models"), rows)
        print_text("Set llm.backend to server, llm.server to an address, and llm.model to one of its models.")
    else:
        print_text("No server of language models answers on this computer.")


def _verified(catalogue: Catalogue, name: str, settings: Settings) -> str:
    try:
        with bar_of_bytes(f"Verifying {name}") as progress:
            catalogue.verify(name, settings, progress)
    except ModelError as error:
        return str(error)
    print_text(f"{name} is whole.")
    return ""


def _names(entry: Entry) -> str:
    return entry.name + "".join(f"\n= {alias}" for alias in entry.aliases)


def _size(entry: Entry) -> str:
    return f"{entry.size / 1e6:.0f} MB" if entry.size else "size not known"
