"""`bench`: speed and memory, measured side by side in one run."""

from __future__ import annotations

import typer

from assistant.commands.bench_llm import llm
from assistant.commands.bench_memory import memory
from assistant.commands.bench_relevance import relevance
from assistant.commands.bench_retrieval import retrieval
from assistant.commands.bench_strategies import strategies
from assistant.commands.bench_turn import turn

app = typer.Typer(help="Measure speed and memory.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Measure speed and memory."""


for command in (retrieval, strategies, turn, llm, relevance, memory):
    app.command()(command)
