"""`train`: trains the judges and classifiers.

Slow imports are inside the command that needs them, so that the help comes at once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import BadParameter, Option

from assistant.commands.common import by_words, error_console, print_text, report_write_errors
from assistant.commands.experiment import (
    MeasurementOptions,
    ModelMeasurementOptions,
    answered_questions,
    corpus_index,
    embedder_of,
    language_model,
    print_summary,
)
from assistant.commands.option_groups import Group
from assistant.commands.progress_bars import bar, with_bar
from assistant.errors import DataError
from assistant.experiment.conditions import model_of
from assistant.experiment.datasets import Question, fingerprint, read_corpus
from assistant.experiment.options import AsJson, BootstrapSeed, Corpora, Corpus, Questions, Sample, Seed
from assistant.experiment.report import markdown
from assistant.judges import adapted, packed
from assistant.judges.relevance import blend as blends
from assistant.judges.relevance.load import parts_of_blend
from assistant.judges.suitability.knowledge import SHIPPED as SUITABILITY
from assistant.judges.suitability.knowledge import Knowledge
from assistant.judges.suitability.reader import LENGTH
from assistant.judges.support.large import SHIPPED as SUPPORT_LARGE
from assistant.judges.support.trained import SHIPPED as SUPPORT
from assistant.library.corpus import load_corpus
from assistant.library.starter import ensure_starter
from assistant.llm.catalogue import Catalogue
from assistant.retrieve import known_vectors
from assistant.retrieve.bm25 import Bm25
from assistant.retrieve.dense import rows_of
from assistant.retrieve.encoders import open_encoder
from assistant.settings import Settings

if TYPE_CHECKING:
    from assistant.evaluation.suitability import Pair
    from assistant.judges.suitability.judge import Blend
    from assistant.training.relevance.train import Example

app = Group(help="Train the parts that learn.", no_args_is_help=True)

ModelFolder = Annotated[Path, Option("--out", help="The folder for the model; a training that is there is continued.")]
Base = Annotated[str, Option(help="The encoder to start from: a name of the catalogue, a hub id or a folder.")]
Epochs = Annotated[int, Option(min=1, help="Times that all questions are gone through.")]
PairsPerStep = Annotated[int, Option(min=1, help="Pairs of a step.")]
QuestionsPerStep = Annotated[int, Option(min=1, help="Questions of a step.")]
Rate = Annotated[float, Option(min=0, help="AdamW's highest learning rate.")]
Adapter = Annotated[Path | None, Option(help="An adapter of this rank, by its folder, from which training goes on.")]
Rank = Annotated[
    int,
    Option(min=0, help="Train an adapter of this rank (LoRA), as the larger judges have; 0 = train the whole model."),
]
WeighedOn = Annotated[
    list[Path] | None,
    Option(
        help="More development pairs to choose weight and threshold on, in the form that `evaluate suitability` reads; "
        "may be given again."
    ),
]
ThingPairs = Annotated[
    Path | None,
    Option(help="Pairs of the same form whose texts only name things, to choose the weight for texts of few words."),
]
Length = Annotated[int, Option(min=16, help="Tokens read of question and passage together.")]


# --- the relevance estimator -------------------------------------------------------------------------------------


@app.command()
def relevance(  # noqa: PLR0913 - the training's knobs
    *,
    corpus: Annotated[
        list[Path], Option(help="Passages: a .jsonl[.gz] file of {id, title, contents}; may be given again.")
    ],
    questions: Annotated[
        list[Path], Option(help="Questions: a .jsonl[.gz] file of {id, question, answers}; one for each --corpus.")
    ],
    into: ModelFolder,
    base: Base = "all-MiniLM-L6-v2",
    likelihoods: Annotated[
        Literal["llm", "words"],
        Option(help="What tells which passages help: the language model, or (quick) the answer's words in them."),
    ] = "llm",
    contexts: Annotated[int, Option(min=2, max=100, help="BM25 passages of a question.")] = 20,
    dev: Annotated[
        int, Option(min=1, help="Questions of each file that are kept apart to choose the best epoch.")
    ] = 100,
    epochs: Epochs = 3,
    steps: Annotated[int | None, Option(min=1, help="Stop after so many steps.", show_default="all epochs")] = None,
    batch: QuestionsPerStep = 4,
    rate: Rate = 5e-5,
    length: Length = 256,
    sample: Sample,
    options: ModelMeasurementOptions,
) -> None:
    """Train a relevance estimator; the language model's likelihoods of the answers are computed once and stored."""
    if len(corpus) != len(questions):
        raise BadParameter("give one --questions for each --corpus")
    questions_of_files = [answered_questions(file, sample, dev) for file in questions]
    for file in corpus:
        read_corpus(file, set())
    knobs = by_words(options.load_settings())
    make_examples = _by_words if likelihoods == "words" else _by_llm
    examples = [
        make_examples(file_questions, file, contexts, knobs, dev)
        for file_questions, file in zip(questions_of_files, corpus, strict=True)
    ]

    from assistant.training.loop import MODEL  # noqa: PLC0415
    from assistant.training.relevance.train import Plan, Trainer  # noqa: PLC0415 - torch

    plan = Plan(
        _resolved(base, knobs), epochs=epochs, batch=batch, rate=rate, length=length, seed=sample.seed, warm_up=100,
        frozen=True, max_steps=steps,
    )  # fmt: skip
    trainer = Trainer(
        into,
        plan,
        [example for file_examples in examples for example in file_examples[dev:]],
        [example for file_examples in examples for example in file_examples[:dev]],
    )
    _show_epochs(with_bar("Steps", trainer.run), options.as_json)
    print_text(f"The best model is {into / MODEL}; use it as: --estimator {into / MODEL}", error_console)


