"""Turns that were stored before replies and events were typed, read as what they are now."""

from __future__ import annotations

from dataclasses import replace

from assistant.types import Answer, Turn, TurnEvent
from assistant.wording.events import SENTENCES
from assistant.wording.replies import FIXED, LABEL


def read(text: str) -> Turn:
    """The turn that was stored as this JSON, with the codes of what an older one has as sentences.

    Raises:
        pydantic.ValidationError: the text is no turn.
    """
    turn = Turn.from_json(text)
    # A reply that is stored with its outcome keeps it, also where a model wrote the words of a fixed one.
    return turn if '"outcome"' in text else _as_now(turn)


def _as_now(turn: Turn) -> Turn:
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
