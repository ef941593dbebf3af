"""`evaluate`: measures on real data. Each run has a folder, in which a killed run is continued.

The options of an evaluation are defined beside it; here its parts are loaded, and the runner is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import cache, partial
from pathlib import Path
from threading import Event
from typing import Annotated

from typer import Argument, BadParameter, Option

from assistant.commands.common import ComparedRetriever, by_words, error_console, load_llm, load_with_bars
from assistant.commands.experiment import (
    EmptyRetriever,
    JudgeOptions,
    ResultOptions,
    RunOptions,
    corpus_index,
    embedder_of,
    language_model,
    load_turn_parts,
    print_summary,
)
from assistant.commands.option_groups import Group
from assistant.commands.progress_bars import bar, with_bar
from assistant.commands.turn_options import TurnOptions
from assistant.errors import DataError
from assistant.evaluation import (
    answers,
    chat,
    groundedness,
    guesses,
    ikat,
    intents,
    lists,
    memory,
    personal,
    ptkb,
    ranking,
    relevance,
    rewriting,
    scenarios,
    scores,
    sentences,
    stated,
    suitability,
    support,
    uncertainty,
    weighing,
)
from assistant.evaluation.searching import Finder
from assistant.experiment.batching import with_batching
from assistant.experiment.conditions import model_of
from assistant.experiment.datasets import GoldPlacement, read_corpus, read_qrels, read_queries
from assistant.experiment.options import (
    AsJson,
    BootstrapSeed,
    Corpora,
    Corpus,
    Jobs,
    OneLoop,
    Questions,
    Sample,
    ShownPassages,
    Split,
)
from assistant.experiment.runs import read_rows
from assistant.ikat.topics import read_topics
from assistant.judges.addresses import Addresses
from assistant.judges.relevance import load as estimators
from assistant.judges.relevance.calibration import Calibration, Method
from assistant.judges.suitability.judge import judge_of, shipped
from assistant.judges.support.large import SHIPPED as LARGE
from assistant.judges.support.large import opened
from assistant.judges.support.llm import ByLLM
from assistant.judges.support.trained import SHIPPED as SUPPORT
from assistant.judges.uncertainty import uncertainty_label
from assistant.library.corpus import corpus_folder
from assistant.library.shelves import open_library
from assistant.library.vectors import dense_retriever
from assistant.parts import load_embedder, load_encoder
from assistant.protocols import Estimator, Parts, Retriever, SupportJudge, silent
from assistant.retrieve import retrievers
from assistant.retrieve.encoder_pieces import BySentences
from assistant.settings import RetrieveSettings, Settings
from assistant.steps.intent import library_answers
from assistant.steps.suitability import Sieve

app = Group(help="Measure answers, rankings and rewriting on real data.", no_args_is_help=True)

SHIPPED, BY_LLM, ADDRESSES = "shipped", "llm", "addresses"
# The probability from which on the language model's "yes" is likelier than its "no".
EVEN_ODDS = 0.5
Estimates = Annotated[
    str,
    Option("--estimator", help="'shipped', 'large', 'llm', 'cosine', or a cross-encoder or T5: a folder or a hub id."),
]


def command(run: Callable[..., None]) -> Callable[..., None]:
    """Register a command of this group, with its option groups; `evaluate_x` becomes the command x."""
    return app.command(run.__name__.removeprefix("evaluate_").replace("_", "-"))(run)


# --- answers and rankings ----------------------------------------------------------------------------------------


@command
def evaluate_answers(
    *,
    experiment: answers.Experiment,
    strategy: Annotated[
        list[str],
        Option(
            help="A strategy to measure, or LOOP/STRATEGY, or a baseline (closed_book, chain_of_thought,"
            " retrieve_then_read). STRATEGY@TEST:THRESHOLD uses another test of turn.uncertainty for whether an answer"
            " counts as unknown, and STRATEGY+examples shows the model examples of answers. May be repeated."
        ),
    ],
    more: Annotated[list[str] | None, Argument(metavar="STRATEGY", help="More strategies.")] = None,
    retriever: ComparedRetriever = "bm25",
    varied: answers.SettingGrid,
    jobs: Jobs = 1,
    options: RunOptions,
) -> None:
    """Compare answer strategies by EM, F1, %Unk, %NM, tokens and seconds, on the same questions and passages."""
    names = tuple(dict.fromkeys(name for argument in (*strategy, *(more or ())) for name in argument.split(",")))
    knobs = options.load_settings(retrieve={"retriever": retriever})
    experiment = replace(
        experiment,
        strategies=names,
        settings=varied.settings,
        retriever=_retriever_label(knobs),
        uncertainty=uncertainty_label(knobs.turn),
    )
    task = answers.Answers(experiment, answers.prepare(experiment), model_of(knobs))
    options.perform(task, lambda: _turn_parts(knobs, experiment.corpus), jobs)


@command
def evaluate_pool(
    files: Annotated[list[Path], Argument(metavar="SCORES", help="The files scores.csv of these runs.")],
    seed: BootstrapSeed = 0,
    as_json: AsJson = False,
) -> None:
    """Sum up several runs of `evaluate answers`, each on other questions of the same data, as if they were one."""
    print_summary({"settings": scores.summaries(scores.pool(files), seed)}, as_json)


@command
def evaluate_uncertainty(  # noqa: PLR0913 - the experiment's knobs
    *,
    corpus: Corpus,
    questions: Questions,
    retriever: ComparedRetriever = "bm25",
    loop: OneLoop = "question",
    k: ShownPassages = 5,
    gold: Annotated[GoldPlacement, Option(help="Where the gold passage is put.")] = "none",
    sample: Sample,
    options: RunOptions,
) -> None:
    """Compare tests by which an answer counts as unknown: AUC, and the best threshold of each."""
    knobs = options.load_settings(retrieve={"retriever": retriever})
    experiment = answers.Experiment(
        corpus, questions, (), (scores.Setting(k, gold),), loop, retriever=_retriever_label(knobs), **asdict(sample)
    )
    task = uncertainty.UncertaintyTests(experiment, answers.prepare(experiment), model_of(knobs))
    options.perform(task, lambda: _turn_parts(knobs, corpus))


@command
def evaluate_ranking(
    *,
    experiment: ranking.Experiment,
    retriever: ComparedRetriever = "bm25",
    stop_words: Annotated[bool, Option("--without-stop-words", help="Leave common words out of the queries.")] = False,
    by_sentences: Annotated[
        bool,
        Option(
            "--by-sentences", help="Encode each sentence of the passages, too, as is done for people's own documents."
        ),
    ] = False,
    jobs: Jobs = 1,
    options: RunOptions,
) -> None:
    """Compare ways to find passages by nDCG, success, recall, reciprocal rank and average precision."""
    knobs = options.load_settings(retrieve={"retriever": retriever})
    unusual = (", without stop words" if stop_words else "") + (", by sentences" if by_sentences else "")
    experiment = replace(experiment, retriever=_retriever_label(knobs) + unusual)
    task = ranking.Ranking(experiment, ranking.prepare(experiment), model_of(knobs))

    def finder() -> Finder:
        searcher = _retriever(knobs, experiment.corpus, by_sentences)
        searcher = ranking.WithoutStopWords(searcher) if stop_words else searcher
        load_parts = cache(lambda: with_batching(load_turn_parts(knobs, searcher), jobs))
        return Finder(knobs, searcher, load_parts, experiment.rounds, experiment.iterations)

    options.perform(task, finder, jobs)


@command
def evaluate_rewriting(
    *,
    dialogues: Annotated[Path, Option(help="CANARD's dialogues or iKAT's topics, a .jsonl[.gz] file.")],
    corpus: Annotated[Path | None, Option(help="Passages to search with the rewrites.")] = None,
    qrels: Annotated[Path | None, Option(help="Which passage belongs to a follow-up.")] = None,
    jobs: Jobs = 1,
    sample: Sample,
    options: RunOptions,
) -> None:
    """Compare our rewrites to people's by ROUGE-1, BLEU and exact match, and by what they find."""
    if (corpus is None) != (qrels is None):
        raise DataError("Retrieval needs both --corpus and --qrels; give both or neither.")
    judgements = read_qrels(qrels) if qrels else None
    if corpus:
        read_corpus(corpus, set())
    all_follow_ups = rewriting.read_follow_ups(dialogues)
    follow_ups = rewriting.sample_follow_ups(all_follow_ups, sample, judgements)
    knobs = options.load_settings()
    retriever = _retriever(knobs, corpus) if corpus else None
    missing = sum(not follow_up.human for follow_up in all_follow_ups)
    task = rewriting.Rewriting(dialogues, follow_ups, model_of(knobs), sample.seed, retriever, judgements, missing)
    options.perform(task, lambda: with_batching(load_turn_parts(knobs, retriever or EmptyRetriever()), jobs), jobs)


