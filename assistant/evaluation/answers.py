"""Measures answer strategies on questions with known answers, as the post-fusion paper does (its sections 3 and 4).

All strategies get the same questions and the same passages. One row, as it is written to rows.jsonl:

    {"strategy": "concat_pf", "k": 5, "placement": "none", "samples": 1, "id": "nqo0001", "question": "when is ...",
     "passages": ["nq00001", ...], "gold_found": true, "pool": [], "answer": "May 18, 2018", "gold": ["May 18, 2018"],
     "em": 1.0, "f1": 1.0, "unknown": false, "nm": false, "prompt_tokens": 743, "completion_tokens": 8, "seconds": 3.1,
     "unanswerable": false, "shots": 0, "iterations": [], "error": ""}

A strategy may name its own loop: "itrg_refresh/document" answers from what that loop found and wrote, and its own way
to doubt an answer (see `evaluation.answer_methods`). Tokens and seconds include the loop's; those of a cached reply
(see `CachedLLM`) are what it took when the model wrote it. `iterations` holds `{"query", "passages": [ids], "document",
"recall"}` for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import partial
from itertools import product
from pathlib import Path
from threading import Event
from typing import Annotated, Any, cast

from pandas import DataFrame
from typer import Option

from assistant.errors import DataError, SettingsError, UtteranceError
from assistant.evaluation import plots, scores
from assistant.evaluation.answer_methods import parse_method
from assistant.evaluation.baselines import BASELINES, REASONING_STRATEGIES, WITHOUT_PASSAGES
from assistant.evaluation.few_shot import Demonstrator, draw_demonstrations
from assistant.evaluation.scores import Setting
from assistant.evaluation.searching import BM25, ITERATIONS, Finder, check_loops
from assistant.experiment.batching import with_batching
from assistant.experiment.cache import REPLIES, CachedLLM, saved_seconds_of
from assistant.experiment.conditions import llm_of, model_of
from assistant.experiment.datasets import (
    Corpus,
    GoldPlacement,
    Question,
    place_gold,
    read_corpus,
    read_questions,
    usable_questions,
)
from assistant.experiment.measures import answer_recall, exact_match, lost_vote, token_f1
from assistant.experiment.options import Corpus as CorpusFile
from assistant.experiment.options import Iterations, OneLoop, Questions, Rounds, Sample
from assistant.experiment.runs import Row, Run
from assistant.experiment.task import Rows, Summary, Task, claim_of_fields, non_default_fields
from assistant.flow.timing import charged, timed
from assistant.judges.uncertainty import UNKNOWN, WORD
from assistant.llm.meter import Meter
from assistant.llm.repetition import RepetitionCutter
from assistant.protocols import Parts, Progress
from assistant.strategies.shared.consistency import sampled
from assistant.strategies.shared.strategy import Strategy, in_full, strategy_named
from assistant.types import Choices, Iteration, Passage, Turn

CLOSED_BOOK = "closed_book"
_READING = (
    "Measures are shares, with 95 % bootstrap intervals over questions; gold found is the share of questions with a"
    " gold passage among those shown last. Empty and failed answers count as wrong. Strategies ran one after another on"
    " one loaded model, so with few questions the seconds of later ones are too low: prompts that the model has just"
    " read are not read again."
)
Key = tuple[str, int, str, int, int, str]
# One answer to ask for: by a strategy, at a setting, to a question.
AnswerRequest = tuple[str, Setting, Question]
# `GoldPlacement`, as options take it.
GoldPlacementOption = StrEnum("GoldPlacementOption", ["none", "insert", "first", "last"])


@dataclass(frozen=True)
class SettingGrid:
    """The options whose combinations, in the order given, are a run's settings; the first of each are the main one."""

    k: Annotated[tuple[int, ...], Option("--k", min=1, help="Passages shown; may be repeated.")] = (5,)
    gold: Annotated[
        tuple[GoldPlacementOption, ...], Option("--gold", help="Where the gold passage is put; may be repeated.")
    ] = (GoldPlacementOption("none"),)
    samples: Annotated[
        tuple[int, ...], Option("--samples", min=1, help="Samples of each prompt, then a vote; may be repeated.")
    ] = (1,)
    shots: Annotated[
        tuple[int, ...],
        Option(min=0, max=10, help="Questions with answers shown first, from outside the sample; may be repeated."),
    ] = (0,)

    @property
    def settings(self) -> tuple[Setting, ...]:
        """All of them."""
        placements = [cast("GoldPlacement", str(placement)) for placement in self.gold]
        return tuple(Setting(*values) for values in product(self.k, placements, self.samples, self.shots))


