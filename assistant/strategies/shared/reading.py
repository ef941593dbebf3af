"""All passages in one prompt: what several strategies and baselines read with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event
from typing import Any

from assistant.judges.uncertainty import Asked, unknown
from assistant.prompting.budget import fit
from assistant.protocols import Parts
from assistant.text.sentences import finished, without_title
from assistant.types import Answer, Completion, Options, Turn

# Tokens of a short answer.
FACTOID_ROOM = 24


def read(prompt: str, turn: Turn, parts: Parts, stop: Event, **given: Any) -> Iterator[Turn]:
    """Adds `answer`, streamed, as `prompt` makes it of the question and what else is given."""
    form = turn.choices.form
    room = parts.settings.turn.max_answer_tokens if form == "chat" else FACTOID_ROOM
    given |= {"facts": turn.told_facts, "question": turn.question, "examples": parts.settings.turn.answer_examples}
    messages, cuts = fit(f"{form}/{prompt}", parts.llm, room, **given)
    turn = replace(turn, cuts=turn.cuts + cuts)
    completion = Completion("")
    for completion in parts.llm.stream(messages, Options(max_tokens=room), stop):
        if completion.read:
            yield turn.reading(completion)
            continue
        turn = replace(turn, answer=Answer(without_title(finished(completion, form), turn.shown)))
        yield turn
    if turn.answer is not None:
        [lost] = unknown([Asked(messages, completion, turn.passages, turn.question)], turn.choices.form, parts, stop)
        yield replace(turn, answer=Answer(turn.answer.text, unknown=lost))
