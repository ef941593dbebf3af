"""The model's own answer, written before any passage is read: the query of GRG (section 2.2.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.prompting.budget import fit
from assistant.prompting.history import recent
from assistant.protocols import Parts
from assistant.types import Options, Turn


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `draft`, as it grows: facts and question in one prompt, and the digests of an earlier loop if there are any.

    The question stands alone by now, so the history is given for the thread of the talk only.
    """
    room = parts.settings.turn.max_draft_tokens
    messages, cuts = fit(
        "draft",
        parts.llm,
        room,
        history=recent(turn.history, exchanges=1, chars=200),
        notes=tuple(digest.text for digest in turn.digests),
        facts=turn.used_facts,
        question=turn.question,
    )
    turn = replace(turn, cuts=turn.cuts + cuts)
    for completion in parts.llm.stream(messages, Options(max_tokens=room), stop):
        if completion.read:
            yield turn.reading(completion)
            continue
        yield replace(turn, draft=completion.text.strip())
