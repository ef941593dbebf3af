"""`search`: the library searched without a model."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.padding import Padding

from assistant.commands.common import out, say
from assistant.commands.option_groups import SettingsOptions
from assistant.library.finding import MOST, find
from assistant.store.users import ME


def search(
    words: Annotated[str, typer.Argument(help="What to search for.")],
    library: Annotated[
        str, typer.Option(help="The library; with @ before it, a collection of your documents.")
    ] = "mine",
    k: Annotated[int, typer.Option("--k", min=1, max=MOST, help="Passages at most.")] = 10,
    *,
    options: SettingsOptions,
) -> None:
    """Search a library's passages for words, without a model."""
    found = find(words, library, ME, options.load_settings(), k)
    if not found:
        say(f"No passage of '{library}' has these words.")
    for one in found:
        out.print(f"[bold]{escape(one.passage.title)}[/bold]  {escape(one.passage.source)}", highlight=False)
        text = "".join(f"[reverse]{escape(piece)}[/reverse]" if hit else escape(piece) for piece, hit in one.pieces())
        out.print(Padding(text, (0, 0, 1, 2)), highlight=False)