# --- judges of pairs and messages --------------------------------------------------------------------------------


@command
def evaluate_support(
    *,
    pairs: Annotated[
        Path, Option(help="A .jsonl[.gz] file of {question, claim, title, evidence, label}, the first optional.")
    ],
    judge: Annotated[
        str,
        Option(
            help="'large', 'trained' or 'llm', as in the setting turn.support, which is the default; the folder of a "
            "trained judge; or 'addresses', the second look: does the claim answer the question as the evidence does?",
        ),
    ] = "",
    corpus: Corpora = None,
    split: Split = "",
    sample: Sample,
    options: JudgeOptions,
) -> None:
    """How well are supported claims recognised? AUC, balanced accuracy, precision, recall, milliseconds a pair."""
    rows = sample.draw_or_all(support.read_pairs(pairs, split, corpus or ()))
    knobs = options.load_settings()
    judge = judge or knobs.turn.support
    support_judge = _support(judge, knobs)
    judge_pairs, threshold = support.by_judge(support_judge), support_judge.threshold
    with bar("Pairs") as progress:
        summary, judged_rows = support.measure(rows, judge_pairs, threshold, lambda n: progress(n, len(rows)))
    options.finish({"judge": judge, **summary}, judged_rows)


def _support(name: str, knobs: Settings) -> SupportJudge:
    if name == ADDRESSES:
        turn, embedder, judge = knobs.turn, load_embedder(knobs, silent), _support(knobs.turn.support, knobs)
        return Addresses(load_llm(knobs, silent), judge, embedder, turn.addresses_threshold, turn.verdict_threshold)
    if name == BY_LLM:
        return ByLLM(load_llm(knobs, silent), knobs.turn.support_threshold, load_embedder(knobs, silent))
    return opened({"trained": SUPPORT, "large": LARGE}.get(name, Path(name)), knobs, silent)


