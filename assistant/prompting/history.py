"""The part of a conversation that a prompt is given: the last exchanges, long replies shortened."""

from __future__ import annotations

from dataclasses import replace

from assistant.text.sentences import shorten
from assistant.types import Exchange


def recent(history: tuple[Exchange, ...], exchanges: int, chars: int) -> tuple[Exchange, ...]:
    """The last `exchanges`, each utterance and reply cut to `chars` characters at a sentence's end."""
    return tuple(
        replace(one, utterance=shorten(one.utterance, chars), reply=shorten(one.reply, chars))
        for one in history[-exchanges:]
    )
