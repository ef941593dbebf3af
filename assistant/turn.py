"""One turn, from an utterance to an answer with its sources. Read this file first.

A turn is a frozen value that grows. Each step is one small file; it takes the turn and the parts, and yields the turn
with what it adds. The page, the command line, the store and the evaluation all read this one stream of snapshots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from threading import Event

from assistant import loops
from assistant.errors import SequiturError, UtteranceError
from assistant.flow.timing import timed
from assistant.llm.meter import Meter
from assistant.llm.repetition import RepetitionCutter
from assistant.protocols import Parts, Step
from assistant.steps import (
    admit_unknown,
    answer,
    cite,
    compose,
    constraints,
    converse,
    digest,
    facts,
    fallback,
    intent,
    language,
    offers,
    preview,
    quality,
    quote,
    reasons,
    recall,
    relevance,
    rewrite,
    suitability,
)
from assistant.strategies.shared.strategy import is_unanswered, strategy_named
from assistant.text.sentences import clean
from assistant.types import Choices, Turn
from assistant.whole import work


def always(turn: Turn, parts: Parts) -> bool:  # noqa: ARG001 - called like all conditions
    """The condition of steps that run in every turn."""
    return True


@dataclass(frozen=True, slots=True)
class Stage:
    """A named step of a turn. It is skipped unless `is_due` holds when its place in the flow is reached."""

    name: str
    step: Step
    is_due: Callable[[Turn, Parts], bool] = always


Flow = tuple[Stage, ...]
# Every message goes through OPENING_STAGES, which find out what kind of message it is, and then through the flow for
# its kind. Work on whole documents is not a message and goes through WORK alone. A stage's second function says whether
# the stage is due.
OPENING_STAGES: Flow = (Stage("english", language.message), Stage("facts", facts.run), Stage("intent", intent.run))
QUESTION: Flow = (
    Stage("glance", preview.run),
    Stage("question", rewrite.run),
    Stage("passages", loops.run),
    Stage("relevance", relevance.run, relevance.is_due),
    Stage("quality", quality.run, quality.is_due),
    Stage("digests", digest.run),
    Stage("in_play", constraints.run),
    Stage("suited", suitability.passages),
    Stage("answer", answer.run),
    Stage("citations", cite.citations, cite.is_due),
    Stage("addresses", cite.second_look, cite.is_looked_at_again),
    Stage("quote", quote.run, quote.is_due),
    Stage("fallback", fallback.run, fallback.is_due),
    Stage("admit", admit_unknown.run),
    Stage("suits", suitability.reply),
    Stage("because", reasons.run),
    Stage("language", language.reply, language.is_due),
    Stage("offers", offers.run),
)
TALK: Flow = (Stage("answer", converse.run), Stage("because", reasons.run), Stage("offers", offers.run))
MEMORY: Flow = (Stage("answer", recall.run), Stage("offers", offers.run))
WORK: Flow = (Stage("work", work.run),)
WRITING: Flow = (Stage("answer", compose.run), Stage("because", reasons.run))


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Run a turn; the last snapshot has status "done", "stopped" or "failed".

    Stages that `turn.timings` names are skipped, so that a run can continue from any snapshot, for instance with
    another strategy. Setting `stop` ends the turn at the next token, and keeps what was written. An error that a person
    can do something about ends the turn as "failed", with its message in `error`.

    Raises:
        UtteranceError: the utterance is empty or too long; nothing was yielded.
        SettingsError: the turn's loop or strategy doesn't exist; nothing was yielded.
    """
    turn = accept(turn, parts)
    check(turn.choices)
    parts = replace(parts, llm=Meter(RepetitionCutter(parts.llm)))
    try:
        if not turn.work:
            for turn in _through(OPENING_STAGES, turn, parts, stop):
                yield turn
        for turn in _through(_flow_of(turn), turn, parts, stop):
            yield turn
    except SequiturError as error:
        yield replace(turn, status="failed", error=str(error), step="", wait=None)
        return
    yield _stopped(turn) if stop.is_set() else replace(turn, status="done", step="", wait=None)


def check(choices: Choices) -> None:
    """Check that the chosen loop and strategy exist.

    Raises:
        SettingsError: one of them doesn't; the message lists those that do.
    """
    loops.named(choices.loop)
    strategy_named(choices.strategy)


def accept(turn: Turn, parts: Parts) -> Turn:
    """The turn at its start: with its utterance cleaned, and the name of the model that answers.

    Raises:
        UtteranceError: the utterance is empty or too long.
    """
    utterance = accepted(turn.utterance, parts.settings.turn.max_utterance_chars)
    return replace(turn, utterance=utterance, model=parts.llm.name)


def accepted(utterance: str, max_chars: int) -> str:
    """The utterance, cleaned.

    Raises:
        UtteranceError: it is empty, or longer than `max_chars` characters.
    """
    utterance = clean(utterance)
    if not utterance:
        raise UtteranceError("The message is empty; type a question first.")
    if len(utterance) > max_chars:
        raise UtteranceError(
            f"The message has {len(utterance):,} characters; at most {max_chars:,} are read at once. "
            "Shorten it, or add long text as a document."
        )
    return utterance


def _stopped(turn: Turn) -> Turn:
    """The turn as it is stored after a stop; an answer that only says "unknown" is removed."""
    turn = replace(turn, status="stopped", step="", wait=None)
    return replace(turn, answer=None, sentences=(), citations=()) if is_unanswered(turn) else turn


def _flow_of(turn: Turn) -> Flow:
    if turn.work:
        return WORK
    if turn.asks:
        return MEMORY
    if turn.intent == "question":
        return QUESTION
    return WRITING if turn.intent == "writing" else TALK


def _through(flow: Flow, turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    # taken before the first stage runs: a step that runs others inside it adds their names to the timings, and the
    # stages with these names must still run here
    done_stages = set(turn.timings)
    for stage in flow:
        if stage.name in done_stages or not stage.is_due(turn, parts):
            continue
        if stop.is_set():
            return
        for turn in timed(stage.name, stage.step, turn, parts, stop):
            yield turn
