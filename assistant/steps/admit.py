"""Says so plainly when the library does not hold an answer, and keeps the model's own answer apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.text import whole_sentences
from assistant.types import Parts, Turn

NOT_HELD = "The library doesn't hold an answer to this."


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:  # noqa: ARG001 - nothing to wait for
    """Replaces an unknown chat answer by `NOT_HELD`; adds the draft as `own_answer`, which no source backs."""
    if turn.answer and turn.answer.unknown and turn.choices.form == "chat" and not stop.is_set():
        answer = replace(turn.answer, text=NOT_HELD)
        turn = turn.grow(answer=answer, sentences=(), citations=(), own_answer=whole_sentences(turn.draft))
    yield turn
