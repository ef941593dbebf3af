"""Answers by a chain of thought: the model reasons, then writes "Answer:" and the answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.prompting.budget import fit
from assistant.prompting.render import render
from assistant.prompting.unknown import says_unknown
from assistant.protocols import Parts
from assistant.strategies.shared.reading import FACTOID_MAX_TOKENS
from assistant.text.sentences import ELLIPSIS, finished_text
from assistant.types import Answer, Completion, Message, Options, Turn

# Tokens for the chain of thought, besides those for the answer, and for the prompt that asks for the answer alone.
THOUGHT_MAX_TOKENS = 160
CONCLUDING_MAX_TOKENS = 64
_LABEL = re.compile(r"^\W*(?:final\s+)?answer\W*:\W*", re.IGNORECASE | re.MULTILINE)


def think(prompt: str, turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `reasoning`, then `answer`, as they grow, with the prompt of this name.

    If the reasoning ends without "Answer:", or its tokens run out before the answer is complete, a second prompt asks
    for the answer alone.
    """
    form = turn.choices.form
    max_tokens = parts.settings.turn.max_answer_tokens if form == "chat" else FACTOID_MAX_TOKENS
    values = {"passages": turn.shown, "facts": turn.told_facts, "question": turn.question}
    messages, cuts = fit(
        f"{form}/{prompt}", parts.llm, THOUGHT_MAX_TOKENS + CONCLUDING_MAX_TOKENS + 2 * max_tokens, **values
    )
    turn = replace(turn, cuts=turn.cuts + cuts)
    completion, answer = Completion(""), ""
    for completion in parts.llm.stream(messages, Options(max_tokens=THOUGHT_MAX_TOKENS + max_tokens), stop):
        if completion.read:
            yield turn.reading(completion)
            continue
        reasoning, answer = split(completion.text)
        answer = finished_text(replace(completion, text=answer), form)
        turn = replace(turn, reasoning=reasoning, answer=Answer(answer) if answer else turn.answer)
        yield turn
    if not stop.is_set() and (not answer or answer.endswith(ELLIPSIS)):
        concluding = (*messages, Message("assistant", completion.text), *render(f"{form}/conclude"))
        for piece in parts.llm.stream(concluding, Options(max_tokens=max_tokens), stop):
            if piece.read:
                yield turn.reading(piece)
                continue
            turn = replace(turn, answer=_concluded(piece, form))
            yield turn
    # if it was stopped, there is no answer yet, or only a part of one
    if not stop.is_set() and turn.answer:
        yield replace(turn, answer=replace(turn.answer, unknown=says_unknown(turn.answer.text)))


def _concluded(completion: Completion, form: str) -> Answer:
    answer = split(completion.text)[1] or completion.text
    return Answer(finished_text(replace(completion, text=answer), form))


def split(text: str) -> tuple[str, str]:
    """The reasoning, and what follows the last "Answer:", "" until that is written."""
    labels = list(_LABEL.finditer(text))
    if not labels:
        return text.strip(), ""
    return text[: labels[-1].start()].strip(), text[labels[-1].end() :].strip()
