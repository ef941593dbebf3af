"""`train joint`: a T5 that judges passages and a T5 that answers from them, trained together (RE-RAG, section 2.3)."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from assistant.commands.bars import bar
from assistant.commands.common import by_words_only, talk
from assistant.commands.experiment import Basic, answered, indexed, show, spread
from assistant.experiment.datasets import read_corpus
from assistant.experiment.options import Corpus, Questions, Sample
from assistant.experiment.report import markdown


@spread
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
    some: Sample,
    usual: Basic,
) -> None:
    """Train the paper's two T5s together, from questions and answers alone."""
    chosen = answered(questions, some, dev)
    read_corpus(corpus, set())
    knobs = by_words_only(usual.knobs())
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
        reader,
        writer,
        epochs=epochs,
        batch=batch,
        rate=rate,
        alpha1=alpha1,
        alpha2=alpha2,
        length=length,
        seed=some.seed,
    )
    asked = [Asked(one.text, one.answers, tuple(retriever.search(one.text, contexts))) for one in chosen]
    trainer = JointTrainer(into, plan, asked[dev:], asked[:dev])
    with bar("Questions") as progress:
        history = [asdict(epoch) for epoch in trainer.run(progress)]
    show(history, markdown({"epochs": history}), usual.as_json)
    talk.print(f"The best models are {into / ESTIMATOR} and {into / GENERATOR}.", soft_wrap=True)
