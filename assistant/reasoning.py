"""Answers that a chain of thought comes before: the model reasons, then writes "Answer:" and the answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from threading import Event

from assistant import citations
from assistant.budget import fit
from assistant.strategies.concat import FACTOID_ROOM
from assistant.types import Answer, Options, Parts, Turn
from assistant.unknown import says_unknown

# Tokens for the thought itself, on top of those for the answer.
THOUGHT_ROOM = 160
_LABEL = re.compile(r"^\W*(?:final\s+)?answer\W*:\W*", re.IGNORECASE | re.MULTILINE)


def think(prompt: str, turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `reasoning`, then `answer` with its citations, as they grow; `prompt` is a file beside concat's."""
    form = turn.choices.form
    room = THOUGHT_ROOM + (parts.settings.turn.answer_tokens if form == "chat" else FACTOID_ROOM)
    values = {"passages": turn.shown, "facts": turn.used_facts, "question": turn.question}
    messages, cuts = fit(f"{form}/{prompt}", parts.llm, room, **values)
    turn = turn.grow(cuts=turn.cuts + cuts)
    text = ""
    for completion in parts.llm.stream(messages, Options(max_tokens=room), stop):
        text = completion.text
        reasoning, answer = split(text)
        turn = turn.grow(reasoning=reasoning, answer=Answer(answer) if answer else turn.answer)
        yield turn
    # stopped in the middle of a thought, there is no answer yet
    if not stop.is_set():
        yield from citations.settle(turn.grow(answer=_final(text)), parts, stop)


def split(text: str) -> tuple[str, str]:
    """The thought, and what follows the last "Answer:"; nothing follows while it has not been written."""
    labels = list(_LABEL.finditer(text))
    if not labels:
        return text.strip(), ""
    return text[: labels[-1].start()].strip(), text[labels[-1].end() :].strip()


def _final(text: str) -> Answer:
    reasoning, answer = split(text)
    # a model that forgets the label still ends with its answer; a thought that was cut off ends with no answer at all
    last = answer or (reasoning.splitlines() or [""])[-1].strip()
    return Answer(last, unknown=says_unknown(last))
