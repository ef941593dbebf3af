"""`evaluate relevance`: how well an estimator reranks, tells sets without an answer, and knows how sure it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

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
from assistant.judges.relevance.calibration import Calibration, Method
from assistant.settings import Settings

Contexts = Literal["auto", "retrieved", "own"]


def relevance(  # noqa: PLR0913 - the experiment's knobs
    *,
    corpus: Corpus,
    questions: Questions,
    estimator: Annotated[
        str, typer.Option(help="'shipped', 'llm', 'cosine', or a cross-encoder or T5: a folder or a hub id.")
    ] = "shipped",
    depth: Annotated[int, typer.Option(min=1, max=100, help="BM25 candidates that are estimated.")] = 20,
    k: Annotated[int, typer.Option("--k", min=1, help="The best of them, which make the context set.")] = 20,
    contexts: Annotated[
        Contexts,
        typer.Option(help="The set: what was retrieved, or the gold passages; auto = gold if some are unanswerable."),
    ] = "auto",
    calibration: Annotated[
        Path | None, typer.Option(help="A calibration to apply, made by --calibrate.", show_default=False)
    ] = None,
    calibrate: Annotated[
        Method | None,
        typer.Option(help="Calibrate each half on the other; all of it is written as calibration.json to --out."),
    ] = None,
    threshold: Thresholds = None,
    share: Annotated[
        float, typer.Option(help="Sets whose gold was withheld are weighed as if they were this share of all.")
    ] = 0.5,
    limit: Limit = None,
    seed: Seed = 0,
    skip: Skip = 0,
    into: Annotated[
        Path | None,
        typer.Option(
            "--out", help="The folder for rows and results; a run that is there goes on.", show_default="data folder"
        ),
    ] = None,
    model: Model = None,
    backend: Backend = None,
    as_json: AsJson = False,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Measure a relevance estimator: R@1 to R@20, F1 of 'unanswerable', calibration error."""
    from assistant.evaluation import relevance as measured  # noqa: PLC0415
    from assistant.evaluation import relevance_report as report  # noqa: PLC0415 - matplotlib
    from assistant.judges.relevance.load import load  # noqa: PLC0415

    if calibration and calibrate:
        raise typer.BadParameter("give --calibration or --calibrate, not both")
    if calibration:
        Calibration.load(calibration)
    thresholds = tuple(threshold or THRESHOLDS)
    experiment = measured.Experiment(corpus, questions, depth, k, contexts, limit, seed, skip, share, thresholds)
    material = measured.prepare(experiment)
    knobs = by_words_only(settings_of(settings, data_dir, model=model, backend=backend))
    with bar("Estimator") as progress:
        estimates = load(estimator, lambda: load_llm(knobs, progress), knobs, progress)
    curve = Calibration.load(calibration, estimates.name) if calibration else None
    model_name = model_of(knobs)
    folder = into or _folder(knobs, measured.claim(experiment, material, estimates.name, model_name))
    run = measured.open_run(folder, experiment, material, estimates.name, model_name)
    retriever = indexed(corpus, knobs)
    with bar("Questions") as progress:
        measured.measure(experiment, material, run, estimates, retriever, progress)
    summary = measured.summarise(experiment, material, run, estimates.name, curve, calibrate)
    if calibrate:
        measured.calibrated(material, run, calibrate, estimates.name).save(run.folder / "calibration.json")
    run.write("summary.json", json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
    tables, diagram = report.table(summary), report.draw(summary, run.folder)
    run.write("report.md", f"    {command_line()}\n\n{tables}\n\n![reliability]({diagram.name})\n")
    tell(summary, tables, run.folder, as_json)


def _folder(knobs: Settings, claim: Mapping[str, Any]) -> Path:
    """Where a run without --out is kept, so that it goes on when the same is asked again."""
    digest = sha256(json.dumps(claim, sort_keys=True).encode()).hexdigest()
    return knobs.data_dir / "runs" / f"relevance-{digest[:16]}"
