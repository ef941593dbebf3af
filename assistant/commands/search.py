"""`search`: the library searched without a model."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape
from rich.padding import Padding

from assistant.commands.common import output_console, print_text
from assistant.commands.option_groups import SettingsOptions
from assistant.library.finding import EVERYTHING, RESULTS_MOST, find
from assistant.store.users import DEFAULT_USER


def search(
    words: Annotated[str, typer.Argument(help="What to search for.")],
    library: Annotated[
        str, typer.Option(help="A library, @NAME for a collection of your documents, or @all for everything.")
    ] = EVERYTHING,
    k: Annotated[int, typer.Option("--k", min=1, max=RESULTS_MOST, help="Passages at most.")] = 10,
    *,
    options: SettingsOptions,
) -> None:
    """Search passages for words, without a model."""
    results = find(words, library, DEFAULT_USER, options.load_settings(), k)
    if not results:
        print_text("No passage has these words.")
    for result in results:
        output_console.print(
            f"[bold]{escape(result.passage.title)}[/bold]  {escape(result.passage.source)}", highlight=False
        )
        text = "".join(
            f"[reverse]{escape(piece)}[/reverse]" if hit else escape(piece) for piece, hit in result.pieces()
        )
        output_console.print(Padding(text, (0, 0, 1, 2)), highlight=False)
