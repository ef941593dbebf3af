"""A long answer is said again in one sentence, in front of it: an example of how little a step takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.prompting.budget import fit
from assistant.protocols import Parts
from assistant.types import Options, Turn

# Characters from which an answer is long.
LONG = 1500
_ROOM = 48


def is_due(turn: Turn, parts: Parts) -> bool:  # noqa: ARG001 - no setting decides
    """Whether there is a long answer."""
    return turn.answer is not None and len(turn.answer.text) > LONG


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Puts the gist in front of the `answer`."""
    if turn.answer:
        messages, cuts = fit("gist", parts.llm, _ROOM, question=turn.question, answer=turn.answer.text)
        [gist] = parts.llm.complete([messages], Options(max_tokens=_ROOM), stop)
        answer = replace(turn.answer, text=f"{gist.text.strip()}\n\n{turn.answer.text}")
        turn = replace(turn, answer=answer, cuts=turn.cuts + cuts)
    yield turn
