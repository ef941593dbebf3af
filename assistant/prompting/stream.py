"""Streams the completion of a prompt into a turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event
from typing import Any

from assistant.prompting.budget import fit
from assistant.protocols import Parts
from assistant.types import Completion, Options, Turn


def stream(
    prompt: str, turn: Turn, parts: Parts, stop: Event, max_tokens: int, **values: Any
) -> Iterator[tuple[Turn, Completion]]:
    """The turn with what was cut from the prompt of this name, and the completion as it grows, written greedily.

    While the model still reads the prompt, the turn shows how far it is, and the completion says so in `read`.
    """
    messages, cuts = fit(prompt, parts.llm, max_tokens, **values)
    turn = replace(turn, cuts=turn.cuts + cuts)
    for completion in parts.llm.stream(messages, Options(max_tokens=max_tokens), stop):
        yield (turn.reading(completion) if completion.read else turn), completion
