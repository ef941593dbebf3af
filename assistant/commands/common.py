"""What the commands share: settings from the common options, loading with bars, and stores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from assistant.parts import Loader, Stage
from assistant.settings import Settings, load

# What is said to a person goes to the error stream, so that `--json` leaves the output to programs.
talk = Console(stderr=True)
out = Console()

SettingsFile = Annotated[Path | None, typer.Option("--settings", help="A TOML file with settings.", show_default=False)]
DataDir = Annotated[
    Path | None, typer.Option("--data-dir", help="The folder that everything is written to.", show_default=False)
]


def settings_of(file: Path | None, data_dir: Path | None, **overrides: object) -> Settings:
    """The settings, with what the command line says on top."""
    given = {"data_dir": data_dir, **overrides}
    return load(file, **{key: value for key, value in given.items() if value is not None})


def ready(settings: Settings) -> Loader:
    """Load everything, with a bar for each stage on the error stream.

    Raises:
        SequiturError: something could not be loaded.
    """
    loader = Loader(settings)
    loader.start()
    watch(loader)
    return loader


def watch(loader: Loader) -> None:
    """Show the stages of a loader until it has finished."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=talk, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def show(stages: tuple[Stage, ...]) -> None:
            for stage in stages:
                if stage.name not in tasks:
                    tasks[stage.name] = bars.add_task(stage.name, total=None)
                task = tasks[stage.name]
                bars.update(task, total=1.0 if stage.fraction is not None else None, completed=stage.fraction or 0.0)

        loader.wait(show)
