"""Writes what was asked for: a poem, a letter, a translation. Nothing is searched for, and nothing is cited."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.prompting.history import recent
from assistant.prompting.stream import stream
from assistant.protocols import Parts
from assistant.text.sentences import finished_text
from assistant.types import Answer, Turn

_MAX_TOKENS = 320


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `answer`, written with the relevant facts and the last exchanges in the prompt."""
    turn = replace(turn, question=turn.utterance)
    history = recent(turn.history, exchanges=4, chars=1200)
    values = {"history": history, "facts": turn.told_facts, "utterance": turn.utterance}
    for turn, completion in stream("write", turn, parts, stop, _MAX_TOKENS, **values):
        yield (
            turn if completion.read else replace(turn, answer=Answer(finished_text(completion, "chat"), origin="model"))
        )
