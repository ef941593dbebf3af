"""Answers from the passages by the turn's strategy, or without them if no passage seems relevant enough.

The confidence of a set of passages is that of its best one. If it is below the threshold, the library counts as not
holding the answer (RE-RAG, section 5.1). Answering from the model's own knowledge then is the paper's mixed strategy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.protocols import Parts
from assistant.settings import IfUnanswerable
from assistant.steps import closed_book
from assistant.strategies.shared.strategy import strategy_named
from assistant.types import Answer, Turn
from assistant.wording.replies import fixed


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds what the strategy adds; or an `answer` without sources, and an event that says why."""
    if turn.left_out and not turn.shown:
        yield replace(turn, answer=fixed("unsuited"))
    elif is_from_passages(turn, parts):
        yield from strategy_named(turn.choices.strategy).run(turn, parts, stop)
    else:
        yield from _without_passages(if_unanswerable(turn, parts), _none_relevant(turn), parts, stop)


def is_from_passages(turn: Turn, parts: Parts) -> bool:
    """Whether the turn is answered from its passages: they are relevant enough, or are to be used anyway."""
    return turn.confidence is None or turn.confidence.level != "none" or if_unanswerable(turn, parts) == "answer"


def if_unanswerable(turn: Turn, parts: Parts) -> IfUnanswerable:
    """What to do if no passage is relevant enough, by the turn's choices or else by the settings."""
    return turn.choices.below or parts.settings.relevance.if_unanswerable_for(turn.choices.form)


def _none_relevant(turn: Turn) -> Turn:
    if turn.confidence is None:
        return turn
    value, threshold = turn.confidence.value, turn.confidence.threshold
    return turn.with_event("none_relevant", f"confidence {value:.2f}, below {threshold:g}")


def _without_passages(policy: IfUnanswerable, turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    if policy == "own":
        yield from closed_book.run(turn, parts, stop)
    elif policy == "ask" and turn.choices.form == "chat":
        yield replace(turn, answer=fixed("ask", "model"))
    else:
        yield replace(turn, answer=Answer("unknown", unknown=True, outcome="withheld"))
