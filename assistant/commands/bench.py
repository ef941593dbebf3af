"""`bench`: speed and memory, measured side by side in one run."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from assistant.commands.bench_retrieval import retrieval
from assistant.commands.bench_strategies import strategies
from assistant.commands.common import (
    Backend,
    DataDir,
    Model,
    SettingsFile,
    out,
    ready,
    results_folder,
    settings_of,
    talk,
    writing,
)
from assistant.evaluation.bench_turn import Timing, bench, medians, peak_memory
from assistant.types import Choices

app = typer.Typer(help="Measure speed and memory.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Measure speed and memory."""


app.command()(retrieval)
app.command()(strategies)


@app.command()
def turn(
    runs: Annotated[
        int, typer.Option(min=1, help="Times that all questions are asked; the first is the cold one.")
    ] = 2,
    into: Annotated[Path | None, typer.Option("--out", help="A folder for turn.json.", show_default=False)] = None,
    model: Model = None,
    backend: Backend = None,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Time whole turns over twelve real questions: first source, first word, the model's share, memory."""
    wanted = settings_of(settings, data_dir, model=model, backend=backend)
    results_folder(into)
    loader = ready(wanted)
    knobs = loader.settings
    loop, k = knobs.turn.loop, knobs.retrieve.k_for(knobs.turn.loop)
    choices = Choices(knobs.turn.strategy, loop, k, knobs.library, retriever=knobs.retrieve.retriever)
    parts = loader.parts("me", choices)
    rounds = [bench(parts, choices, each=_tell) for _ in range(runs)]
    for name, timings in zip(("cold", *["warm"] * (runs - 1)), rounds, strict=True):
        out.print(_table(name, timings))
    out.print(f"Model {parts.llm.name}; peak memory {peak_memory():.2f} GB")
    if into:
        report = {"model": parts.llm.name, "peak_memory_gb": peak_memory(), "medians": [medians(r) for r in rounds],
                  "runs": [[asdict(timing) for timing in timings] for timings in rounds]}  # fmt: skip
        with writing(into):
            (into / "turn.json").write_text(json.dumps(report, indent=1), encoding="utf-8")


def _tell(timing: Timing) -> None:
    talk.print(f"{timing.whole:5.1f} s  {timing.question}", style="dim")


def _table(name: str, timings: list[Timing]) -> Table:
    table = Table("question", "first source", "first word", "whole", "in the model", "prompt", "written", title=name)
    for t in timings:
        table.add_row(
            t.question, _seconds(t.first_source), _seconds(t.first_word), _seconds(t.whole), f"{t.share:.0%}",
            str(t.prompt_tokens), str(t.completion_tokens),
        )  # fmt: skip
    m = medians(timings)
    table.add_section()
    table.add_row(
        "median", _seconds(m["first_source"]), _seconds(m["first_word"]), _seconds(m["whole"]), f"{m['share']:.0%}",
        f"{m['prompt_tokens']:.0f}", f"{m['completion_tokens']:.0f}",
    )  # fmt: skip
    return table


def _seconds(value: float) -> str:
    return "-" if value < 0 else f"{value:.2f} s"
