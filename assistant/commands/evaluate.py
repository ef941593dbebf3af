"""`evaluate`: measures on real data, each run in a folder of its own that a killed run goes on in."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from assistant.commands.bars import bar
from assistant.commands.common import Backend, DataDir, Model, Searched, SettingsFile, out, settings_of, talk
from assistant.commands.experiment import (
    AsJson,
    Corpus,
    Jobs,
    Limit,
    Nothing,
    Out,
    Questions,
    Seed,
    Skip,
    command_line,
    indexed,
    tell,
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
    limit: Limit = None,
    seed: Seed = 0,
    skip: Skip = 0,
    model: Model = None,
    backend: Backend = None,
    as_json: AsJson = False,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Compare answer strategies by EM, F1, %Unk, %NM, tokens and seconds, on the same questions and passages."""
    from assistant.evaluation import answers as measured  # noqa: PLC0415
    from assistant.evaluation import answers_report as report  # noqa: PLC0415 - matplotlib
    from assistant.evaluation import scores  # noqa: PLC0415 - as above

    names = tuple(dict.fromkeys(name for listed in (*strategy, *(more or ())) for name in listed.split(",")))
    varied = measured.settings_of(
        k or [5], [place.value for place in gold or [GoldPlace.NONE]], samples or [1], shots or [0]
    )
    knobs = settings_of(settings, data_dir, model=model, backend=backend, retriever=retriever)
    experiment = measured.Experiment(
        corpus, questions, names, varied, loop, limit, seed, skip, filter_known, iterations, _searched(knobs),
        told(knobs.turn), replies,
    )  # fmt: skip
    material = measured.prepare(experiment)
    run = measured.open_run(into, experiment, model_of(knobs))
    parts = with_models(knobs, _retriever(knobs, corpus))
    with bar("Answers") as progress:
        material = measured.measure(experiment, material, run, parts, progress, jobs)
    summary = report.summarise(experiment, material, run)
    run.write("scores.csv", scores.as_csv(scores.of_run(experiment, material, run)))
    where = report.write(summary, run, command_line())
    tell(summary, report.table(summary["strategies"]), where.parent, as_json)