@app.command()
def reranker(  # noqa: PLR0913 - the training's knobs
    *,
    data: Annotated[Path, Option(help="A folder with squad/, nq/, hotpotqa/, 2wikimultihopqa/ and library/.")],
    into: ModelFolder,
    base: Base = "all-mpnet-base-v2",
    adapter: Annotated[
        Path,
        Option(
            help="The adapter from which training goes on, by its folder.", show_default="the larger judge of support"
        ),
    ] = SUPPORT_LARGE,
    pairs: Annotated[int, Option(min=100, help="Pairs to learn from at most, each once.")] = 18_000,
    own: Annotated[
        float, Option(min=0, max=1, help="The share of short documents' pairs, whose sentences answer, at most.")
    ] = 0.0,
    batch: PairsPerStep = 16,
    rate: Rate = 2e-4,
    length: Length = 256,
    seed: Seed = 0,
    options: MeasurementOptions,
) -> None:
    """Train the larger relevance estimator on questions that name their passage; pack it with `train pack`."""
    from assistant.training.loop import MODEL  # noqa: PLC0415 - torch
    from assistant.training.relevance.reranker import train  # noqa: PLC0415 - torch
    from assistant.training.trainer import Plan  # noqa: PLC0415 - torch

    knobs = by_words(options.load_settings())
    plan = Plan(
        _resolved(base, knobs), batch=batch, rate=rate, length=length, seed=seed, warm_up=50, dropout=0.0,
        save_every=200, adapter=str(adapter),
    )  # fmt: skip
    with bar("Steps") as progress:
        summary = train(into, plan, data, pairs, lambda corpus: corpus_index(corpus, knobs), progress, own)
    print_summary(summary, options.as_json)
    print_text(f"The best model is {into / MODEL}; pack it with `train pack`, then `train blend`.", error_console)


def _by_words(questions: list[Question], corpus: Path, contexts: int, knobs: Settings, _dev: int) -> list[Example]:
    from assistant.training.relevance import likelihoods  # noqa: PLC0415

    retriever = corpus_index(corpus, knobs)
    return with_bar("Likelihoods", likelihoods.examples_by_words, questions, retriever, contexts)


def _by_llm(questions: list[Question], corpus: Path, contexts: int, knobs: Settings, dev: int) -> list[Example]:
    from assistant.training.relevance import likelihoods  # noqa: PLC0415

    run = likelihoods.open_run(_cache(corpus, contexts, knobs), corpus, contexts, model_of(knobs))
    retriever = corpus_index(corpus, knobs)
    llm = language_model(knobs)
    with bar("Likelihoods") as progress:
        likelihoods.score_missing_rows(questions, run, llm, retriever, contexts, progress, dev)
    return likelihoods.examples(questions, run, {passage.id: passage for passage in load_corpus(corpus)})


def _cache(corpus: Path, contexts: int, knobs: Settings) -> Path:
    facts = f"{fingerprint(corpus)} {model_of(knobs)} {contexts}"
    return knobs.data_dir / "likelihoods" / sha256(facts.encode()).hexdigest()[:16]


@app.command()
def pack(
    *,
    model: Annotated[Path, Option(help="The folder of a model that one of the commands of `train` made.")],
    into: Annotated[Path, Option("--out", help="The folder for its packed form.")],
) -> None:
    """Pack a trained judge: a whole model in int8, a quarter of its size, an adapter in half precision."""
    size = adapted.pack(model, into) if (model / adapted.CONFIG).exists() else packed.pack(model, into)
    print_text(f"The packed model is {into}, {size / 1e6:.1f} MB.", error_console)


