"""`bench memory`: how much memory the process holds after so many turns."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.table import Table

from assistant.commands.common import (
    Backend,
    DataDir,
    Model,
    SettingsFile,
    out,
    ready,
    settings_of,
    talk,
    usual_choices,
)
from assistant.types import Turn
from benchmarks.memory import held_after

TURNS = (20, 50, 100, 200)


def memory(
    turns: Annotated[
        list[int] | None,
        typer.Option(min=1, help="Look after so many turns; may be repeated.", show_default="20 to 200"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
    model: Model = "smollm2-135m",
    backend: Backend = None,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Ask as the page does, up to 200 different questions, and tell what memory is held after 20, 50, 100 and all."""
    knobs = settings_of(settings, data_dir, model=model, backend=backend)
    loader = ready(knobs)
    choices = usual_choices(knobs)
    name = loader.parts("me", choices).llm.name
    with TemporaryDirectory() as folder:
        held = held_after(sorted(turns or TURNS), loader, choices, Path(folder), _tell)
    found = {"model": name, "held_gb": held, "growth": held[max(held)] / held[min(held)] - 1}
    if as_json:
        out.print_json(json.dumps(found))
        return
    table = Table("turns", "held", title=name)
    for n, gb in held.items():
        table.add_row(str(n), f"{gb:.2f} GB")
    out.print(table)
    out.print(f"Growth from the first to the last: {found['growth']:+.1%}")


def _tell(n: int, turn: Turn) -> None:
    talk.print(f"{n:4} {turn.seconds:5.1f} s  {turn.status}  {turn.utterance}", style="dim", markup=False)