@command
def evaluate_suitability(
    *,
    pairs: Annotated[
        Path, Option(help="A .jsonl[.gz] file of {fact, text, clash} lines, some with the question that is replied to.")
    ],
    judge: Annotated[
        str,
        Option(
            help="The folder of a trained judge, or 'llm': the language model's own yes or no; by default the judge "
            "that comes with Sequitur, with the reader that is set (facts.suitability).",
        ),
    ] = "",
    corpus: Corpora = None,
    sample: Sample,
    options: JudgeOptions,
) -> None:
    """How well are clashes recognised? AUC, precision, recall, the share of false alarms, milliseconds a pair."""
    rows, knobs = sample.draw_or_all(suitability.read_pairs(pairs, corpus or ())), options.load_settings()
    if judge == BY_LLM:
        judge_pairs, threshold = suitability.by_llm(language_model(knobs)), EVEN_ODDS
    else:
        embedder = embedder_of(knobs)
        trained = judge_of(Path(judge), embedder) if judge else shipped(knobs, embedder, silent)
        judge_pairs, threshold = suitability.by_judge(trained), trained.threshold
    summary, rows_judged = suitability.measure(rows, judge_pairs, threshold)
    options.finish({"judge": judge or knobs.facts.suitability, **summary}, rows_judged)


@command
def evaluate_lists(
    *,
    file: Annotated[
        Path,
        Option(
            "--lists", help="A .jsonl[.gz] file of {fact, text, clash, kind} lines: each 'list' before its 'item's."
        ),
    ],
    sample: Sample,
    options: JudgeOptions,
) -> None:
    """Of lists with items that clash with a fact, which items are left? Shares of those that suit and that clash."""
    rows, knobs = sample.draw_or_all(lists.read_lists(file)), options.load_settings()
    judge, llm = shipped(knobs, embedder_of(knobs), silent), language_model(knobs)
    options.finish(*lists.measure(rows, lambda fact: Sieve(judge, llm, [fact], lists.QUESTION, Event()), sample.seed))