@dataclass(frozen=True)
class Experiment(Sample):
    """The experiment's options. `uncertainty` names the test for "unknown", with its threshold if it has one.

    Runs of one model, with the same backend and weights, may share a file of `replies`.
    """

    corpus: CorpusFile
    questions: Questions
    strategies: tuple[str, ...] = ()
    settings: tuple[Setting, ...] = (Setting(),)
    loop: OneLoop = "question"
    rounds: Rounds = 1
    iterations: Iterations = ITERATIONS
    filter_known: Annotated[
        bool, Option("--filter-known", help="Leave out what the model answers without passages.")
    ] = False
    replies: Annotated[
        Path | None,
        Option(
            help="Where the model's replies are kept, and found again; runs of one model and backend may share it.",
            show_default="in the folder of --out",
        ),
    ] = None
    retriever: str = BM25
    uncertainty: str = WORD


@dataclass(frozen=True, slots=True)
class Material:
    """The questions, their corpus, and how many questions were left out, by reason.

    `demonstrations` are for few-shot prompts, as many as any setting shows.
    """

    questions: tuple[Question, ...]
    corpus: Corpus
    left_out: dict[str, int] = field(default_factory=dict)
    demonstrations: tuple[Question, ...] = ()


def prepare(experiment: Experiment) -> Material:
    """Read and check everything before a model is loaded.

    Raises:
        DataError: a file that is broken, no question left to ask or to demonstrate with, a k that is larger than the
            corpus, or a corpus that knows none of the gold passages.
        SettingsError: a strategy or a loop that does not exist, or a strategy that can't be demonstrated.
    """
    methods = [parse_method(name, experiment.loop) for name in experiment.strategies]
    shots = max(setting.shots for setting in experiment.settings)
    for method in methods:
        _strategy(method.strategy)
    thinking_strategies = [method.strategy for method in methods if method.strategy in REASONING_STRATEGIES]
    if shots and thinking_strategies:
        raise SettingsError(
            f"Demonstrations are answers without a thought, and '{thinking_strategies[0]}' thinks first; "
            "ask it without --shots, in a run of its own."
        )
    check_loops([experiment.loop, *(method.loop for method in methods)])
    all_questions = read_questions(experiment.questions)
    corpus = read_corpus(experiment.corpus, {gold for question in all_questions for gold in question.gold})
    placed = any(setting.placement != "none" for setting in experiment.settings)
    _check(experiment, all_questions, corpus, placed)
    sample = experiment.draw(all_questions)
    why_not = partial(_exclusion_reason, corpus=corpus, placed=placed)
    questions, left_out = usable_questions(experiment.questions, sample, why_not, "asked")
    demonstrations = draw_demonstrations(all_questions, sample, shots, experiment.seed) if shots else ()
    return Material(questions, corpus, left_out, demonstrations)


def claim(experiment: Experiment, model: str) -> Row:
    """All that determines the rows of an experiment, besides their keys."""
    decided = claim_of_fields(experiment, "corpus", "questions", "seed", "skip", "loop")
    unusual_options = non_default_fields(experiment, "rounds", "iterations", "retriever", "uncertainty")
    return {**decided, "model": model, **unusual_options}


def _strategy(name: str) -> Strategy:
    return Strategy(BASELINES[name]) if name in BASELINES else strategy_named(name)


def _check(experiment: Experiment, questions: Sequence[Question], corpus: Corpus, placed: bool) -> None:
    largest_k = max(setting.k for setting in experiment.settings)
    if largest_k > corpus.size:
        raise DataError(
            f"k is {largest_k}, but {experiment.corpus} has only {corpus.size} passages; choose a smaller k."
        )
    names_gold = any(question.gold for question in questions)
    if placed and not (names_gold and corpus.passages):
        missing = "no passage of the corpus" if names_gold else "no gold passages at all"
        raise DataError(f"The questions name {missing} as gold; use --gold none, or the corpus that belongs to them.")


def _exclusion_reason(question: Question, corpus: Corpus, placed: bool) -> str:
    if not question.answers and not question.unanswerable:
        return "questions without accepted answers"
    if placed and question.gold and corpus.passages.keys().isdisjoint(question.gold):
        return "questions with gold passages that the corpus lacks"
    return ""


