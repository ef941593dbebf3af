"""`digest`: work on whole documents."""

from __future__ import annotations

from typing import Annotated

import typer

from assistant.commands.ask import finish, run
from assistant.commands.common import DEFAULT_LIBRARY, error_console, load_with_bars
from assistant.commands.option_groups import ModelOptions
from assistant.commands.turn_options import TurnOptions
from assistant.types import Turn, WorkKind
from assistant.whole.documents import named_work, read_documents
from assistant.whole.plan import check, cost
from assistant.whole.speed import cost_sentence
from assistant.whole.work import title


def digest(
    documents: Annotated[list[str], typer.Argument(help="Documents of the library, by name or id: one, or two.")],
    task: Annotated[
        WorkKind, typer.Option(help="Sum one up, compare two, tell what changed from one to the next, or make a table.")
    ] = "summary",
    columns: Annotated[str, typer.Option(help="The columns of a table, such as 'item, price'.")] = "",
    library: Annotated[str, typer.Option(help="The library that they are in.")] = DEFAULT_LIBRARY,
    as_data: Annotated[bool, typer.Option("--json", help="Print the turn as JSON.")] = False,
    *,
    options: ModelOptions,
) -> None:
    """Read whole documents from beginning to end, and tell what they say, every line with its source.

    Says first how many passages that is, and about how long it takes. Ctrl-C stops it and keeps what was done.
    """
    settings = options.load_settings(library=library)
    column_names = [column for name in columns.split(",") if (column := name.strip())]
    work = named_work(task, documents, column_names, library, settings)
    check(work)
    passages = read_documents(work, library, settings)
    cost(work, passages)
    turn = Turn(title(work), choices=TurnOptions().choices(settings), work=work, passages=tuple(passages))
    loader = load_with_bars(settings)
    running = loader.models.running
    error_console.print(cost_sentence(work, turn.passages, running.engine if running else None, settings), style="dim")
    finish(run(turn, loader, quiet=as_data), as_data)
