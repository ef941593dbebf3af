"""`ikat` plays a run for TREC iKAT, `ikat-validate` checks one, and `ikat-index` makes ClueWeb22 searchable."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from assistant.commands.common import by_words, create_results_folder, output_console, print_text
from assistant.commands.experiment import corpus_index, load_turn_parts
from assistant.commands.option_groups import ModelOptions
from assistant.commands.progress_bars import with_bar
from assistant.commands.turn_options import TurnOptions
from assistant.errors import DataError, LibraryError
from assistant.experiment.conditions import always_drafting, model_of
from assistant.ikat.topics import Topics, read_topics
from assistant.ikat.validate import Problem
from assistant.judges.quality import Classifier
from assistant.protocols import Retriever
from assistant.settings import Settings

# How many problems of a kind are shown; the others are counted.
MAX_SHOWN = 10
TopicsFile = Annotated[Path, typer.Option("--topics", help="The topics of 2023, 2024 or 2025, the track's JSON file.")]


def ikat(  # noqa: PLR0913 - one parameter an option
    *,
    topics: TopicsFile,
    topic: Annotated[
        list[str] | None,
        typer.Option(help="Play this conversation, by its number; may be repeated.", show_default="all"),
    ] = None,
    name: Annotated[str, typer.Option("--run-name", help="What the run is called; one word.")],
    into: Annotated[Path, typer.Option("--out", help="The folder for the run; one that was begun is continued.")],
    library: Annotated[str | None, typer.Option(help="The library to search.")] = None,
    index: Annotated[
        Path | None,
        typer.Option(
            help="What to search instead of a library: the folder of a Lucene index, or a .jsonl[.gz] of passages."
        ),
    ] = None,
    turn_options: TurnOptions,
    depth: Annotated[int, typer.Option(min=20, max=1000, help="Passages ranked for a turn.")] = 1000,
    kind: Annotated[
        Literal["automatic", "manual"],
        typer.Option("--type", help="Whose rewritten messages are asked: ours (automatic), or people's (manual)."),
    ] = "automatic",
    reply: Annotated[
        Literal["answer", "digests"],
        typer.Option(help="What the responses are: our answers, or the digests of the passages, as in the GRG paper."),
    ] = "answer",
    team: Annotated[str, typer.Option(help="Your team's name, which runs of 2025 state.")] = "sequitur",
    quality: Annotated[
        Path | None,
        typer.Option(help="A model of `train quality`, by which unreliable passages are left out."),
    ] = None,
    options: ModelOptions,
) -> None:
    """Play the conversations of TREC iKAT turn by turn and write the run that the track wants."""
    from assistant.ikat import play  # noqa: PLC0415
    from assistant.ikat.runs import RunLabel, write_run  # noqa: PLC0415

    label, chosen_topics = RunLabel(name, team, kind, reply), read_topics(topics).only(topic or ())
    label.check(chosen_topics.year)
    knobs = always_drafting(by_words(options.load_settings(turn={"quality_model": str(quality or "")})))
    if knobs.turn.quality_model:
        # a run that was to be judged by it should not go on without
        Classifier.load(Path(knobs.turn.quality_model))
    if_unanswerable = knobs.relevance.if_unanswerable_for("factoid")
    choices = turn_options.choices(knobs, library or "", if_unanswerable)
    if index and library:
        raise LibraryError("--library and --index both name what is searched; give one of them.")
    retriever = _opened_retriever(knobs, index, choices.library)
    plan = play.Plan(topics, str(index) if index else choices.library, choices, kind, depth, knobs.turn.quality_model)
    run = play.open_run(into, plan, model_of(knobs))
    if any(turn not in run.rows for turn in chosen_topics.turns):
        parts = load_turn_parts(knobs, retriever)
        with_bar("Turns", play.play, chosen_topics, plan, run, parts)
    run_files = write_run(chosen_topics, run.rows, label, into)
    _report_problems(run_files, chosen_topics)


def validate(
    run: Annotated[Path, typer.Argument(help="A run: .json (2023, 2024), .jsonl (2025) or .trec.")],
    topics: TopicsFile,
) -> None:
    """Check a run against the rules of TREC iKAT."""
    _report_problems([run], read_topics(topics))


def index(
    *,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="Files or folders of ClueWeb22: txt (.json.gz) or html (.warc.gz)."),
    ] = None,
    passages: Annotated[
        Path, typer.Option(help="The folder for the passages; files that are in it are not made again.")
    ],
    into: Annotated[Path | None, typer.Option("--out", help="The folder for the index.", show_default="none")] = None,
    hashes: Annotated[Path | None, typer.Option(help="The track's hashes, to compare the passages with.")] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the indexer.")] = 2,
) -> None:
    """Cut ClueWeb22 into the passages of TREC iKAT and index them, so that `ikat --index` can search them."""
    from assistant.ikat import clueweb  # noqa: PLC0415

    if not paths and not hashes and not into:
        raise DataError(
            "There is nothing to do; name files of ClueWeb22 to cut, --hashes to compare with, or --out to index into."
        )
    create_results_folder(into)
    if paths:
        count = with_bar("Files", clueweb.write_passages, clueweb.collection_files(paths), passages)
        print_text(f"{passages}: {count:,} passages were added.")
    if hashes:
        known_count, differing_ids = clueweb.compare_hashes(clueweb.passage_files(passages), hashes)
        example = f", such as {differing_ids[0]}" if differing_ids else ""
        output_console.print(
            f"Of {known_count:,} passages that the track knows, {len(differing_ids):,} are cut otherwise{example}."
        )
    if into:
        clueweb.build_index(passages, into, threads)
        print_text(f"The index is in {into}; search it with: python -m assistant ikat --index {into} ...")


def _opened_retriever(settings: Settings, index: Path | None, library: str) -> Retriever:
    """The library or index to search; an empty one is refused before a model is loaded."""
    if index is None:
        from assistant.library.shelves import open_library  # noqa: PLC0415 - starts the JVM

        retriever = open_library(library, settings)
        if not len(retriever):
            raise LibraryError(f"The library '{library}' is empty; add documents with: python -m assistant index.")
        return retriever
    if index.is_dir():
        from assistant.retrieve.anserini import Anserini  # noqa: PLC0415

        return Anserini(index, settings.retrieve.k1, settings.retrieve.b)
    return corpus_index(index, settings)


def _report_problems(runs: Sequence[Path], topics: Topics) -> None:
    """Print of each file whether the track will accept it.

    Raises:
        DataError: the track will not accept one of them.
    """
    from assistant.ikat.validate import validate as problems_of  # noqa: PLC0415

    refused_runs = []
    for run in runs:
        problems = problems_of(run, topics)
        errors = [problem for problem in problems if problem.level == "error"]
        warnings = [problem for problem in problems if problem.level == "warning"]
        _show(errors)
        _show(warnings)
        print_text(f"{run}: {len(errors)} errors, {len(warnings)} warnings")
        refused_runs += [run.name] if errors else []
    if refused_runs:
        raise DataError(f"iKAT {topics.year} would refuse {' and '.join(refused_runs)}; mend what is listed above.")


def _show(problems: Sequence[Problem]) -> None:
    for problem in problems[:MAX_SHOWN]:
        print_text(str(problem))
    if len(problems) > MAX_SHOWN:
        print_text(f"... and {len(problems) - MAX_SHOWN} more.")
