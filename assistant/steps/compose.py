"""Writes what was asked for: a poem, a letter, a translation. Nothing is searched for, and nothing is cited."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.prompting.budget import fit
from assistant.prompting.history import recent
from assistant.protocols import Parts
from assistant.text.sentences import finished
from assistant.types import Answer, Options, Turn

_MAX_TOKENS = 320


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `answer`, written with the relevant facts and the last exchanges in the prompt."""
    history = recent(turn.history, exchanges=4, chars=1200)
    messages, cuts = fit(
        "write", parts.llm, _MAX_TOKENS, history=history, facts=turn.told_facts, utterance=turn.utterance
    )
    turn = replace(turn, question=turn.utterance, cuts=turn.cuts + cuts)
    for completion in parts.llm.stream(messages, Options(max_tokens=_MAX_TOKENS), stop):
        if completion.read:
            yield turn.reading(completion)
        else:
            yield replace(turn, answer=Answer(finished(completion, "chat"), origin="model"))
