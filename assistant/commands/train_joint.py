"""`train joint`: a T5 that judges passages and a T5 that answers from them, trained together (RE-RAG, section 2.3)."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from assistant.commands.bars import bar
from assistant.commands.common import DataDir, SettingsFile, by_words_only, out, settings_of, talk
from assistant.commands.experiment import indexed
from assistant.errors import DataError
from assistant.experiment.datasets import read_corpus, read_questions, sample
from assistant.experiment.options import AsJson, Corpus, Limit, Questions, Seed, Skip


def joint(  # noqa: PLR0913 - the training's knobs
    *,
    corpus: Corpus,
    questions: Questions,
    into: Annotated[Path, typer.Option("--out", help="The folder for both models; a training that is there goes on.")],
    estimator: Annotated[str, typer.Option(help="The T5 that judges: a hub id or a folder.")] = "google-t5/t5-base",
    generator: Annotated[str, typer.Option(help="The T5 that answers: a hub id or a folder.")] = "google-t5/t5-base",
    contexts: Annotated[int, typer.Option(min=1, max=100, help="BM25 passages of a question.")] = 20,
    dev: Annotated[
        int, typer.Option(min=1, help="Questions kept apart; the epoch that answers most of them is kept.")
    ] = 100,
    epochs: Annotated[int, typer.Option(min=1, help="Times that all questions are gone through.")] = 3,
    batch: Annotated[int, typer.Option(min=1, help="Questions of a step.")] = 64,
    rate: Annotated[float, typer.Option(min=0, help="AdamW's learning rate, constant.")] = 1e-4,
    alpha1: Annotated[float, typer.Option(min=0, help="Weight of L_re.")] = 1.0,
    alpha2: Annotated[float, typer.Option(min=0, help="Weight of L_tok.")] = 1.0,
    length: Annotated[int, typer.Option(min=16, help="Tokens read of question and passage together.")] = 384,
    limit: Limit = None,
    seed: Seed = 0,
    skip: Skip = 0,
    as_json: AsJson = False,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Train the paper's two T5s together, from questions and answers alone."""
    chosen = [one for one in sample(read_questions(questions), limit, seed, skip) if one.answers]
    if len(chosen) <= dev:
        raise DataError(f"Of {len(chosen)} questions with answers, {dev} can't be kept apart; lower --dev.")
    read_corpus(corpus, set())
    knobs = by_words_only(settings_of(settings, data_dir))
    retriever = indexed(corpus, knobs)

    from assistant.llm.catalogue import Catalogue  # noqa: PLC0415
    from assistant.training.relevance.joint import (  # noqa: PLC0415 - torch
        ESTIMATOR,
        GENERATOR,
        Asked,
        JointPlan,
        JointTrainer,
    )

    with bar("Models") as progress:
        reader, writer = (str(Catalogue.load().resolve(name, knobs, progress)) for name in (estimator, generator))
    plan = JointPlan(
        reader, writer, epochs=epochs, batch=batch, rate=rate, alpha1=alpha1, alpha2=alpha2, length=length, seed=seed
    )
    asked = [Asked(one.text, one.answers, tuple(retriever.search(one.text, contexts))) for one in chosen]
    trainer = JointTrainer(into, plan, asked[dev:], asked[:dev])
    with bar("Questions") as progress:
        history = trainer.run(progress)
    if as_json:
        out.print_json(json.dumps([asdict(epoch) for epoch in history]))
    else:
        table = Table("epoch", "loss", "EM of dev", "best so far", box=None)
        for epoch in history:
            table.add_row(str(epoch.number), f"{epoch.loss:.4f}", f"{epoch.em:.3f}", "yes" if epoch.best else "")
        out.print(table)
    talk.print(f"The best models are {into / ESTIMATOR} and {into / GENERATOR}.", soft_wrap=True)
