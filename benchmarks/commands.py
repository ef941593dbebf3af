"""`bench`: speed and memory, measured side by side in one run."""

from __future__ import annotations

from assistant.commands.option_groups import Group
from benchmarks.attacks import attacks
from benchmarks.convert import convert
from benchmarks.documents import documents
from benchmarks.faults import faults
from benchmarks.gpu import gpu
from benchmarks.injections import injections
from benchmarks.llm import llm
from benchmarks.load import load
from benchmarks.memory import memory
from benchmarks.peers.command import peers
from benchmarks.relevance import relevance
from benchmarks.retrieval import retrieval
from benchmarks.scale import scale
from benchmarks.strategies import strategies
from benchmarks.tables import tables
from benchmarks.turn import turn
from benchmarks.workers import workers

app = Group(help="Measure speed and memory.", no_args_is_help=True)
for command in (
    retrieval, strategies, turn, llm, convert, gpu, relevance, memory, documents, tables, scale, attacks, faults,
    injections, load, workers, peers,
):  # fmt: skip
    app.command()(command)
