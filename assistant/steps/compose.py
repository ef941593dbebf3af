"""A piece of writing that was asked for: a poem, a letter, a translation. No source is searched for what it states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from threading import Event

from assistant.budget import fit
from assistant.steps.history import recent
from assistant.text import finished
from assistant.types import Answer, Options, Parts, Turn

_ROOM = 320
# A refrain comes twice; a small model that goes round in circles writes such a line for ever.
_TIMES, _WORDS = 2, 4


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `answer`, written with the facts that matter here and the last exchanges in view."""
    history = recent(turn.history, exchanges=4, chars=1200)
    messages, cuts = fit("write", parts.llm, _ROOM, history=history, facts=turn.used_facts, utterance=turn.utterance)
    turn = turn.grow(question=turn.utterance, cuts=turn.cuts + cuts)
    for completion in parts.llm.stream(messages, Options(max_tokens=_ROOM), stop):
        text = finished(completion, "chat")
        straight = _straight(text)
        yield turn.grow(answer=Answer(straight, origin="model"))
        if straight != text:
            return


def _straight(text: str) -> str:
    """The text up to the line that comes once too often, all of it where none does. The last line is not looked at."""
    lines, seen = text.split("\n"), Counter[str]()
    for n, line in enumerate(lines[:-1]):
        seen[line.strip()] += 1
        if seen[line.strip()] > _TIMES and len(line.split()) >= _WORDS:
            return "\n".join(lines[:n]).rstrip()
    return text