# --- the classifier of passage quality ---------------------------------------------------------------------------


@app.command()
def quality(
    *,
    data: Annotated[Path, Option(help="Texts: a .jsonl[.gz] file of {text, label, source, split}.")],
    into: Annotated[Path, Option("--out", help="The file for the model, .npz; its report goes beside it.")],
    unseen: Annotated[
        bool,
        Option("--unseen", help="Also measure each source with a model that was trained without it; takes minutes."),
    ] = False,
    seed: BootstrapSeed = 0,
    as_json: AsJson = False,
) -> None:
    """Train the classifier of passage quality: reliable, unreliable or junk."""
    from assistant.evaluation import quality as measured  # noqa: PLC0415 - scikit-learn

    if into.suffix.lower() != ".npz":  # its report's files differ from it in this alone
        raise DataError(f"The model goes into a .npz file, beside which its report is written; {into.name} is none.")
    examples = measured.read_examples(data)
    with bar("Training") as progress:
        progress(0, 1)
        model = measured.train(examples)
    model.save(into)
    summary = measured.measure(model, examples, seed)
    if unseen:
        summary["unseen"] = with_bar("Sources", measured.measure_unseen_sources, examples)
    report_file = into.with_suffix(".md")
    with report_write_errors(report_file):
        into.with_suffix(".json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
        report_file.write_text(markdown(summary) + "\n", encoding="utf-8")
    print_summary(summary, as_json)
    print_text(f"The model is in {into}, its report in {report_file}.", error_console)


# --- the judges of suitability and of support --------------------------------------------------------------------


@app.command()
def reader(  # noqa: PLR0913 - the training's knobs
    *,
    into: ModelFolder,
    base: Annotated[
        str,
        Option(
            help="What to start from: a name of the catalogue, a hub id or a folder.",
            show_default="the small judge of support",
        ),
    ] = str(SUPPORT),
    rank: Rank = 0,
    adapter: Adapter = None,
    tables: Annotated[int, Option(min=0, help="Pairs whose texts name things as tables and passages do.")] = 12_000,
    replies: Annotated[int, Option(min=0, help="Pairs whose texts are sentences as models write them.")] = 9_000,
    tellings: Annotated[int, Option(min=0, help="Pairs whose texts are sentences that offer nothing.")] = 9_000,
    times: Annotated[
        int, Option(min=1, help="How often each pair that was written by itself, not made by a recipe, is learned.")
    ] = 3,
    asked: Annotated[int, Option(min=0, help="The same for such pairs that have a question.")] = 3,
    pairs: WeighedOn = None,
    things: ThingPairs = None,
    corpus: Corpora = None,
    batch: PairsPerStep = 32,
    rate: Rate = 1e-4,
    seed: Seed = 0,
    options: MeasurementOptions,
) -> None:
    """Train the reader of the suitability judge, and weigh it with the tags; pack it with `train pack`."""
    from assistant.training.loop import MODEL  # noqa: PLC0415 - torch
    from assistant.training.suitability.reader import Lesson, train  # noqa: PLC0415 - torch
    from assistant.training.trainer import Plan  # noqa: PLC0415 - torch

    development = _development(pairs, things, corpus)
    knobs = options.load_settings()
    plan = Plan(_resolved(base, knobs), batch=batch, rate=rate, length=LENGTH, seed=seed, dropout=0.0, save_every=150,
                rank=rank, adapter=str(adapter or ""))  # fmt: skip
    summary = with_bar("Steps", train, into, plan, Lesson(tables, replies, tellings, times, asked), embedder_of(knobs))
    summary["blend"] = asdict(_weighed_blend(into / MODEL, base if rank else "", knobs, development, asked=asked > 0))
    print_summary(summary, options.as_json)
    print_text(f"The best model and its blend are in {into / MODEL}; pack it with `train pack`.", error_console)


@app.command()
def weigh(
    *,
    model: Annotated[Path, Option(help="The folder of a trained reader, packed or not; its blend is written anew.")],
    base: Annotated[
        str, Option(help="If the reader is an adapter, its base: a name of the catalogue, a hub id or a folder.")
    ] = "",
    pairs: WeighedOn = None,
    things: ThingPairs = None,
    corpus: Corpora = None,
    asked: Annotated[bool, Option(help="Whether the reader was trained with questions.")] = True,
    options: MeasurementOptions,
) -> None:
    """Weigh a reader of the suitability judge with the tags, without training it."""
    blend = _weighed_blend(model, base, options.load_settings(), _development(pairs, things, corpus), asked=asked)
    print_summary(asdict(blend), options.as_json)


Development = tuple[dict[str, list["Pair"]], list["Pair"]]


def _weighed_blend(model: Path, base: str, knobs: Settings, development: Development, *, asked: bool) -> Blend:
    from assistant.training.suitability.reader import weigh  # noqa: PLC0415 - torch

    folder = Path(_resolved(base, knobs)) if base else None
    return weigh(model, folder, Knowledge.load(SUITABILITY), embedder_of(knobs), *development, asked=asked)


def _development(pairs: list[Path] | None, things: Path | None, corpus: list[Path] | None) -> Development:
    """What a reader is weighed on: sets of pairs by their names, and pairs whose texts name things."""
    from assistant.evaluation.suitability import read_pairs  # noqa: PLC0415

    pair_sets = {f"of {path.name}": read_pairs(path, corpus or ()) for path in pairs or ()}
    return pair_sets, read_pairs(things) if things else []


@app.command()
def suitability(
    *,
    into: Annotated[Path, Option("--out", help="The folder for what was learned.")],
    seed: Seed = 0,
    options: MeasurementOptions,
) -> None:
    """Teach the suitability judge the tables that come with Sequitur, for the embedder that is set; about a minute."""
    from assistant.training.suitability.train import train  # noqa: PLC0415 - scikit-learn

    summary = train(into, embedder_of(options.load_settings()), seed)
    print_summary(summary, options.as_json, {"groups of facts": summary["test"]})
    error_console.print(f"The judge is in {into}; measure it with `evaluate suitability --judge {into}`.")


@app.command()
def support(  # noqa: PLR0913 - the training's knobs
    *,
    data: Annotated[
        Path, Option(help="A folder with squad/, nq/, hotpotqa/ and 2wikimultihopqa/, each with corpus and questions.")
    ],
    into: ModelFolder,
    base: Base = "all-MiniLM-L6-v2",
    pairs: Annotated[int, Option(min=100, help="Pairs to learn from at most, each once.")] = 16_000,
    batch: PairsPerStep = 16,
    rate: Rate = 1e-4,
    length: Annotated[int, Option(min=16, max=512, help="Leave out pairs that have more tokens.")] = 256,
    hand: Annotated[
        Path | None, Option(help="Pairs labelled by hand: the threshold is chosen on their split 'dev', too.")
    ] = None,
    rank: Rank = 0,
    adapter: Adapter = None,
    own: Annotated[
        float,
        Option(
            min=0, max=1, help="The largest share of pairs that were written for this judge.", show_default="a third"
        ),
    ] = 1 / 3,
    times: Annotated[int, Option(min=1, help="How often each of these is learned.")] = 3,
    seed: Seed = 0,
    options: MeasurementOptions,
) -> None:
    """Train the support judge on pairs made from question sets, by a recipe; pack it with `train pack`."""
    from assistant.training.loop import MODEL  # noqa: PLC0415 - torch
    from assistant.training.support.train import Lesson, train, write_near_misses  # noqa: PLC0415 - torch
    from assistant.training.trainer import Plan  # noqa: PLC0415 - torch

    folder = _resolved(base, options.load_settings())
    plan = Plan(folder, batch=batch, rate=rate, length=length, seed=seed, dropout=0.0, save_every=200, rank=rank,
                adapter=str(adapter or ""))  # fmt: skip
    with bar("Steps") as progress:
        summary = train(into, plan, data, Lesson(pairs, own, times), progress, hand)
    misses = write_near_misses(into, data, seed)
    print_summary({**summary, "near_misses": str(misses)}, options.as_json, summary)
    error_console.print(
        f"The best model is {into / MODEL}; measure it with `evaluate support --judge`, as on {misses}."
    )


# --- RE-RAG's estimators -----------------------------------------------------------------------------------------


@app.command()
def joint(  # noqa: PLR0913 - the training's knobs
    *,
    corpus: Corpus,
    questions: Questions,
    into: Annotated[Path, Option("--out", help="The folder for both models; a training that is there is continued.")],
    estimator: Annotated[str, Option(help="The T5 that judges: a hub id or a folder.")] = "google-t5/t5-base",
    generator: Annotated[str, Option(help="The T5 that answers: a hub id or a folder.")] = "google-t5/t5-base",
    contexts: Annotated[int, Option(min=1, max=100, help="BM25 passages of a question.")] = 20,
    dev: Annotated[
        int,
        Option(min=1, help="Questions that are kept apart; of all epochs the one that answers most of them is stored."),
    ] = 100,
    epochs: Epochs = 3,
    batch: QuestionsPerStep = 64,
    rate: Annotated[float, Option(min=0, help="AdamW's learning rate, constant.")] = 1e-4,
    alpha1: Annotated[float, Option(min=0, help="Weight of L_re.")] = 1.0,
    alpha2: Annotated[float, Option(min=0, help="Weight of L_tok.")] = 1.0,
    length: Length = 384,
    sample: Sample,
    options: MeasurementOptions,
) -> None:
    """Train the paper's two T5s together, from questions and answers alone."""
    usable_questions = answered_questions(questions, sample, dev)
    read_corpus(corpus, set())
    knobs = by_words(options.load_settings())
    retriever = corpus_index(corpus, knobs)

    from assistant.training.relevance import joint as training  # noqa: PLC0415 - torch

    reader, writer = (_resolved(name, knobs, "Models") for name in (estimator, generator))
    plan = training.JointPlan(
        reader, writer, epochs=epochs, batch=batch, rate=rate, alpha1=alpha1, alpha2=alpha2, length=length,
        seed=sample.seed,
    )  # fmt: skip
    examples = [
        training.JointExample(question.text, question.answers, tuple(retriever.search(question.text, contexts)))
        for question in usable_questions
    ]
    trainer = training.JointTrainer(into, plan, examples[dev:], examples[:dev])
    _show_epochs(with_bar("Questions", trainer.run), options.as_json)
    print_text(f"The best models are {into / training.ESTIMATOR} and {into / training.GENERATOR}.", error_console)


@app.command()
def blend(
    *,
    corpus: Corpus,
    questions: Questions,
    model: Annotated[Path, Option(help="The folder of a cross-encoder, a T5 or a reranker, which gets a blend.json.")],
    depth: Annotated[int, Option(min=2, max=100, help="BM25 candidates of each question.")] = 20,
    sample: Sample,
    options: MeasurementOptions,
) -> None:
    """Blend a trained estimator with the embedder's cosine, or a reranker with the estimator that is asked first.

    The questions name their gold passages.
    """
    all_questions = sample.draw_questions(questions).values()
    gold_questions = [question for question in all_questions if question.gold and not question.unanswerable]
    if not gold_questions:
        raise DataError(f"No question of {questions} names a gold passage; give another file.")
    knobs = by_words(options.load_settings())
    retriever = corpus_index(corpus, knobs)
    judge, second_scorer, score_name = parts_of_blend(model, embedder_of(knobs), knobs)
    scores, second_scores, relevant = list[float](), list[float](), list[bool]()
    with bar("Questions") as progress:
        for count, question in enumerate(gold_questions):
            progress(count, len(gold_questions))
            passages = retriever.search(question.text, depth)
            scores += [estimate.score for estimate in judge.estimate(question.text, passages, Event())]
            second_scores += second_scorer(question.text, passages)
            relevant += [passage.id in question.gold for passage in passages]
    fitted_blend = blends.fit(score_name, scores, second_scores, relevant)
    fitted_blend.save(model / blends.NAME)
    print_summary(asdict(fitted_blend), options.as_json)
    print_text(f"The blend is {model / blends.NAME}.", error_console)


@app.command()
def vectors(
    *,
    into: Annotated[
        Path | None, Option("--out", help="The file to write.", show_default="the one that comes with Sequitur")
    ] = None,
    options: MeasurementOptions,
) -> None:
    """Encode the starter library for search by meaning, so that nobody's first start has to."""
    knobs = options.load_settings()
    library = Bm25(with_bar("Starter library", ensure_starter, knobs))
    encoder = open_encoder(Path(_resolved(knobs.embedder.model, knobs)))
    _, texts = rows_of(enumerate(library.passages()), (), encoder)
    file = into or known_vectors.SHIPPED / f"{encoder.name}.npz"
    count = with_bar("Vectors", known_vectors.write, file, texts.values(), encoder)
    print_summary({"vectors": count, "file": str(file)}, options.as_json)


# --- what several of them do -------------------------------------------------------------------------------------


def _resolved(model: str, knobs: Settings, title: str = "Encoder") -> str:
    """The folder of the model to start from, fetched if need be."""
    return str(with_bar(title, Catalogue.load().resolve, model, knobs))


def _show_epochs(epochs: Sequence[Any], as_json: bool) -> None:
    history = [asdict(epoch) for epoch in epochs]
    print_summary(history, as_json, {"epochs": history})