@command
def evaluate_quoting(
    *,
    corpus: Corpus,
    questions: Questions,
    own: Annotated[bool, Option("--own", help="The passages are a person's own documents.")] = False,
    sample: Sample,
    options: ResultOptions,
) -> None:
    """Does the sentence that would be quoted answer? AUC of the judges, and how many pass `turn.quote_threshold`.

    Some of the questions are answered by their gold passages; the others, which have no `answers`, are not.
    """
    knobs, sampled_questions = options.load_settings(), list(sample.draw_questions(questions).values())
    gold_ids = {gold_id for question in sampled_questions for gold_id in question.gold}
    passages = {name: replace(gold, own=own) for name, gold in read_corpus(corpus, gold_ids).passages.items()}
    with bar("Questions") as progress:
        rows = sentences.quote_rows(
            sampled_questions, passages, _relevance(knobs), _support(knobs.turn.support, knobs),
            lambda n: progress(n, len(sampled_questions)),
        )  # fmt: skip
    options.finish(sentences.quote_summary(rows, knobs.turn.quote_threshold, sample.seed), rows)


@command
def evaluate_own_passages(
    *,
    files: Annotated[
        list[Path], Option("--scenarios", help="JSONL of {id, kind, documents, ask, expect, ...}; may be given again.")
    ],
    unrelated: Annotated[Path, Option(help="Questions that none of the documents answers: JSONL of {id, question}.")],
    options: ResultOptions,
) -> None:
    """What does reading a person's own passages sentence by sentence change? Confidence in documents that answer."""
    knobs = options.load_settings()
    all_scenarios = [scenario for file in files for scenario in scenarios.read_scenarios(file).values()]
    rows = sentences.own_passage_rows(all_scenarios, read_queries(unrelated), _relevance(knobs))
    summary = sentences.own_passage_summary(rows, knobs.relevance.threshold, knobs.relevance.small_talk_threshold, 0)
    options.finish(summary, rows)


def _relevance(knobs: Settings) -> Estimator:
    """The estimator that comes with Sequitur and is set, calibrated as in turns."""
    name = estimators.LARGE if knobs.relevance.estimator == estimators.LARGE else SHIPPED
    return estimators.load_calibrated(name, None, partial(load_llm, knobs, silent), knobs, silent)


@command
def evaluate_intents(
    *,
    messages: Annotated[Path, Option(help="JSONL of {text, intent, split}.")],
    split: Annotated[str, Option(help="dev, test, or empty for both.")] = "test",
    library: Annotated[
        str | None,
        Option(help="Search this library for what seems to be talk, as a turn does; by default nothing is searched."),
    ] = None,
    options: ResultOptions,
) -> None:
    """Are questions told from small talk, talk about the conversation and writing? Accuracy, and questions missed."""
    knobs, rows = options.load_settings(), intents.Message.read(messages, split)
    look_up = partial(_answered_by_library, library, knobs) if library else None
    summary, judged_rows = intents.measure(rows, load_embedder(knobs, silent), knobs.turn, look_up)
    options.finish({"split": split, **summary}, judged_rows)


def _answered_by_library(library: str, knobs: Settings, texts: Sequence[str]) -> list[bool]:
    estimator, retriever = _relevance(knobs), open_library(library, knobs)
    return [library_answers(text, retriever, estimator, knobs.relevance, Event()) for text in texts]


# --- the relevance estimator -------------------------------------------------------------------------------------


