"""`evaluate chat`, `groundedness`, `scenarios` and `personal`: turns as people have them, on questions and pairs."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from assistant import turn as flow
from assistant.commands.bars import bar
from assistant.commands.common import by_words_only, load_llm, ready, usual_choices
from assistant.commands.experiment import (
    Corpus,
    Nothing,
    Out,
    Questions,
    Sample,
    Skip,
    Usual,
    embedder_of,
    filled,
    indexed,
    perform,
    show,
    spread,
    with_models,
)
from assistant.experiment.conditions import model_of
from assistant.protocols import Parts, Retriever
from assistant.settings import Settings
from assistant.types import Choices


@spread
def chat(
    *,
    corpus: Corpus,
    questions: Questions,
    into: Out,
    beside: Annotated[
        Path | None,
        typer.Option(help="The folder of another run on the same questions, to compare with.", show_default=False),
    ] = None,
    some: Sample,
    skip: Skip = 0,
    usual: Usual,
) -> None:
    """Run whole chat turns; count gold answers in replies, what they rest on, and how often the fallback helps."""
    from assistant.evaluation.chat import Chat  # noqa: PLC0415 - scipy
    from assistant.experiment.runs import rows_of  # noqa: PLC0415

    asked = some.questions(questions, skip)
    knobs = by_words_only(usual.knobs())
    choices = _checked(usual_choices(knobs))
    task = Chat(corpus, questions, asked, choices, knobs, some.seed, rows_of(beside) if beside else None)
    perform(task, into, lambda: with_models(knobs, indexed(corpus, knobs)), as_json=usual.as_json)


@spread
def groundedness(  # noqa: PLR0913 - the experiment's knobs
    *,
    questions: Questions,
    into: Out,
    corpus: Annotated[
        Path | None,
        typer.Option(help="Passages to answer from: a .jsonl[.gz] file.", show_default="the library"),
    ] = None,
    library: Annotated[str | None, typer.Option(help="The library to answer from.", show_default=False)] = None,
    loop: Annotated[str | None, typer.Option(help="How passages are found.")] = None,
    loops: Annotated[int, typer.Option(min=1, max=5, help="The X of Generate-Retrieve-Generate.")] = 1,
    strategy: Annotated[str | None, typer.Option(help="How they are answered from.")] = None,
    k: Annotated[int | None, typer.Option("--k", min=1, max=20, help="Passages shown to the model.")] = None,
    read: Annotated[
        int, typer.Option(min=0, help="Write so many sentences to reading.jsonl, for a person to label.")
    ] = 0,
    labels: Annotated[
        Path | None,
        typer.Option(help="What a person found: compare the check with it.", show_default=False),
    ] = None,
    some: Sample,
    usual: Usual,
) -> None:
    """Measure how many sentences of answers a passage supports, and the precision and recall of citations."""
    from assistant.evaluation import groundedness as measured  # noqa: PLC0415 - scikit-learn

    asked = some.questions(questions)
    found = measured.read_labels(labels) if labels else []
    knobs = by_words_only(usual.knobs(library=library))
    loop = loop or knobs.turn.loop
    choices = Choices(
        strategy or knobs.turn.strategy,
        loop,
        k or knobs.retrieve.k_for(loop),
        str(corpus) if corpus else knobs.library,
        loops=loops,
        below=knobs.relevance.below_for("factoid"),
    )
    threshold, model = knobs.turn.support_threshold, model_of(knobs)
    task = measured.Groundedness(
        questions, asked, _checked(choices), _digest(knobs), threshold, model, some.seed, found, read
    )
    perform(task, into, lambda: with_models(knobs, _searched(knobs, corpus)), as_json=usual.as_json)


@spread
def scenarios(
    *,
    file: Annotated[
        Path,
        typer.Option(
            "--scenarios", help="A .jsonl[.gz] file of {id, kind, facts, history, documents, ask, expect, …}."
        ),
    ],
    into: Out,
    some: Sample,
    usual: Usual,
) -> None:
    """Run whole turns with facts, history and documents, and count those that pass their own marks, by kind."""
    from assistant.evaluation import scenarios as measured  # noqa: PLC0415 - scipy

    every = measured.read_scenarios(file)
    knobs = usual.knobs()
    choices = _checked(usual_choices(knobs))
    task = measured.Scenarios(file, {one: every[one] for one in some.of(list(every))}, choices, model_of(knobs), into)
    perform(task, into, lambda: ready(knobs), as_json=usual.as_json)


@spread
def personal(
    *,
    pairs: Annotated[Path, typer.Option(help="A .jsonl[.gz] file of {facts, question, must, history, split}.")],
    split: Annotated[str, typer.Option(help="Only pairs of this split, where the file names any.")] = "",
    into: Annotated[
        Path | None, typer.Option("--out", help="A folder that keeps every rewrite; a run that is there goes on.")
    ] = None,
    some: Sample,
    usual: Usual,
) -> None:
    """How often does the rewritten question say what the facts tell ("my country": Germany)? The share, by kind."""
    from assistant.evaluation import personal as measured  # noqa: PLC0415 - scipy

    chosen = some.of(measured.read_pairs(pairs, split))
    knobs = usual.knobs()
    task = measured.Personal(pairs, {pair.id: pair for pair in chosen}, model_of(knobs))
    with TemporaryDirectory() as passing:
        run = filled(task, into or Path(passing), lambda: _without_passages(knobs))
    summary = task.summarise(run.rows)
    show(summary, f"{task.table(summary)}\n\n{task.details(summary, run)}", as_json=usual.as_json)


def _without_passages(knobs: Settings) -> Parts:
    """What a question is written anew with."""
    embedder = embedder_of(knobs)
    with bar("Language model") as progress:
        return Parts(knobs, load_llm(knobs, progress), embedder, Nothing())


def _checked(choices: Choices) -> Choices:
    """The choices, after a turn has been asked with them: what it can't do is told before anything is loaded."""
    flow.check(choices)
    return choices


def _digest(knobs: Settings) -> str:
    """How passages are cut down, for a run to say."""
    name = knobs.turn.digest
    return f"{name} ({knobs.turn.summariser})" if name == "seq2seq" else name


def _searched(knobs: Settings, corpus: Path | None) -> Retriever:
    if corpus:
        return indexed(corpus, knobs)
    from assistant.library.shelves import open_library  # noqa: PLC0415 - starts the JVM

    return open_library(knobs.library, knobs)
