"""What the commands share: common options, settings from them, and loading with progress bars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, Any

import typer
from rich import progress as rich_progress
from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from assistant import parts
from assistant.commands.exit_status import at_end
from assistant.errors import DataError, SettingsError, disk_errors_as
from assistant.library import starter
from assistant.library.shelves import check_is_built
from assistant.parts import Loader, LoadingStage
from assistant.protocols import Engine, Progress
from assistant.settings import RetrieverName, Settings, load

# Messages for people go to the error stream, so that with `--json` the output is for programs only.
error_console = Console(stderr=True)
output_console = Console()
# The library of what was indexed on the command line, where no other is named.
DEFAULT_LIBRARY = "documents"


def print_text(text: str, console: Console = output_console) -> None:
    """Print a text as it is: brackets are no markup, numbers have no colours, and no line is broken to fit."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def print_table(heads: Sequence[str | Column], rows: Iterable[Sequence[str]]) -> None:
    """Print a table whose cells are texts as they are: brackets are no markup, and no word is cut off."""
    table = Table(*(head if isinstance(head, Column) else Column(head, overflow="fold") for head in heads), box=None)
    for row in rows:
        table.add_row(*map(Text, row))
    output_console.print(table)


def _folder(path: str) -> Path:
    """The folder; an empty path would be the current one, in which nobody would look for their data."""
    if not path:
        raise typer.BadParameter("it is empty; name a folder, or leave the option out.")
    return Path(path)


Model = Annotated[str | None, typer.Option(help="The language model, as in the setting llm.model.")]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", parser=_folder, metavar="<path>", help="The folder that everything is written to."),
]
# Tables that compare ways to answer search as the papers do, unless told otherwise.
ComparedRetriever = Annotated[
    RetrieverName,
    typer.Option("--retriever", help="How passages are found: by words (bm25), by meaning (dense), or both (hybrid)."),
]


def by_words(settings: Settings) -> Settings:
    """The settings for a command that searches by words alone, whatever they say of it."""
    return settings.changed(retrieve={"retriever": "bm25"})


def settings_of(file: Path | None, data_dir: Path | None, **overrides: Any) -> Settings:
    """The settings, with what the command line says on top.

    `overrides` are top-level settings, and sections as dictionaries; options that were left out (None, "") say nothing.
    """
    return load(file, **_without_unset({"data_dir": data_dir, **overrides}))


def _without_unset(options: Mapping[str, Any]) -> dict[str, Any]:
    values = {name: _without_unset(value) if isinstance(value, dict) else value for name, value in options.items()}
    return {name: value for name, value in values.items() if value is not None and value != ""}


def create_results_folder(folder: Path | None) -> None:
    """Create the folder for results, if one is named, before a measurement whose results would be lost without it.

    Raises:
        DataError: the folder can't be made, or takes no files.
    """
    if folder:
        with report_write_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=folder):
                pass


def report_write_errors(folder: Path) -> AbstractContextManager[None]:
    """Within this, what can't be written to `folder` is a `DataError` that says what to do."""
    return disk_errors_as(DataError, f"The results can't be written to {folder}")


def prompt_secret(title: str, confirmation: str = "") -> str:
    """What a person types unseen, asked for once more with the words of `confirmation` where there are any.

    Raises:
        SettingsError: nothing was typed, or not the same again.
    """
    try:
        return str(typer.prompt(title, hide_input=True, confirmation_prompt=confirmation or False, err=True))
    except typer.Abort as error:
        raise SettingsError(f"No {title.lower()} was typed, so nothing was done; type it at a terminal.") from error


def load_with_bars(settings: Settings) -> Loader:
    """Load everything, with a bar for each stage on the error stream; it is closed when the command ends.

    A missing library is reported before anything is loaded.

    Raises:
        SequiturError: something could not be loaded.
    """
    if settings.library != starter.NAME:
        check_is_built(settings.library, settings)
    loader = Loader(settings)
    at_end(loader.close)
    loader.start()
    show_loading(loader)
    if loader.notice:
        error_console.print(loader.notice, style="yellow", markup=False)
    return loader


def load_llm(settings: Settings, progress: Progress) -> Engine:
    """The language model that the settings name, fetched if need be; it is closed when the command ends.

    Raises:
        ModelError: it can't be fetched, trusted or loaded.
    """
    llm = parts.load_llm(settings, progress)
    at_end(llm.close)
    return llm


def show_loading(loader: Loader) -> None:
    """Show the stages of a loader until it has finished."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with rich_progress.Progress(*columns, console=error_console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def show(stages: tuple[LoadingStage, ...]) -> None:
            for stage in stages:
                if stage.name not in tasks:
                    tasks[stage.name] = bars.add_task(stage.name, total=None)
                task = tasks[stage.name]
                bars.update(task, total=1.0 if stage.fraction is not None else None, completed=stage.fraction or 0.0)

        loader.wait(show)
