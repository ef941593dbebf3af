"""What commands share that measure or train on data: their options, the parts they load, and how they tell."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from assistant.commands.bars import bar
from assistant.commands.common import load_llm, out, talk
from assistant.library.corpus import corpus_retriever
from assistant.parts import load_embedder, load_estimator, load_support
from assistant.protocols import Parts, Retriever
from assistant.retrieve.bm25 import Bm25
from assistant.settings import Settings
from assistant.types import Passage

Corpus = Annotated[Path, typer.Option(help="Passages: a .jsonl[.gz] file of {id, title, contents}.")]
Questions = Annotated[Path, typer.Option(help="Questions: a .jsonl[.gz] file of {id, question, answers, gold}.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Take a sample of this size.", show_default="all")]
Seed = Annotated[int, typer.Option(help="Decides the sample, the places of gold passages, and what is sampled.")]
Skip = Annotated[int, typer.Option(min=0, help="Leave out so many of the sample first; keeps two samples apart.")]
Jobs = Annotated[
    int, typer.Option(min=1, help="Rows made side by side, in one batch of the model (llm.slots at most).")
]
Out = Annotated[Path, typer.Option("--out", help="The folder for rows and results; a run that is there goes on.")]
Thresholds = Annotated[
    list[float] | None,
    typer.Option(
        "--threshold",
        help="Confidences under which a set counts as unanswerable: the best is taken, each half of the questions that"
        " of the other; may be repeated.",
        show_default="0.5 to 0.9",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]


def indexed(corpus: Path, settings: Settings) -> Bm25:
    """BM25 over a corpus, which is indexed first where it is new.

    Raises:
        LibraryError: the corpus can't be read, or the index not be written.
    """
    with bar("Index") as progress:
        return corpus_retriever(corpus, settings, progress)


def with_models(settings: Settings, retriever: Retriever) -> Parts:
    """The parts of a turn, with the models that the settings name.

    Raises:
        ModelError: a model can't be had or loaded.
    """
    with bar("Sentence-BERT") as progress:
        embedder = load_embedder(settings, progress)
    with bar("Relevance estimator") as progress:
        estimator = load_estimator(settings, progress, embedder)
    support = load_support(settings, embedder)
    if settings.turn.digest == "seq2seq":
        from assistant.llm.summariser import load  # noqa: PLC0415 - torch

        with bar("Summariser") as progress:
            load(settings, progress)
    with bar("Language model") as progress:
        return Parts(settings, load_llm(settings, progress), embedder, retriever, estimator, support)


def command_line() -> str:
    """The command as it was typed, for a report."""
    return shlex.join(["python", "-m", "assistant", *sys.argv[1:]])


def tell(summary: Mapping[str, Any], tables: str, where: Path, as_json: bool) -> None:
    """Say what was measured, what was left out and remarked, and where the rest of it is."""
    for key, start in (("left_out", "Left out"), ("remarks", "Note")):
        for what, count in summary.get(key, {}).items():
            talk.print(f"{start}: {what} ({count}).", highlight=False)
    if as_json:
        out.print_json(json.dumps(summary))
    else:
        out.print(tables, highlight=False, soft_wrap=True)
    talk.print(f"Rows, summary and report are in {where}.", highlight=False, soft_wrap=True)


class Nothing:
    """A retriever for what is measured without passages."""

    def search(self, query: str, k: int) -> list[Passage]:  # noqa: ARG002 - the signature is Retriever's
        """Nothing, whatever the query."""
        return []
