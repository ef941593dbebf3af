"""`evaluate`: measures on real data, each run in a folder of its own that a killed run goes on in."""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated

import typer

from assistant.commands import evaluate_judges, evaluate_ptkb, evaluate_turns
from assistant.commands.bars import bar
from assistant.commands.common import Searched, talk
from assistant.commands.experiment import (
    AsJson,
    Corpus,
    Jobs,
    Nothing,
    Out,
    Questions,
    Sample,
    Skip,
    Usual,
    indexed,
    perform,
    show,
    spread,
    with_models,
)
from assistant.errors import DataError
from assistant.experiment.conditions import model_of
from assistant.judges.uncertainty import told
from assistant.parts import load_encoder
from assistant.protocols import Retriever
from assistant.retrieve import retrievers
from assistant.settings import RetrieveSettings, Settings

app = typer.Typer(help="Measure answers, rankings and rewriting on real data.", no_args_is_help=True)


class GoldPlace(StrEnum):
    """Where the gold passage is put."""

    NONE = "none"
    INSERT = "insert"
    FIRST = "first"
    LAST = "last"


OneLoop = Annotated[
    str,
    typer.Option(
        help="How passages are found: 'question' (alone), 'draft' (alone), 'generate', 'ranked' (by relevance), or"
        " a loop."
    ),
]
Iterations = Annotated[int, typer.Option(min=1, max=5, help="The T of ITRG's loops; they never end early here.")]
Place = Annotated[
    list[GoldPlace] | None,
    typer.Option("--gold", help="Where the gold passage is put; may be repeated.", show_default="none"),
]


@app.callback()
def _group() -> None:
    """Measure answers, rankings and rewriting on real data."""


@app.command()
@spread
def answers(  # noqa: PLR0913 - the experiment's knobs
    *,
    corpus: Corpus,
    questions: Questions,
    into: Out,
    strategy: Annotated[
        list[str],
        typer.Option(
            help="A strategy to measure, or LOOP/STRATEGY, or a baseline (closed_book, chain_of_thought,"
            " retrieve_then_read); may be repeated."
        ),
    ],
    more: Annotated[list[str] | None, typer.Argument(metavar="STRATEGY", help="More strategies.")] = None,
    retriever: Searched = None,
    loop: OneLoop = "question",
    k: Annotated[
        list[int] | None, typer.Option("--k", min=1, help="Passages shown; may be repeated.", show_default="5")
    ] = None,
    gold: Place = None,
    samples: Annotated[
        list[int] | None,
        typer.Option(
            "--samples", min=1, help="Samples of each prompt, then a vote; may be repeated.", show_default="1"
        ),
    ] = None,
    shots: Annotated[
        list[int] | None,
        typer.Option(
            "--shots",
            min=0,
            max=10,
            help="Questions with answers shown first, from outside the sample; may be repeated.",
            show_default="0",
        ),
    ] = None,
    iterations: Iterations = 3,
    filter_known: Annotated[
        bool, typer.Option("--filter-known", help="Leave out what the model answers without passages.")
    ] = False,
    replies: Annotated[
        Path | None,
        typer.Option(
            help="Where the model's replies are kept, and found again; runs of one model and backend may share it.",
            show_default="in the folder of --out",
        ),
    ] = None,
    jobs: Jobs = 1,
    some: Sample,
    skip: Skip = 0,
    usual: Usual,
) -> None:
    """Compare answer strategies by EM, F1, %Unk, %NM, tokens and seconds, on the same questions and passages."""
    from assistant.evaluation import answers as measured  # noqa: PLC0415

    names = tuple(dict.fromkeys(name for listed in (*strategy, *(more or ())) for name in listed.split(",")))
    varied = measured.settings_of(
        k or [5], [place.value for place in gold or [GoldPlace.NONE]], samples or [1], shots or [0]
    )
    knobs = usual.knobs(retriever=retriever)
    experiment = measured.Experiment(
        corpus, questions, names, varied, loop, some.limit, some.seed, skip, filter_known, iterations,
        _searched(knobs), told(knobs.turn), replies,
    )  # fmt: skip
    task = measured.Answers(experiment, measured.prepare(experiment), model_of(knobs))
    perform(task, into, lambda: with_models(knobs, _retriever(knobs, corpus)), as_json=usual.as_json, jobs=jobs)


