"""Reads stored turns of earlier versions, whose replies and events were plain sentences."""

from __future__ import annotations

from dataclasses import replace

from assistant.types import Answer, Turn, TurnEvent
from assistant.wording.replies import FIXED, LABEL, SENTENCES


def read(text: str) -> Turn:
    """The turn in this JSON; sentences in one of an earlier version become typed outcomes and events.

    Raises:
        pydantic.ValidationError: the text is no turn.
    """
    turn = Turn.from_json(text)
    # A stored outcome is kept, even if a model wrote the same words as a fixed reply.
    return turn if '"outcome"' in text else _upgraded(turn)


def _upgraded(turn: Turn) -> Turn:
    return replace(
        turn,
        answer=_typed(turn.answer) if turn.answer else None,
        events=tuple(_coded(event) if event.code == "other" else event for event in turn.events),
    )


def _typed(answer: Answer) -> Answer:
    if answer.origin == "model" and answer.text.startswith(LABEL):
        return replace(answer, text=answer.text.removeprefix(LABEL).lstrip(), outcome="own")
    return replace(answer, outcome=next((kind for kind, text in FIXED.items() if text == answer.text), "written"))


def _coded(event: TurnEvent) -> TurnEvent:
    for code, sentence in SENTENCES.items():
        start, _, end = sentence.partition("{}")
        if start and event.detail.startswith(start) and event.detail.endswith(end):
            return TurnEvent(code, event.detail[len(start) : len(event.detail) - len(end)])
    return event
