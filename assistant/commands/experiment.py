"""What the commands that measure or train on data share: options, loading of parts, and running a `Task`."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from assistant.commands.common import error_console, load_llm, output_console, print_text, report_write_errors
from assistant.commands.option_groups import ModelOptions, SettingsOptions
from assistant.commands.progress_bars import bar, with_bar
from assistant.errors import DataError
from assistant.evaluation.looked_at import with_looked_at_remark
from assistant.experiment.datasets import Question
from assistant.experiment.options import AsJson, OutOrDefault, Sample
from assistant.experiment.report import markdown
from assistant.experiment.runs import CLAIM, ROWS, Row, Run, jsonl
from assistant.experiment.task import Item, Resources, Summary, Task
from assistant.judges import load as judges
from assistant.library.corpus import corpus_retriever
from assistant.parts import load_embedder
from assistant.protocols import Embedder, Engine, Parts, Retriever
from assistant.retrieve.bm25 import Bm25
from assistant.settings import Settings
from assistant.types import Passage


@dataclass(frozen=True)
class MeasurementOptions(SettingsOptions):
    """The options of every measurement."""

    as_json: AsJson = False


@dataclass(frozen=True)
class ModelMeasurementOptions(MeasurementOptions, ModelOptions):
    """The options of every measurement that asks a language model."""


@dataclass(frozen=True)
class RunOptions(ModelMeasurementOptions):
    """The options of a measurement whose rows are kept, so that a run can be continued."""

    into: OutOrDefault = None

    def folder(self, task: Task[Item, Resources]) -> Path:
        """The run's folder; by default one that is named by the task's claim, so that the same task finds it again."""
        digest = sha256(json.dumps(task.claim(), sort_keys=True).encode()).hexdigest()
        name = f"{type(task).__module__.rpartition('.')[2]}-{digest[:16]}"
        return self.into or self.load_settings().data_dir / "runs" / name

    def perform(self, task: Task[Item, Resources], load: Callable[[], Resources], jobs: int = 1) -> None:
        """Make the missing rows, loading what they take only if there are any; write and print the summary."""
        run = task.open(self.folder(task))
        if not task.is_done(run):
            resources = load()
            with bar(task.title) as progress:
                task.fill(run, resources, progress, jobs)
        # the folder may hold rows of a larger sample, too
        summary = with_looked_at_remark(task.summarise(run.rows), (str(run.rows[key]["id"]) for key in task.items))
        task.write(run, summary, command_line())
        for key, start in (("left_out", "Left out"), ("remarks", "Note")):
            for reason, count in summary.get(key, {}).items():
                print_text(f"{start}: {reason} ({count}).", error_console)
        print_summary(summary, self.as_json, task.printed_part(summary))
        print_run_folder(run)


@dataclass(frozen=True)
class ResultOptions(MeasurementOptions):
    """The options of a measurement that is quick, so that its rows are made again each time."""

    into: Annotated[Path | None, Option("--out", help="A folder for rows and results.")] = None

    def __post_init__(self) -> None:
        # the rows of a kept run may have taken hours, and would be overwritten
        if self.into and (self.into / CLAIM).exists():
            raise DataError(f"{self.into} holds a run, whose rows would be lost; choose another folder for --out.")

    def finish(self, summary: Summary, rows: Sequence[Row]) -> None:
        """Write rows and summary if a folder is named, and print the summary."""
        summary = with_looked_at_remark(summary, (str(row["id"]) for row in rows))
        if self.into:
            with report_write_errors(self.into):
                self.into.mkdir(parents=True, exist_ok=True)
                (self.into / "summary.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
                (self.into / ROWS).write_text(jsonl(rows), encoding="utf-8")
        print_summary(summary, self.as_json)


@dataclass(frozen=True)
class JudgeOptions(ResultOptions, ModelMeasurementOptions):
    """The same, for measurements that may ask a language model."""


def print_summary(summary: Any, as_json: bool, shown: Summary | None = None) -> None:
    """Print a summary: all of it as JSON, or as Markdown only the part that is `shown`, if one is given."""
    if as_json:
        output_console.print_json(json.dumps(summary))
    else:
        print_text(markdown(summary if shown is None else shown))


def embedder_of(settings: Settings) -> Embedder:
    """The embedder that the settings name, loaded with a bar."""
    return with_bar("Sentence-BERT", load_embedder, settings)


def language_model(settings: Settings) -> Engine:
    """The language model that the settings name, loaded with a bar; see `common.load_llm`."""
    return with_bar("Language model", load_llm, settings)


def corpus_index(corpus: Path, settings: Settings) -> Bm25:
    """BM25 over a corpus, which is indexed first if it is new.

    Raises:
        LibraryError: the corpus can't be read, or the index not be written.
    """
    return with_bar("Index", corpus_retriever, corpus, settings)


def load_turn_parts(settings: Settings, retriever: Retriever) -> Parts:
    """The parts of a turn, with the models that the settings name.

    Raises:
        ModelError: a model can't be fetched or loaded.
    """
    embedder = embedder_of(settings)
    with bar("Relevance estimator") as progress:
        estimator = judges.relevance(settings, progress, embedder)
    support = judges.support(settings, embedder)
    if settings.turn.digest == "seq2seq":
        from assistant.llm.summariser import load  # noqa: PLC0415 - torch

        with_bar("Summariser", load, settings)
    return Parts(settings, language_model(settings), embedder, retriever, estimator, support)


def command_line() -> str:
    """The command as it was typed, for the report."""
    return shlex.join(["python", "-m", "assistant", *sys.argv[1:]])


def print_run_folder(run: Run[Any]) -> None:
    """Print where the rows, the summary and the report of a run are."""
    print_text(f"Rows, summary and report are in {run.folder}.", error_console)


def answered_questions(file: Path, sample: Sample, kept_apart: int) -> list[Question]:
    """Those of a sample of a file's questions that have answers.

    Raises:
        DataError: there are not more of them than are to be kept apart.
    """
    questions = [question for question in sample.draw_questions(file).values() if question.answers]
    if len(questions) <= kept_apart:
        raise DataError(f"Of {len(questions)} questions with answers, {kept_apart} can't be kept apart; lower --dev.")
    return questions


class EmptyRetriever:
    """A retriever that finds nothing, for measurements without passages."""

    def search(self, query: str, k: int) -> list[Passage]:  # noqa: ARG002 - the signature is Retriever's
        """No passages, whatever the query."""
        return []