class PassageProvider:
    """Finds the passages that each question is asked with."""

    def __init__(self, experiment: Experiment, corpus: Corpus, parts: Parts, stop: Event | None = None) -> None:
        self._experiment, self._corpus = experiment, corpus
        loops = {"loops": experiment.rounds, "iterations": experiment.iterations}
        self._finder = Finder(parts.settings, parts.retriever, lambda: parts, stop=stop, **loops)

    def passages(self, setting: Setting, question: Question, loop: str | None = None) -> tuple[Passage, ...]:
        """The top k with the gold passage placed as the setting says; the same at every call."""
        if not setting.k:
            return ()
        passages = self._finder.find(loop or self._experiment.loop, question.text, setting.k, setting.k)
        by_id = self._corpus.passages
        gold = [by_id[passage_id] for passage_id in question.gold if passage_id in by_id]
        return place_gold(passages, gold, setting.placement, f"{self._experiment.seed} {question.id}")

    def turn(self, setting: Setting, question: Question, loop: str) -> Turn:
        """The turn as the loop leaves it, with its cost, and with these passages."""
        turn = self._finder.turn(loop, question.text, setting.k)
        return replace(turn, passages=self.passages(setting, question, loop))


class Answers(Task[AnswerRequest, Parts]):
    """Asks every question of `material` by every strategy at every setting.

    With `filter_known`, questions that the model answers from its own knowledge are removed from `material` first.
    """

    title = "Answers"

    def __init__(self, experiment: Experiment, material: Material, model: str) -> None:
        self._experiment, self._model = experiment, model
        self._stop = Event()
        self._set_material(material)

    def _set_material(self, material: Material) -> None:
        self.material = material
        self.items = _keyed(
            (strategy, setting, question)
            for setting in self._experiment.settings
            # strategy by strategy: asked at once, a question would find its passages already read and look too fast
            for strategy in self._experiment.strategies
            for question in material.questions
        )

    def key(self, row: Row) -> Key:
        """See `Task`."""
        return row["strategy"], row["k"], row["placement"], row["samples"], row.get("shots", 0), row["id"]

    def claim(self) -> Row:
        """See `Task`."""
        return claim(self._experiment, self._model)

    def is_done(self, run: Run[Key]) -> bool:
        """Whether no row is missing; with `filter_known` the model has to be asked in any case."""
        return not self._experiment.filter_known and super().is_done(run)

    def fill(self, run: Run[Key], parts: Parts, progress: Progress, jobs: int = 1, stop: Event | None = None) -> None:
        """Make the missing rows, `jobs` at a time: the run is done sooner, but each row takes more `seconds`."""
        parts = with_batching(parts, jobs)
        # a shared file may be used by runs with other settings of a turn; one in the run's folder belongs to that run
        shared = self._experiment.replies
        model = (llm_of if shared else model_of)(parts.settings)
        parts = replace(parts, llm=CachedLLM(parts.llm, shared or run.folder / REPLIES, model))
        self._passage_provider = PassageProvider(self._experiment, self.material.corpus, parts, self._stop)
        if self._experiment.filter_known:
            self._leave_known_out(run, parts, progress)
        super().fill(run, parts, progress, jobs, stop or self._stop)

    def _leave_known_out(self, run: Run[Key], parts: Parts, progress: Progress) -> None:
        requests = _keyed((CLOSED_BOOK, Setting(0), question) for question in self.material.questions)
        todo = [(key, partial(self.row, request, parts)) for key, request in requests.items()]
        run.fill(todo, len(requests), progress)
        question_rows = zip(self.material.questions, (run.rows[key] for key in requests), strict=True)
        remaining = [question for question, row in question_rows if not row["em"] or row["unanswerable"]]
        if not remaining:
            raise DataError("The model answers every question without a passage; leave --filter-known out.")
        known_count = {"questions that the model answers without passages": len(requests) - len(remaining)}
        left_out = self.material.left_out | known_count
        self._set_material(replace(self.material, questions=tuple(remaining), left_out=left_out))

    def row(self, item: AnswerRequest, parts: Parts) -> Row:
        """See `Task`."""
        turn, error = self._answered(item, parts)
        strategy, setting, question = item
        return {"strategy": strategy, **asdict(setting), **row_of(question, turn), "error": error}

    def _answered(self, item: AnswerRequest, parts: Parts) -> tuple[Turn, str]:
        method_name, setting, question = item
        method = parse_method(method_name, self._experiment.loop)
        loop, strategy = method.loop, method.strategy
        turn = Turn(question.text, question=question.text)
        cached_llm, demonstrations = parts.llm, self.material.demonstrations[: setting.shots]
        llm = Meter(RepetitionCutter(Demonstrator(cached_llm, demonstrations)))
        parts = replace(method.with_settings(parts), llm=llm)
        answering_strategy = _strategy(strategy)
        if setting.samples > 1:
            answering_strategy = sampled(answering_strategy, setting.samples, self._experiment.seed)
        step = in_full(answering_strategy)
        try:
            if strategy not in WITHOUT_PASSAGES:
                turn = self._passage_provider.turn(setting, question, loop)
            turn = replace(turn, choices=Choices(strategy, loop, setting.k, form="factoid"))
            seconds_before = saved_seconds_of(cached_llm)
            *_, turn = timed("answer", step, turn, parts, self._stop)
            return charged(turn, "answer", saved_seconds_of(cached_llm) - seconds_before), ""
        except UtteranceError as error:
            # a question that is too long for the model counts as wrong, and must not end the run each time
            return replace(turn, answer=None, pool=()), str(error)

    def summarise(self, rows: Rows) -> Summary:
        """The measures of each strategy: at the first setting under `strategies`, at all of them under `settings`.

        A measure is `{"value", "low", "high"}` with the ends of its 95 % bootstrap interval over questions, a share is
        between 0 and 1; `differences` are paired, strategy minus `base`. `recall` is, for each iteration of a loop that
        writes documents, the share of documents that hold an answer.
        """
        material = self.material
        blocks = scores.summaries(self.scores(rows), self._experiment.seed)
        return {
            "strategies": blocks[0]["strategies"],
            "differences": blocks[0]["differences"],
            "settings": blocks,
            "questions": len(material.questions),
            "weak_gold": any(question.weak for question in material.questions),
            "left_out": material.left_out,
            "passages": material.corpus.size,
            "run": self.claim(),
        }

    def scores(self, rows: Rows) -> DataFrame:
        """The scores of the rows; see `assistant.evaluation.scores`."""
        return scores.of_rows(self.claim(), [rows[key] for key in self.items])

    def printed_part(self, summary: Summary) -> Summary:
        """The strategies at the first setting."""
        return {name: summary[name] for name in ("strategies", "differences")}

    def details(self, summary: Summary, run: Run[Any]) -> str:
        """The plots and notes on how to read them; writes scores.csv as well."""
        run.write("scores.csv", scores.as_csv(self.scores(run.rows)))
        weak_note = "The gold passages are weak (found by the answer's string), so this is no benchmark score."
        plot_links = [f"![{plot.stem.replace('_', ' ')}]({plot.name})" for plot in plots.answers(summary, run.folder)]
        return "\n\n".join([_READING, *([weak_note] if summary["weak_gold"] else []), *plot_links])


