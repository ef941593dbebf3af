"""One turn, from an utterance to an answer with its sources. Read this file first.

    english -> facts -> intent -> glance -> question -> passages (draft inside) -> relevance (if set) -> quality (if
    set) -> digests -> in_play (facts) -> suited (to the person) -> answer (citations and a second look inside) -> quote
    (if there is no answer) -> admit -> suits -> because -> language (if set) -> offers

A turn is a frozen value that grows. Each step is one small file; it takes the turn and the parts, and yields the turn
with what it adds. The page, the command line, the store and the evaluation all read this one stream of snapshots.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.errors import SequiturError, UtteranceError
from assistant.flow import variants
from assistant.flow.timing import timed
from assistant.llm.meter import metered
from assistant.llm.rounds import straight
from assistant.protocols import Parts, Step
from assistant.steps import (
    abstain,
    admit,
    because,
    compose,
    converse,
    digest,
    facts,
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
    suit,
)
from assistant.text.sentences import clean
from assistant.types import Intent, Turn

Flow = tuple[tuple[str, Step], ...]

BEFORE: Flow = (("english", language.message), ("facts", facts.run), ("intent", intent.run))
TALK: Flow = (("answer", converse.run), ("because", because.run), ("offers", offers.run))
MEMORY: Flow = (("answer", recall.run), ("offers", offers.run))
WRITING: Flow = (("answer", compose.run), ("because", because.run))


def asked(turn: Turn, *, estimated: bool = False, judged: bool = False, translated: bool = False) -> Flow:
    """The flow of a question: the loop finds passages, and the strategy answers from them.

    In between their relevance may be `estimated`, and their quality `judged`; at last the reply may be `translated`.
    """
    return (
        ("glance", glance.run),
        ("question", rewrite.run),
        ("passages", variants.step("loops", turn.choices.loop)),
        *((("relevance", relevance.run),) if estimated else ()),
        *((("quality", quality.run),) if judged else ()),
        ("digests", digest.run),
        ("in_play", in_play.run),
        ("suited", suit.passages),
        ("answer", abstain.unless_supported(variants.step("strategies", turn.choices.strategy))),
        ("quote", quote.run),
        ("admit", admit.run),
        ("suits", suit.reply),
        ("because", because.run),
        *((("language", language.reply),) if translated else ()),
        ("offers", offers.run),
    )


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Run a turn; the last snapshot has status "done", "stopped" or "failed".

    Steps that its timings name are done already: a snapshot can be gone on with, for instance by another strategy.
    Setting `stop` ends the turn at the next token, and what was written is kept. An error that a person can do
    something about ends it as "failed", with the sentence in `error`.

    Raises:
        UtteranceError: the utterance is empty or too long; nothing was yielded.
        SettingsError: there is no such loop or strategy; nothing was yielded.
    """
    turn = accept(turn, parts)
    parts = replace(parts, llm=metered(straight(parts.llm)))
    knobs = parts.settings.turn
    question = asked(
        turn,
        estimated=parts.estimator is not None,
        judged=bool(knobs.quality),
        translated=knobs.translate,
    )
    try:
        for turn in _through(BEFORE, turn, parts, stop):
            yield turn
        flows: dict[Intent, Flow] = {"question": question, "writing": WRITING}
        for turn in _through(MEMORY if turn.asks else flows.get(turn.intent, TALK), turn, parts, stop):
            yield turn
    except SequiturError as error:
        yield replace(turn, status="failed", error=str(error), step="", wait=None)
        return
    yield replace(turn, status="stopped" if stop.is_set() else "done", step="", wait=None)


def accept(turn: Turn, parts: Parts) -> Turn:
    """The turn as it starts: its utterance cleaned, and the model's name noted.

    Raises:
        UtteranceError: the utterance is empty or too long.
    """
    utterance = accepted(turn.utterance, parts.settings.turn.utterance_chars)
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


def _through(flow: Flow, turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    # a step may run others inside it, which name themselves, too: they are to run here all the same
    done = set(turn.timings)
    for name, step in flow:
        if name in done:
            continue
        if stop.is_set():
            return
        for turn in timed(name, step, turn, parts, stop):
            yield turn
