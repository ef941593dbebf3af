"""`evaluate re-rag`: answers weighed by relevance against a majority vote, abstaining, and the mixed strategy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from assistant.commands.bars import bar
from assistant.commands.common import (
    Backend,
    DataDir,
    Model,
    SettingsFile,
    by_words_only,
    load_llm,
    settings_of,
)
from assistant.commands.experiment import (
    AsJson,
    Corpus,
    Limit,
    Out,
    Questions,
    Seed,
    Skip,
    Thresholds,
    command_line,
    indexed,
    tell,
)
from assistant.evaluation.thresholds import THRESHOLDS
from assistant.experiment.conditions import model_of
from assistant.judges.uncertainty import told
from assistant.parts import load_embedder
from assistant.protocols import Parts


def re_rag(  # noqa: PLR0913 - the experiment's knobs
    *,
    corpus: Corpus,
    questions: Questions,
    into: Out,
    estimator: Annotated[
        str, typer.Option(help="'shipped', 'llm', 'cosine', or a cross-encoder or T5: a folder or a hub id.")
    ] = "shipped",
    calibration: Annotated[
        Path | None,
        typer.Option(help="A calibration to apply.", show_default="the one beside the model"),
    ] = None,
    depth: Annotated[int, typer.Option(min=1, max=100, help="BM25 candidates of a question, each answered from.")] = 10,
    k: Annotated[int, typer.Option("--k", min=1, help="The best of them, whose answers are weighed.")] = 5,
    threshold: Thresholds = None,
    limit: Limit = None,
    seed: Seed = 0,
    skip: Skip = 0,
    model: Model = None,
    backend: Backend = None,
    as_json: AsJson = False,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Measure RE-RAG: EM by weight and by vote, its parts alone, abstaining, the model's own knowledge."""
    from assistant.evaluation import weighing  # noqa: PLC0415 - scipy
    from assistant.judges.relevance.load import load_calibrated  # noqa: PLC0415 - torch

    knobs = by_words_only(settings_of(settings, data_dir, model=model, backend=backend))
    thresholds = tuple(threshold or THRESHOLDS)
    experiment = weighing.Experiment(corpus, questions, depth, k, limit, seed, skip, told(knobs.turn), thresholds)
    chosen = weighing.prepare(experiment)
    retriever = indexed(corpus, knobs)
    with bar("Sentence-BERT") as progress:
        embedder = load_embedder(knobs, progress)
    with bar("Language model") as progress:
        llm = load_llm(knobs, progress)
    with bar("Estimator") as progress:
        judge = load_calibrated(estimator, calibration, lambda: llm, knobs, progress)
    run = weighing.open_run(into, experiment, model_of(knobs), judge)
    with bar("Questions") as progress:
        weighing.measure(experiment, chosen, run, Parts(knobs, llm, embedder, retriever), judge, progress)
    summary = {"model": llm.name, "estimator": judge.name, **weighing.summarise(experiment, chosen, run)}
    tables = weighing.table(summary)
    run.write("summary.json", json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
    run.write("report.md", f"    {command_line()}\n\n{tables}\n")
    tell(summary, tables, run.folder, as_json)
