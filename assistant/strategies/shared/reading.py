"""Answers from one prompt: what several strategies and baselines have in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event
from typing import Any

from assistant.judges.uncertainty import PromptedAnswer, unknown
from assistant.prompting.budget import fit
from assistant.protocols import Parts
from assistant.text.sentences import finished_text, without_title
from assistant.types import Answer, Completion, Options, Turn

# The most tokens of a short answer.
FACTOID_MAX_TOKENS = 24


def read(prompt: str, turn: Turn, parts: Parts, stop: Event, **values: Any) -> Iterator[Turn]:
    """Adds `answer`, streamed, with the prompt of this name and `values` for its other variables."""
    form = turn.choices.form
    max_tokens = parts.settings.turn.max_answer_tokens if form == "chat" else FACTOID_MAX_TOKENS
    values |= {"facts": turn.told_facts, "question": turn.question, "examples": parts.settings.turn.answer_examples}
    messages, cuts = fit(f"{form}/{prompt}", parts.llm, max_tokens, **values)
    turn = replace(turn, cuts=turn.cuts + cuts)
    completion = Completion("")
    for completion in parts.llm.stream(messages, Options(max_tokens=max_tokens), stop):
        if completion.read:
            yield turn.reading(completion)
            continue
        turn = replace(turn, answer=Answer(without_title(finished_text(completion, form), turn.shown)))
        yield turn
    if turn.answer is not None:
        prompted_answer = PromptedAnswer(messages, completion, turn.passages, turn.question)
        [is_unknown] = unknown([prompted_answer], form, parts, stop)
        yield replace(turn, answer=Answer(turn.answer.text, unknown=is_unknown))
