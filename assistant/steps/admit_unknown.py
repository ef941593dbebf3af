"""Replaces an unknown answer by the model's own knowledge, labelled as such, or by "not in the library"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.flow.timing import timed
from assistant.prompting.unknown import says_unknown
from assistant.protocols import Parts
from assistant.steps import closed_book
from assistant.steps.answer import if_unanswerable
from assistant.steps.closed_book import unbacked
from assistant.text.overlap import echoes
from assistant.text.sentences import whole_sentences
from assistant.types import Answer, Turn
from assistant.wording.replies import FIXED


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Replaces an unknown chat answer, as `relevance.if_unanswerable` says.

    The model is asked for its own knowledge. The reply is "not in the library" in three cases: the model doesn't know
    either, or only guesses; the settings don't let it be asked; or the passage most likely to answer is from one of the
    person's own documents, of which the model knows nothing.
    """
    answer, policy = turn.answer, if_unanswerable(turn, parts)
    if answer is None or not answer.unknown or turn.choices.form != "chat" or stop.is_set():
        yield turn
    elif answer.origin == "model" or policy in {"refuse", "ask"}:
        yield _not_held(turn)
    elif _is_from_own_documents(turn):
        yield replace(_not_held(turn), own_answer="")
    elif policy == "answer":
        yield _labelled(turn, answer)
    else:
        yield from _from_own_knowledge(turn.with_event("own_knowledge"), parts, stop)


def _labelled(turn: Turn, answer: Answer) -> Turn:
    """The turn with its unsupported text as the model's own answer; "not in the library" if the text says nothing."""
    if turn.citations or says_unknown(answer.text) or echoes(turn.question, answer.text):
        return _not_held(turn)
    return replace(turn.with_event("unsupported"), answer=unbacked(answer.text), citations=())


def _is_from_own_documents(turn: Turn) -> bool:
    highest = max((passage.confidence or 0.0 for passage in turn.passages), default=0.0)
    likeliest = [passage for passage in turn.passages if passage.confidence == highest] or turn.passages[:1]
    return any(passage.own for passage in likeliest)


def _from_own_knowledge(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds what the model answers from its own knowledge, or "not in the library"."""
    turn = replace(turn, answer=None, sentences=(), citations=())
    for turn in timed("own", closed_book.run, turn, parts, stop):
        yield turn
    if turn.answer and turn.answer.unknown and not stop.is_set():
        yield _not_held(turn)


def _not_held(turn: Turn) -> Turn:
    """The turn with "not in the library" as answer; its `own_answer` is a guess, or the draft if nobody guessed."""
    answer = turn.answer or Answer("")
    guess = turn.own_answer if answer.origin == "model" else whole_sentences(turn.draft)
    answer = replace(answer, text=FIXED["not_held"], outcome="not_held")
    return replace(turn, answer=answer, sentences=(), citations=(), own_answer=guess)