@command
def evaluate_relevance(
    *,
    experiment: relevance.Experiment,
    retriever: ComparedRetriever = "bm25",
    estimator: Estimates = SHIPPED,
    calibration: Annotated[Path | None, Option(help="A calibration to apply, made by --calibrate.")] = None,
    calibrate: Annotated[
        Method | None,
        Option(help="Calibrate each half on the other; all of it is written as calibration.json to --out."),
    ] = None,
    options: RunOptions,
) -> None:
    """Measure a relevance estimator: R@1 to R@20, F1 of 'unanswerable', calibration error."""
    if calibration and calibrate:
        raise BadParameter("give --calibration or --calibrate, not both")
    if calibration:
        Calibration.load(calibration)
    material = relevance.prepare(experiment)
    knobs = options.load_settings(retrieve={"retriever": retriever})
    with bar("Estimator") as progress:
        judge = estimators.load(estimator, lambda: load_llm(knobs, progress), knobs, progress)
    curve = Calibration.load(calibration, judge.name) if calibration else None
    retriever_label = _retriever_label(knobs)
    task = relevance.Estimates(experiment, material, judge.name, model_of(knobs), retriever_label, curve, calibrate)
    options.perform(task, lambda: (judge, _retriever(knobs, experiment.corpus)))


@command
def evaluate_re_rag(
    *,
    experiment: weighing.Experiment,
    estimator: Estimates = SHIPPED,
    calibration: Annotated[
        Path | None, Option(help="A calibration to apply.", show_default="the one beside the model")
    ] = None,
    options: RunOptions,
) -> None:
    """Measure RE-RAG: EM by weight and by vote, its parts alone, abstaining, the model's own knowledge."""
    knobs = by_words(options.load_settings())
    experiment = replace(experiment, uncertainty=uncertainty_label(knobs.turn))
    experiment_questions = weighing.prepare(experiment)
    retriever, embedder = corpus_index(experiment.corpus, knobs), embedder_of(knobs)
    llm = language_model(knobs)
    judge = with_bar("Estimator", estimators.load_calibrated, estimator, calibration, lambda: llm, knobs)
    task = weighing.Weighing(experiment, experiment_questions, model_of(knobs), llm.name, judge)
    options.perform(task, lambda: Parts(knobs, llm, embedder, retriever))


# --- turns as people have them -----------------------------------------------------------------------------------


@command
def evaluate_groundedness(  # noqa: PLR0913 - the experiment's knobs
    *,
    questions: Questions,
    corpus: Annotated[
        Path | None, Option(help="Passages to answer from: a .jsonl[.gz] file.", show_default="the library")
    ] = None,
    library: Annotated[str | None, Option(help="The library to answer from.")] = None,
    turn_options: TurnOptions,
    read: Annotated[int, Option(min=0, help="Write so many sentences to reading.jsonl, for a person to label.")] = 0,
    labels: Annotated[Path | None, Option(help="What a person found: compare the check with it.")] = None,
    sample: Sample,
    options: RunOptions,
) -> None:
    """Measure how many sentences of answers a passage supports, and the precision and recall of citations."""
    sampled_questions = sample.draw_questions(questions)
    human_labels = groundedness.Label.read(labels) if labels else []
    knobs = by_words(options.load_settings(library=library))
    choices = turn_options.choices(knobs, str(corpus or ""), knobs.relevance.if_unanswerable_for("factoid"))
    digest = knobs.turn.digest + (f" ({knobs.turn.summariser})" if knobs.turn.digest == "seq2seq" else "")
    threshold, model = knobs.turn.support_threshold, model_of(knobs)
    task = groundedness.Groundedness(
        questions, sampled_questions, choices, digest, threshold, model, sample.seed, human_labels, read
    )
    options.perform(task, lambda: load_turn_parts(knobs, _corpus_or_library(knobs, corpus)))


def _corpus_or_library(knobs: Settings, corpus: Path | None) -> Retriever:
    return corpus_index(corpus, knobs) if corpus else open_library(knobs.library, knobs)


@command
def evaluate_chat(
    *,
    corpus: Corpus,
    questions: Questions,
    beside: Annotated[
        Path | None, Option(help="The folder of another run on the same questions, to compare with.")
    ] = None,
    sample: Sample,
    options: RunOptions,
) -> None:
    """Run whole chat turns; count gold answers in replies, what they rest on, and how often the fallback helps."""
    sampled_questions, knobs = sample.draw_questions(questions), options.load_settings()
    choices = TurnOptions().choices(knobs)
    other_rows = read_rows(beside) if beside else None
    task = chat.Chat(corpus, questions, sampled_questions, choices, knobs, sample.seed, other_rows)
    options.perform(task, lambda: _turn_parts(knobs, corpus))