@app.command()
@spread
def pool(
    files: Annotated[list[Path], typer.Argument(metavar="SCORES", help="The scores.csv of runs on other questions.")],
    seed: Annotated[int, typer.Option(help="Decides the bootstrap's samples.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Sum up runs of `evaluate answers` on other questions of the same data as if they were one."""
    from assistant.evaluation import answers_report as report  # noqa: PLC0415 - matplotlib
    from assistant.evaluation import scores  # noqa: PLC0415 - as above

    blocks = scores.summaries(scores.pool(files), seed)
    show({"settings": blocks}, report.settings_tables(blocks), as_json)


@app.command()
@spread
def uncertainty(  # noqa: PLR0913 - the experiment's knobs
    *,
    corpus: Corpus,
    questions: Questions,
    into: Out,
    retriever: Searched = None,
    loop: OneLoop = "question",
    k: Annotated[int, typer.Option("--k", min=1, help="Passages shown.")] = 5,
    gold: Annotated[GoldPlace, typer.Option("--gold", help="Where the gold passage is put.")] = GoldPlace.NONE,
    some: Sample,
    skip: Skip = 0,
    usual: Usual,
) -> None:
    """Compare ways to tell that an answer is not known: AUC, and the best threshold of each."""
    from assistant.evaluation import answers as measured  # noqa: PLC0415
    from assistant.evaluation.uncertainty import Ways  # noqa: PLC0415

    one = measured.settings_of([k], [gold.value], [1])
    knobs = usual.knobs(retriever=retriever)
    experiment = measured.Experiment(
        corpus, questions, (), one, loop, some.limit, some.seed, skip, retriever=_searched(knobs)
    )
    task = Ways(experiment, measured.prepare(experiment), model_of(knobs))
    perform(task, into, lambda: with_models(knobs, _retriever(knobs, corpus)), as_json=usual.as_json)


@app.command()
@spread
def ranking(  # noqa: PLR0913 - the experiment's knobs
    *,
    corpus: Corpus,
    queries: Annotated[Path, typer.Option(help="Queries: a .jsonl[.gz] file of {id, text}, or of questions.")],
    qrels: Annotated[Path, typer.Option(help="Judgements: TREC's four columns, or a question file with gold ids.")],
    into: Out,
    loop: Annotated[
        list[str] | None,
        typer.Option(
            help="'question', 'draft', 'generate', or a loop; may be repeated, the first is compared to.",
            show_default="question",
        ),
    ] = None,
    loops: Annotated[int, typer.Option(min=1, max=5, help="The X of Generate-Retrieve-Generate.")] = 1,
    iterations: Iterations = 3,
    depth: Annotated[int, typer.Option(min=1, max=1000, help="Passages ranked for a query.")] = 100,
    retriever: Searched = None,
    query_field: Annotated[str, typer.Option(help="The key of the query's text.", show_default="text")] = "",
    stop_words: Annotated[
        bool, typer.Option("--without-stop-words", help="Leave common words out of what is searched for.")
    ] = False,
    jobs: Jobs = 1,
    some: Sample,
    usual: Usual,
) -> None:
    """Compare ways to find passages by nDCG, success, recall, reciprocal rank and average precision."""
    from assistant.evaluation import ranking as measured  # noqa: PLC0415
    from assistant.evaluation.searching import Finder  # noqa: PLC0415
    from assistant.experiment.gather import side_by_side  # noqa: PLC0415

    knobs = usual.knobs(retriever=retriever)
    searched = _searched(knobs) + (", without stop words" if stop_words else "")
    experiment = measured.Experiment(
        corpus, queries, qrels, tuple(loop or ["question"]), query_field, depth, loops, some.limit, some.seed,
        iterations, searched,
    )  # fmt: skip
    task = measured.Ranking(experiment, measured.prepare(experiment), model_of(knobs))

    def finder() -> Finder:
        found = _retriever(knobs, corpus)
        searcher = measured.WithoutStopWords(found) if stop_words else found
        return Finder(
            knobs, searcher, cache(lambda: side_by_side(with_models(knobs, searcher), jobs)), loops, iterations
        )

    perform(task, into, finder, as_json=usual.as_json, jobs=jobs)


@app.command()
@spread
def rewriting(  # noqa: PLR0913 - the experiment's knobs
    *,
    dialogues: Annotated[Path, typer.Option(help="CANARD's dialogues or iKAT's topics, a .jsonl[.gz] file.")],
    into: Out,
    corpus: Annotated[
        Path | None, typer.Option(help="Passages to search with the rewrites.", show_default=False)
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="Which passage belongs to a follow-up.", show_default=False)
    ] = None,
    jobs: Jobs = 1,
    some: Sample,
    skip: Skip = 0,
    usual: Usual,
) -> None:
    """Compare our rewrites to people's by ROUGE-1, BLEU and exact match, and by what they find."""
    from assistant.evaluation import rewriting as measured  # noqa: PLC0415
    from assistant.experiment.datasets import read_corpus, read_qrels  # noqa: PLC0415
    from assistant.experiment.gather import side_by_side  # noqa: PLC0415

    if (corpus is None) != (qrels is None):
        raise DataError("Retrieval needs both --corpus and --qrels; give both or neither.")
    judged = read_qrels(qrels) if qrels else None
    if corpus:
        read_corpus(corpus, set())
    every = measured.read_follow_ups(dialogues)
    chosen = measured.choose(every, some.limit, some.seed, judged, skip)
    knobs = usual.knobs()
    retriever = _retriever(knobs, corpus) if corpus else None
    missing = sum(not one.human for one in every)
    task = measured.Rewriting(dialogues, chosen, model_of(knobs), some.seed, retriever, judged, missing)
    perform(
        task,
        into,
        lambda: side_by_side(with_models(knobs, retriever or Nothing()), jobs),
        as_json=usual.as_json,
        jobs=jobs,
    )


def _retriever(knobs: Settings, corpus: Path) -> Retriever:
    return retrievers.named(knobs.retrieve.retriever).opened(_Indexes(knobs, corpus))


class _Indexes:
    """The indexes of a corpus, made with a bar where they are not there yet."""

    def __init__(self, settings: Settings, corpus: Path) -> None:
        self.settings, self._corpus = settings, corpus
        self._words = indexed(corpus, settings)

    def words(self) -> Retriever:
        """See `retrievers.Indexes`."""
        return self._words

    def meaning(self) -> Retriever:
        """See `retrievers.Indexes`."""
        from assistant.library.corpus import corpus_folder  # noqa: PLC0415
        from assistant.library.vectors import dense_retriever  # noqa: PLC0415

        name = f"corpus-{corpus_folder(self._corpus, self.settings).name}"
        with bar("Encoder") as progress:
            encoder = load_encoder(self.settings, progress)
        with bar("Vectors") as progress:
            meaning = dense_retriever(name, self._words, self.settings, encoder, progress)
        if meaning.cut:
            count = f"{meaning.cut:,} of {len(meaning):,} passages"
            talk.print(f"Longer than the encoder reads at once, so searched by their pieces: {count}.")
        return meaning


def _searched(knobs: Settings) -> str:
    """How passages are found, for a run to say: other vectors or weights give other rows."""
    chosen, usual = knobs.retrieve, RetrieveSettings()
    name = chosen.retriever
    weights = "" if (chosen.k1, chosen.b) == (usual.k1, usual.b) else f" (k1 {chosen.k1:g}, b {chosen.b:g})"
    encoders = f"{chosen.encoder or knobs.embedder.model} {chosen.question_encoder}".strip()
    return f"{name}{weights} ({encoders})" if retrievers.named(name).ENCODES else name + weights


for command in (evaluate_judges.support, evaluate_judges.intents, evaluate_ptkb.ptkb, evaluate_ptkb.memory):
    app.command()(command)
for command in (evaluate_judges.relevance, evaluate_judges.re_rag, evaluate_judges.suitability):
    app.command()(command)
for command in (evaluate_turns.groundedness, evaluate_turns.chat, evaluate_turns.scenarios, evaluate_turns.personal):
    app.command()(command)
