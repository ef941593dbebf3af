"""One turn, from an utterance to an answer with its sources. Read this file first.

A turn is a frozen value that grows. Each step is one small file; it takes the turn and the parts, and yields the turn
with what it adds. The page, the command line, the store and the evaluation all read this one stream of snapshots.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.errors import SequiturError, UtteranceError
from assistant.flow.stage import Flow, Stage, step_named
from assistant.flow.timing import timed
from assistant.llm.meter import Meter
from assistant.llm.repetition import RepetitionCutter
from assistant.protocols import Parts
from assistant.steps import (
    admit,
    answer,
    because,
    cite,
    compose,
    converse,
    digest,
    facts,
    fallback,
    glance,
    in_play,
    intent,
    language,
    offers,
    quality,
    quote,
    recall,
    relevance,
    rewrite,
    search,
    suit,
)
from assistant.strategies.shared.strategy import is_unanswered, strategy_named
from assistant.text.sentences import clean
from assistant.types import Choices, Turn
from assistant.whole import work

# A message goes through BEFORE, which finds out what kind of message it is, and then through the flow of that kind;
# work on whole documents is no message, and has a flow of its own. The second function of a stage says whether it is
# due.
BEFORE: Flow = (Stage("english", language.message), Stage("facts", facts.run), Stage("intent", intent.run))
QUESTION: Flow = (
    Stage("glance", glance.run),
    Stage("question", rewrite.run),
    Stage("passages", search.run),
    Stage("relevance", relevance.run, relevance.is_due),
    Stage("quality", quality.run, quality.is_due),
    Stage("digests", digest.run),
    Stage("in_play", in_play.run),
    Stage("suited", suit.passages),
    Stage("answer", answer.run),
    Stage("citations", cite.citations, cite.is_due),
    Stage("addresses", cite.second_look, cite.is_looked_at_again),
    Stage("quote", quote.run, quote.is_due),
    Stage("fallback", fallback.run, fallback.is_due),
    Stage("admit", admit.run),
    Stage("suits", suit.reply),
    Stage("because", because.run),
    Stage("language", language.reply, language.is_due),
    Stage("offers", offers.run),
)
TALK: Flow = (Stage("answer", converse.run), Stage("because", because.run), Stage("offers", offers.run))
MEMORY: Flow = (Stage("answer", recall.run), Stage("offers", offers.run))
WORK: Flow = (Stage("work", work.run),)
WRITING: Flow = (Stage("answer", compose.run), Stage("because", because.run))


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Run a turn; the last snapshot has status "done", "stopped" or "failed".

    Steps that `turn.timings` names are not run again, so that a run can go on from any snapshot, for instance with
    another strategy.
    Setting `stop` ends the turn at the next token, and what was written is kept. An error that a person can do
    something about ends it as "failed", with the sentence in `error`.

    Raises:
        UtteranceError: the utterance is empty or too long; nothing was yielded.
        SettingsError: there is no such loop or strategy; nothing was yielded.
    """
    turn = accept(turn, parts)
    check(turn.choices)
    parts = replace(parts, llm=Meter(RepetitionCutter(parts.llm)))
    try:
        if not turn.work:
            for turn in _through(BEFORE, turn, parts, stop):
                yield turn
        for turn in _through(_flow_of(turn), turn, parts, stop):
            yield turn
    except SequiturError as error:
        yield replace(turn, status="failed", error=str(error), step="", wait=None)
        return
    yield _stopped(turn) if stop.is_set() else replace(turn, status="done", step="", wait=None)


def check(choices: Choices) -> None:
    """See that there are such a loop and such a strategy.

    Raises:
        SettingsError: there is no such one; the message lists those there are.
    """
    step_named("loops", choices.loop)
    strategy_named(choices.strategy)


def accept(turn: Turn, parts: Parts) -> Turn:
    """The turn as it starts: its utterance cleaned, and the model's name noted.

    Raises:
        UtteranceError: the utterance is empty or too long.
    """
    utterance = accepted(turn.utterance, parts.settings.turn.max_utterance_chars)
    return replace(turn, utterance=utterance, model=parts.llm.name)


def accepted(utterance: str, most: int) -> str:
    """The utterance, cleaned.

    Raises:
        UtteranceError: it is empty, or longer than `most` characters.
    """
    utterance = clean(utterance)
    if not utterance:
        raise UtteranceError("The message is empty; type a question first.")
    if len(utterance) > most:
        raise UtteranceError(
            f"The message has {len(utterance):,} characters; at most {most:,} are read at once. "
            "Shorten it, or add long text as a document."
        )
    return utterance


def _stopped(turn: Turn) -> Turn:
    """The turn as it is kept where it was stopped: an answer that says nothing isn't."""
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
    # noted before the first of them: a step that runs others inside it adds their names to the timings, and these are
    # still to run here
    done = set(turn.timings)
    for stage in flow:
        if stage.name in done or not stage.is_due(turn, parts):
            continue
        if stop.is_set():
            return
        for turn in timed(stage.name, stage.step, turn, parts, stop):
            yield turn
