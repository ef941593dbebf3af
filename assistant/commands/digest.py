"""`digest`: work on whole documents."""

from __future__ import annotations

import json
from threading import Event
from typing import Annotated

import typer
from rich.live import Live
from rich.markdown import Markdown

from assistant import turn as flow
from assistant.commands.ask import show_sources, stopping
from assistant.commands.common import out, ready, talk
from assistant.commands.option_groups import Modelled, Way, spread
from assistant.errors import SequiturError
from assistant.parts import Loader
from assistant.settings import Settings
from assistant.types import Task, Turn
from assistant.whole.documents import named_work, read_documents
from assistant.whole.plan import check, cost
from assistant.whole.speed import told
from assistant.whole.work import title
from assistant.wording.replies import reply
from assistant.wording.views import as_json, headline, waits


@spread
def digest(
    documents: Annotated[list[str], typer.Argument(help="Documents of the library, by name or id: one, or two.")],
    task: Annotated[
        Task, typer.Option(help="Sum one up, compare two, tell what changed from one to the next, or make a table.")
    ] = "summary",
    columns: Annotated[str, typer.Option(help="What a table holds: its columns, such as 'item, price'.")] = "",
    library: Annotated[str, typer.Option(help="The library that they are in.")] = "mine",
    as_data: Annotated[bool, typer.Option("--json", help="Print the turn as JSON.")] = False,
    *,
    usual: Modelled,
) -> None:
    """Read whole documents from beginning to end, and tell what they say, every line with its source.

    Says first how many passages that is, and about how long it takes. Ctrl-C stops it and keeps what was done.
    """
    settings = usual.knobs(library=library)
    named = [one for name in columns.split(",") if (one := name.strip())]
    work = named_work(task, documents, named, library, settings)
    check(work)
    passages = read_documents(work, library, settings)
    cost(work, passages)
    turn = Turn(title(work), choices=Way().choices(settings), work=work, passages=tuple(passages))
    loader = ready(settings)
    talk.print(_cost(turn, loader, settings), style="dim")
    turn = _done(turn, loader, as_data)
    if as_data:
        out.print_json(json.dumps(as_json(turn)))
    else:
        show_sources(turn)
    if turn.status == "failed":
        raise SequiturError(turn.error)


def _cost(turn: Turn, loader: Loader, settings: Settings) -> str:
    running = loader.models.running
    return told(turn.work, turn.passages, running.engine if running else None, settings) if turn.work else ""


def _done(turn: Turn, loader: Loader, quiet: bool) -> Turn:
    stop = Event()
    with stopping(stop), Live(console=talk if quiet else out, refresh_per_second=4, transient=quiet) as live:
        for turn in flow.run(turn, loader.parts("me", turn.choices), stop):
            text, far = reply(turn.answer), waits(turn)
            live.update(Markdown(f"{text}\n\n{far}") if not quiet else f"{headline(turn)} {far}")
    return turn
