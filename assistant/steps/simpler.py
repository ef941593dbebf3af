"""Says a long reply that cites nothing once more in simpler words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.prompting.budget import fit
from assistant.protocols import Parts
from assistant.types import Options, Turn

# Characters from which a reply counts as long.
_LONG = 600


def is_due(turn: Turn, parts: Parts) -> bool:  # noqa: ARG001 - as every stage asks
    """Whether the reply is long and cites nothing that other words could part from its source."""
    return turn.answer is not None and not turn.citations and len(turn.answer.text) >= _LONG


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Puts the simpler words into `answer`; where none come, it stays as it is."""
    if turn.answer is None or stop.is_set():
        yield turn
        return
    room = parts.settings.turn.max_answer_tokens
    messages, cuts = fit("simpler", parts.llm, room, text=turn.answer.text)
    [completion] = parts.llm.complete([messages], Options(max_tokens=room), stop)
    answer = replace(turn.answer, text=completion.text.strip() or turn.answer.text)
    yield replace(turn, answer=answer, cuts=turn.cuts + cuts)