def _keyed(requests: Iterable[AnswerRequest]) -> dict[Key, AnswerRequest]:
    """The requests by the keys of their rows."""
    return {
        (name, setting.k, setting.placement, setting.samples, setting.shots, question.id): (name, setting, question)
        for name, setting, question in requests
    }


def row_of(question: Question, turn: Turn) -> Row:
    """The measures of one answered turn; for an unanswerable question only "unknown" is right (SQuAD 2.0)."""
    unknown = turn.answer is not None and turn.answer.unknown
    text = turn.answer.text if turn.answer else ""
    # an answer that counts as unknown is not scored by its text; an empty one is counted as empty
    answer = UNKNOWN if unknown and text else text
    has_answers = bool(question.answers)
    return {
        "id": question.id,
        "question": question.text,
        "queries": [query.text for query in turn.queries],
        "passages": [passage.id for passage in turn.passages],
        "gold_found": any(passage.id in question.gold for passage in turn.passages),
        "pool": [{"text": c.text, "passage_id": c.passage_id, "votes": c.votes} for c in turn.pool],
        "answer": answer,
        "gold": list(question.answers),
        "em": exact_match(answer, question.answers) if has_answers else float(unknown),
        "f1": token_f1(answer, question.answers) if has_answers else float(unknown),
        "unknown": unknown,
        "nm": lost_vote(answer, [candidate.text for candidate in turn.pool], question.answers),
        "unanswerable": question.unanswerable,
        "iterations": [_iteration(iteration, question) for iteration in turn.iterations],
        "prompt_tokens": turn.tokens.prompt,
        "completion_tokens": turn.tokens.completion,
        "seconds": round(turn.seconds, 3),
    }


def _iteration(iteration: Iteration, question: Question) -> Row:
    return {
        "query": iteration.query,
        "passages": [passage.id for passage in iteration.passages],
        "document": iteration.document,
        "recall": answer_recall(iteration.document, question.answers),
    }