@app.command()
def pool(
    files: Annotated[list[Path], typer.Argument(metavar="SCORES", help="The scores.csv of runs on other questions.")],
    seed: Annotated[int, typer.Option(help="Decides the bootstrap's samples.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Sum up runs of `evaluate answers` on other questions of the same data as if they were one."""
    from assistant.evaluation import answers_report as report  # noqa: PLC0415 - matplotlib
    from assistant.evaluation import scores  # noqa: PLC0415 - as above

    blocks = scores.summaries(scores.pool(files), seed)
    if as_json:
        out.print_json(json.dumps({"settings": blocks}))
    else:
        out.print(report.settings_tables(blocks), highlight=False, soft_wrap=True)


@app.command()
def uncertainty(  # noqa: PLR0913 - the experiment's knobs
    *,
    corpus: Corpus,
    questions: Questions,
    into: Out,
    retriever: Searched = None,
    loop: OneLoop = "question",
    k: Annotated[int, typer.Option("--k", min=1, help="Passages shown.")] = 5,
    gold: Annotated[GoldPlace, typer.Option("--gold", help="Where the gold passage is put.")] = GoldPlace.NONE,
    limit: Limit = None,
    seed: Seed = 0,
    skip: Skip = 0,
    model: Model = None,
    backend: Backend = None,
    as_json: AsJson = False,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Compare ways to tell that an answer is not known: AUC, and the best threshold of each."""
    from assistant.evaluation import answers as measured  # noqa: PLC0415
    from assistant.evaluation import answers_report as report  # noqa: PLC0415
    from assistant.evaluation import uncertainty as doubts  # noqa: PLC0415

    one = measured.settings_of([k], [gold.value], [1])
    knobs = settings_of(settings, data_dir, model=model, backend=backend, retriever=retriever)
    experiment = measured.Experiment(corpus, questions, (), one, loop, limit, seed, skip, retriever=_searched(knobs))
    material = measured.prepare(experiment)
    run = doubts.open_run(into, experiment, model_of(knobs))
    parts = with_models(knobs, _retriever(knobs, corpus))
    with bar("Answers") as progress:
        doubts.measure(experiment, material, run, parts, progress)
    summary = {**doubts.summarise(material, run, seed), "left_out": material.left_out}
    _finish(run.write, summary, report.doubts_table(summary["ways"]), as_json)


@app.command()
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
    limit: Limit = None,
    jobs: Jobs = 1,
    seed: Seed = 0,
    model: Model = None,
    backend: Backend = None,
    as_json: AsJson = False,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Compare ways to find passages by nDCG, success, recall, reciprocal rank and average precision."""
    from assistant.evaluation import answers_report as report  # noqa: PLC0415
    from assistant.evaluation import ranking as measured  # noqa: PLC0415
    from assistant.evaluation.searching import Finder  # noqa: PLC0415
    from assistant.experiment.gather import side_by_side  # noqa: PLC0415

    knobs = settings_of(settings, data_dir, model=model, backend=backend, retriever=retriever)
    ways = tuple(loop or ["question"])
    searched = _searched(knobs) + (", without stop words" if stop_words else "")
    experiment = measured.Experiment(
        corpus, queries, qrels, ways, query_field, depth, loops, limit, seed, iterations, searched
    )
    topics = measured.prepare(experiment)
    run = measured.open_run(into, experiment, model_of(knobs))
    found = _retriever(knobs, corpus)
    searcher = measured.WithoutStopWords(found) if stop_words else found
    parts = cache(lambda: side_by_side(with_models(knobs, searcher), jobs))
    finder = Finder(knobs, searcher, parts, loops, iterations)
    with bar("Rankings") as progress:
        measured.measure(experiment, topics, run, finder, progress, jobs)
    summary = measured.summarise(experiment, topics, run)
    _finish(run.write, summary, report.ranking_table(summary), as_json)


@app.command()
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
    limit: Limit = None,
    jobs: Jobs = 1,
    seed: Seed = 0,
    skip: Skip = 0,
    model: Model = None,
    backend: Backend = None,
    as_json: AsJson = False,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Compare our rewrites to people's by ROUGE-1, BLEU and exact match, and by what they find."""
    from assistant.evaluation import answers_report as report  # noqa: PLC0415
    from assistant.evaluation import rewriting as measured  # noqa: PLC0415
    from assistant.experiment.datasets import read_corpus, read_qrels  # noqa: PLC0415

    if (corpus is None) != (qrels is None):
        raise DataError("Retrieval needs both --corpus and --qrels; give both or neither.")
    judged = read_qrels(qrels) if qrels else None
    if corpus:
        read_corpus(corpus, set())
    everything = measured.read_follow_ups(dialogues)
    chosen = measured.choose(everything, limit, seed, judged, skip)
    knobs = settings_of(settings, data_dir, model=model, backend=backend)
    run = measured.open_run(into, dialogues, model_of(knobs))
    parts = with_models(knobs, _retriever(knobs, corpus) if corpus else Nothing())
    with bar("Rewrites") as progress:
        measured.measure(chosen, run, parts, progress, jobs)
    summary = measured.summarise(chosen, run, seed)
    if missing := sum(not one.human for one in everything):
        summary["left_out"] = {"follow-ups that nobody rewrote": missing}
    if judged:
        summary["retrieval"] = measured.retrieval(chosen, run, parts.retriever, judged, seed)
    _finish(run.write, summary, report.rewriting_table(summary), as_json)


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


def _finish(write: Callable[[str, str], Path], summary: Mapping[str, Any], tables: str, as_json: bool) -> None:
    write("summary.json", json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
    where = write("report.md", f"    {command_line()}\n\n{tables}\n")
    tell(summary, tables, where.parent, as_json)
