"""The part of a conversation that goes into a prompt: the last exchanges, shortened."""

from __future__ import annotations

from dataclasses import replace

from assistant.text.sentences import shorten
from assistant.types import Exchange


def recent(history: tuple[Exchange, ...], exchanges: int, chars: int) -> tuple[Exchange, ...]:
    """The last `exchanges`, each utterance and reply cut to `chars` characters at a sentence's end."""
    return tuple(
        replace(exchange, utterance=shorten(exchange.utterance, chars), reply=shorten(exchange.reply, chars))
        for exchange in history[-exchanges:]
    )
