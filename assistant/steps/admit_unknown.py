"""Replaces an answer that is unknown: by the model's own knowledge, labelled as that, or by "not in the library"."""

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
from assistant.text.sentences import ended, whole_sentences
from assistant.types import Answer, Turn
from assistant.wording.replies import FIXED


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Replaces a chat answer that is unknown, as `relevance.if_unanswerable` says.

    An answer that no passage supports stays, labelled as the model's own. Where there is none, or it was set aside, the
    model is asked for its own knowledge. The reply is "not in the library" in three cases: the model doesn't know
    either, it may not be asked, or the passage most likely to answer is from a document of the person's own, of which
    the model knows nothing.
    """
    answer, policy = turn.answer, if_unanswerable(turn, parts)
    if answer is None or not answer.unknown or turn.choices.form != "chat" or stop.is_set():
        yield turn
    elif answer.origin == "model" or policy in {"refuse", "ask"}:
        yield _not_held(turn)
    elif _of_own_documents(turn):
        yield replace(_not_held(turn), own_answer="")
    elif not turn.citations and not says_unknown(answer.text) and not echoes(turn.question, answer.text):
        yield replace(turn.with_event("unsupported"), answer=unbacked(answer.text), citations=())
    elif policy == "answer":
        yield _not_held(turn)
    else:
        yield from _from_own_knowledge(turn.with_event("own_knowledge"), parts, stop)


def _of_own_documents(turn: Turn) -> bool:
    most_relevant = max(turn.passages, key=lambda passage: passage.confidence or 0.0, default=None)
    return most_relevant is not None and most_relevant.own


def _from_own_knowledge(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds the draft as the `answer` if it is complete, else asks the model once more."""
    turn = replace(turn, answer=None, sentences=(), citations=())
    if ended(turn.draft) and not says_unknown(turn.draft):
        yield replace(turn, answer=unbacked(turn.draft))
        return
    for turn in timed("own", closed_book.run, turn, parts, stop):
        yield turn
    if turn.answer and turn.answer.unknown and not stop.is_set():
        yield _not_held(turn)


def _not_held(turn: Turn) -> Turn:
    """The turn with "not in the library" as answer, and its draft as `own_answer` unless the model was asked since."""
    answer = turn.answer or Answer("")
    draft = "" if answer.origin == "model" else whole_sentences(turn.draft)
    answer = replace(answer, text=FIXED["not_held"], outcome="not_held")
    return replace(turn, answer=answer, sentences=(), citations=(), own_answer=draft)
