"""Answers from the model's own knowledge, without any source; the reply is labelled as that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.prompting.stream import stream
from assistant.prompting.unknown import says_unknown
from assistant.protocols import Parts
from assistant.strategies.shared.reading import FACTOID_MAX_TOKENS
from assistant.text.markers import read
from assistant.text.overlap import echoes
from assistant.text.sentences import finished
from assistant.types import Answer, Turn


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds an `answer` from the model's own knowledge, unknown where the model doesn't know either.

    A chat answer that only repeats the question counts as unknown.
    """
    form = turn.choices.form
    max_tokens = parts.settings.turn.max_answer_tokens if form == "chat" else FACTOID_MAX_TOKENS
    values = {"facts": turn.told_facts, "question": turn.question}
    for turn, completion in stream(f"{form}/closed_book", turn, parts, stop, max_tokens, **values):
        if completion.read:
            yield turn
            continue
        text = finished(completion, form)
        unknown = bool(completion.finish) and (says_unknown(text) or (form == "chat" and echoes(turn.question, text)))
        yield replace(turn, answer=Answer(text, unknown, "model") if unknown or form == "factoid" else unbacked(text))


def unbacked(text: str) -> Answer:
    """A chat answer without any source, and without the citation markers that the model wrote."""
    return Answer(read(text).text, origin="model", outcome="own")