@command
def evaluate_scenarios(
    *,
    file: Annotated[
        Path, Option("--scenarios", help="A .jsonl[.gz] file of {id, kind, facts, history, documents, ask, expect, …}.")
    ],
    facts: Annotated[
        scenarios.FactPlacement, Option(help="Whether the facts are stored, or stated in the message or one before it.")
    ] = "stored",
    sample: Sample,
    options: RunOptions,
) -> None:
    """Run whole turns with facts, history and documents, and count by kind those that are as the file expects."""
    all_scenarios, knobs = scenarios.read_scenarios(file), options.load_settings()
    chosen_scenarios = {
        scenario_id: scenarios.place_facts(all_scenarios[scenario_id], facts)
        for scenario_id in sample.draw_or_all(list(all_scenarios))
    }
    task = scenarios.Scenarios(file, chosen_scenarios, TurnOptions().choices(knobs), model_of(knobs), Path(), facts)
    options.perform(replace(task, folder=options.folder(task)), lambda: load_with_bars(knobs))


@command
def evaluate_personal(
    *,
    pairs: Annotated[Path, Option(help="A .jsonl[.gz] file of {facts, question, must, history, split}.")],
    split: Split = "",
    sample: Sample,
    options: RunOptions,
) -> None:
    """How often does the rewritten question say what the facts tell ("my country": Germany)? The share, by kind."""
    chosen_pairs, knobs = sample.draw_or_all(personal.read_pairs(pairs, split)), options.load_settings()
    task = personal.PersonalRewriting(pairs, {pair.id: pair for pair in chosen_pairs}, model_of(knobs))
    # rewriting questions needs no passages
    options.perform(task, lambda: Parts(knobs, language_model(knobs), embedder_of(knobs), EmptyRetriever()))


@command
def evaluate_guesses(*, questions: Questions, sample: Sample, options: RunOptions) -> None:
    """How much of what the model says by itself is told as a reply, how much offered as a guess, and what is right?"""
    sampled_questions, knobs = sample.draw_questions(questions), options.load_settings()
    task = guesses.Guesses(questions, sampled_questions, model_of(knobs), knobs.turn.guess_below)
    options.perform(task, lambda: Parts(knobs, language_model(knobs), embedder_of(knobs), EmptyRetriever()))


# --- facts -------------------------------------------------------------------------------------------------------


@command
def evaluate_ptkb(
    *,
    topics: Annotated[Path, Option(help="Topics of TREC iKAT, the JSON file of any year.")],
    qrels: Annotated[
        Path | None,
        Option(help="Judgements: 'turn 0 fact relevance' lines.", show_default="the topics' ptkb_provenance"),
    ] = None,
    seen: Annotated[
        Path | None,
        Option(help="Judgements on which settings were chosen; turns that have none are also measured by themselves."),
    ] = None,
    sample: Sample,
    options: ResultOptions,
) -> None:
    """Measure which facts are found relevant, against people's labels and beside a baseline.

    The baseline is the mean of a fact's cosines to the utterance and to the whole history.
    """
    all_turns = ptkb.read_topics(topics)
    labelled_turns, labels = ptkb.labelled_turns(all_turns, qrels)
    seen_turn_ids = {turn.id for turn in ptkb.labelled_turns(all_turns, seen)[0]} if seen else set[str]()
    turns, knobs = ptkb.sample_turns(labelled_turns, sample), options.load_settings()
    embedder = embedder_of(knobs)
    summary, rows = ptkb.measure(turns, labels, embedder, knobs.facts, sample.seed, seen_turn_ids)
    options.finish({"embedder": embedder.name, **summary}, rows)


