"""Drafts: the model's own answer, written before it reads any passage, as the query of GRG (section 2.2.2).

In a further round (X = 2) the draft is written from the digests of the passages found, and is the next query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from threading import Event

from assistant.flow.timing import timed
from assistant.prompting.history import recent
from assistant.prompting.stream import stream
from assistant.protocols import Parts
from assistant.steps import digest, quality
from assistant.types import Exchange, Turn


def rounds(turn: Turn, parts: Parts, stop: Event, search: Callable[[Turn], Turn]) -> Iterator[Turn]:
    """Adds `draft` and what `search` finds with it, for as many rounds as were chosen (`Choices.loops`)."""
    for round_index in range(turn.choices.loops):
        if round_index:
            for turn in _with_digests(turn, parts, stop):
                yield turn
        for turn in timed("draft", run, turn, parts, stop):
            yield turn
        if stop.is_set():
            return
        turn = search(turn)
        yield turn


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `draft` as it grows: from the facts, the question and the digests of an earlier round, if there was one.

    The question stands alone, so the history only adds context; the settings say how much of it is used.
    """
    values = {
        "history": _history(turn, parts),
        "notes": tuple(digest.text for digest in turn.digests),
        "facts": turn.used_facts,
        "question": turn.question,
    }
    for turn, completion in stream("draft", turn, parts, stop, parts.settings.turn.max_draft_tokens, **values):
        yield turn if completion.read else replace(turn, draft=completion.text.strip())


def _history(turn: Turn, parts: Parts) -> tuple[Exchange, ...]:
    """The last exchange, or the whole history, from which `fit` drops the oldest exchanges that don't fit."""
    is_whole = parts.settings.turn.draft_history == "whole"
    return turn.history if is_whole else recent(turn.history, exchanges=1, chars=200)


def _with_digests(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds the digests for the next draft, made from the passages that the answer would be made from."""
    if parts.settings.turn.quality_model:
        for turn in timed("quality", quality.run, turn, parts, stop):
            yield turn
    yield from timed("digests", digest.run, turn, parts, stop)
