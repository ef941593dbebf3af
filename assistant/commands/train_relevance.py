"""`train relevance`, a cross-encoder that learns from questions and answers which passages answer; and `train pack`."""

from __future__ import annotations

from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from assistant.commands.bars import bar
from assistant.commands.common import by_words_only, load_llm, talk
from assistant.commands.experiment import Usual, answered, indexed, show, spread
from assistant.experiment.conditions import model_of
from assistant.experiment.datasets import Question, fingerprint, read_corpus
from assistant.experiment.options import Sample
from assistant.experiment.report import markdown
from assistant.settings import Settings

if TYPE_CHECKING:
    from assistant.training.relevance.train import Example

Likelihoods = Literal["llm", "words"]


@spread
def relevance(  # noqa: PLR0913 - the training's knobs
    *,
    corpus: Annotated[
        list[Path], typer.Option(help="Passages: a .jsonl[.gz] file of {id, title, contents}; may be given again.")
    ],
    questions: Annotated[
        list[Path],
        typer.Option(help="Questions: a .jsonl[.gz] file of {id, question, answers}; one for each --corpus."),
    ],
    into: Annotated[Path, typer.Option("--out", help="The folder for the model; a training that is there goes on.")],
    base: Annotated[
        str, typer.Option(help="The encoder to start from: a name of the catalogue, a hub id or a folder.")
    ] = "all-MiniLM-L6-v2",
    likelihoods: Annotated[
        Likelihoods,
        typer.Option(help="What tells which passages help: the language model, or (quick) the answer's words in them."),
    ] = "llm",
    contexts: Annotated[int, typer.Option(min=2, max=100, help="BM25 passages of a question.")] = 20,
    dev: Annotated[
        int, typer.Option(min=1, help="Questions of each file that are kept apart to choose the best epoch.")
    ] = 100,
    epochs: Annotated[int, typer.Option(min=1, help="Times that all questions are gone through.")] = 3,
    steps: Annotated[int | None, typer.Option(min=1, help="Stop after so many.", show_default="all epochs")] = None,
    batch: Annotated[int, typer.Option(min=1, help="Questions of a step.")] = 4,
    rate: Annotated[float, typer.Option(min=0, help="AdamW's highest learning rate.")] = 5e-5,
    warm_up: Annotated[int, typer.Option(min=0, help="Steps after which it is reached; it falls afterwards.")] = 100,
    frozen: Annotated[
        bool, typer.Option("--frozen/--unfrozen", help="Leave the word embeddings of the base as they are.")
    ] = True,
    length: Annotated[int, typer.Option(min=16, help="Tokens read of question and passage together.")] = 256,
    some: Sample,
    usual: Usual,
) -> None:
    """Train a relevance estimator; the language model's likelihoods of the answers are computed once and kept."""
    if len(corpus) != len(questions):
        raise typer.BadParameter("give one --questions for each --corpus")
    chosen = [answered(file, some, dev) for file in questions]
    for file in corpus:
        read_corpus(file, set())
    knobs = by_words_only(usual.knobs())
    measured = _by_words if likelihoods == "words" else _by_llm
    examples = [measured(asked, file, contexts, knobs, dev) for asked, file in zip(chosen, corpus, strict=True)]

    from assistant.llm.catalogue import Catalogue  # noqa: PLC0415
    from assistant.training.loop import MODEL  # noqa: PLC0415
    from assistant.training.relevance.train import Plan, Trainer  # noqa: PLC0415 - torch

    with bar("Encoder") as progress:
        folder = Catalogue.load().resolve(base, knobs, progress)
    plan = Plan(
        str(folder), epochs=epochs, batch=batch, rate=rate, length=length, seed=some.seed, warm_up=warm_up,
        frozen=frozen, most=steps,
    )  # fmt: skip
    trainer = Trainer(
        into, plan, [one for of in examples for one in of[dev:]], [one for of in examples for one in of[:dev]]
    )
    with bar("Steps") as progress:
        history = [asdict(epoch) for epoch in trainer.run(progress)]
    show(history, markdown({"epochs": history}), usual.as_json)
    talk.print(f"The best model is {into / MODEL}; use it as: --estimator {into / MODEL}", soft_wrap=True)


def pack(
    *,
    model: Annotated[Path, typer.Option(help="The folder of a cross-encoder that `train relevance` made.")],
    into: Annotated[Path, typer.Option("--out", help="The folder for its packed form.")],
) -> None:
    """Pack a trained relevance estimator into a quarter of its size: int8 weights, read back when it is loaded."""
    from assistant.judges import packed  # noqa: PLC0415 - torch

    size = packed.pack(model, into)
    talk.print(f"The packed model is {into}, {size / 1e6:.1f} MB.", soft_wrap=True)


def _by_words(questions: list[Question], corpus: Path, contexts: int, knobs: Settings, _dev: int) -> list[Example]:
    from assistant.training.relevance import likelihoods  # noqa: PLC0415

    retriever = indexed(corpus, knobs)
    with bar("Likelihoods") as progress:
        return likelihoods.by_words(questions, retriever, contexts, progress)


def _by_llm(questions: list[Question], corpus: Path, contexts: int, knobs: Settings, dev: int) -> list[Example]:
    from assistant.library.corpus import load_corpus  # noqa: PLC0415
    from assistant.training.relevance import likelihoods  # noqa: PLC0415

    run = likelihoods.open_run(_cache(corpus, contexts, knobs), corpus, contexts, model_of(knobs))
    retriever = indexed(corpus, knobs)
    with bar("Language model") as progress:
        llm = load_llm(knobs, progress)
    with bar("Likelihoods") as progress:
        likelihoods.measure(questions, run, llm, retriever, contexts, progress, dev)
    return likelihoods.examples(questions, run, {passage.id: passage for passage in load_corpus(corpus)})


def _cache(corpus: Path, contexts: int, knobs: Settings) -> Path:
    facts = f"{fingerprint(corpus)} {model_of(knobs)} {contexts}"
    return knobs.data_dir / "likelihoods" / sha256(facts.encode()).hexdigest()[:16]