@command
def evaluate_ikat(
    *,
    run: Annotated[Path, Option(help="The folder of a run of `python -m assistant ikat`; some topics are enough.")],
    topics: Annotated[Path, Option(help="The topics that it was played with.")],
    facts: Annotated[
        Path | None, Option("--ptkb", help="Judgements of facts.", show_default="the topics' ptkb_provenance")
    ] = None,
    qrels: Annotated[Path | None, Option(help="Judgements of passages.")] = None,
    nuggets: Annotated[Path | None, Option(help="Nuggets of responses: JSONL of {turn, text}.")] = None,
    seed: BootstrapSeed = 0,
    options: ResultOptions,
) -> None:
    """Measure a run of TREC iKAT: facts, passages, and responses beside the track's own and against nuggets."""
    labels = ikat.Labels(
        ptkb.labelled_turns(ptkb.read_topics(topics), facts)[1],
        ikat.qrels_by_turn(read_qrels(qrels)) if qrels else {},
        ikat.read_nuggets(nuggets) if nuggets else {},
    )
    settings = options.load_settings()
    judge = _support(settings.turn.support, settings)
    options.finish(*ikat.measure(read_topics(topics), read_rows(run), labels, judge, seed))


@command
def evaluate_memory(
    *,
    dialogues: Annotated[Path, Option(help="Dialogues with personas, a .jsonl[.gz] file.")],
    sample: Sample,
    options: ResultOptions,
) -> None:
    """Measure what is offered for remembering, against the personas of the speakers."""
    all_speakers, embedder = memory.read_speakers(dialogues), embedder_of(options.load_settings())
    sampled_speakers = sample.draw(all_speakers)
    summary, rows = with_bar("Dialogues", memory.measure, sampled_speakers, all_speakers, embedder, sample.seed)
    options.finish({"embedder": embedder.name, **summary}, rows)


@command
def evaluate_stated(
    *,
    messages: Annotated[Path, Option(help="JSONL of {text, states: [sentence]}.")],
    seed: BootstrapSeed = 0,
    options: ResultOptions,
) -> None:
    """Is what messages state of their writers found? Recall, and false alarms in messages that state nothing."""
    embedder = embedder_of(options.load_settings())
    summary, rows = stated.measure(stated.Message.read(messages), embedder, seed)
    options.finish({"embedder": embedder.name, **summary}, rows)


# --- how passages are found --------------------------------------------------------------------------------------


def _turn_parts(knobs: Settings, corpus: Path) -> Parts:
    return load_turn_parts(knobs, _retriever(knobs, corpus))


def _retriever(knobs: Settings, corpus: Path, by_sentences: bool = False) -> Retriever:
    return retrievers.retriever_module(knobs.retrieve.retriever).opened(_Indexes(knobs, corpus, by_sentences))


class _Indexes:
    """The `retrievers.Indexes` of a corpus, which are made with a progress bar if they are missing."""

    def __init__(self, settings: Settings, corpus: Path, by_sentences: bool) -> None:
        self.settings, self._corpus, self._by_sentences = settings, corpus, by_sentences
        self._words = corpus_index(corpus, settings)

    def words(self) -> Retriever:
        return self._words

    def meaning(self) -> Retriever:
        name = f"corpus-{corpus_folder(self._corpus, self.settings).name}"
        passage_encoder = with_bar("Encoder", load_encoder, self.settings)
        encoder = BySentences(passage_encoder) if self._by_sentences else passage_encoder
        dense = with_bar("Vectors", dense_retriever, name, self._words, self.settings, encoder)
        if dense.cut and not self._by_sentences:
            count = f"{dense.cut:,} of {len(dense):,} passages"
            error_console.print(f"Longer than the encoder reads at once, so searched by their pieces: {count}.")
        return dense

    def meaning_if_made(self) -> Retriever:
        """See `retrievers.Indexes`; what is measured waits for its vectors."""
        return self.meaning()


def _retriever_label(knobs: Settings) -> str:
    """The retriever with its vectors or weights, for a run to state, since others give other rows."""
    retrieve, defaults = knobs.retrieve, RetrieveSettings()
    name = retrieve.retriever
    is_usual = (retrieve.k1, retrieve.b) == (defaults.k1, defaults.b)
    weights = "" if is_usual else f" (k1 {retrieve.k1:g}, b {retrieve.b:g})"
    encoders = f"{retrieve.encoder or knobs.embedder.model} {retrieve.question_encoder}".strip()
    return f"{name}{weights} ({encoders})" if retrievers.retriever_module(name).ENCODES else name + weights
