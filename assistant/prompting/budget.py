"""Makes a prompt fit the model's context by cutting its parts in a fixed order, and reports what was cut."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from assistant.errors import UtteranceError
from assistant.prompting.render import render
from assistant.protocols import LLM
from assistant.text.sentences import shorten
from assistant.types import Messages

# What is cut first, and from which end: the oldest exchange, the last passage, the least relevant fact.
ORDER = (("history", 0, "the oldest exchange"), ("passages", -1, "the last passage"), ("facts", -1, "a fact"))
# Texts that can be shortened once all lists are empty.
TEXTS = ("question", "utterance")
SHORTEST = 40


def fit(name: str, llm: LLM, reply: int, **values: Any) -> tuple[Messages, tuple[str, ...]]:
    """Render the prompt `name` so that it and a reply of `reply` tokens fit the context of `llm`.

    While it is too long, one item is cut: of `history` from the oldest, then of `passages` from the last (one is
    always kept), then of `facts` from the least relevant; then `passage`, where the prompt is about a single one, is
    halved, and at last the question itself.

    Returns:
        The messages, and one phrase for each kind of cut ("the oldest exchange (3)").

    Raises:
        UtteranceError: even an empty question does not fit.
    """
    available = llm.context - reply
    cuts: dict[str, int] = {}
    messages = render(name, **values)
    while llm.count(messages) > available:
        description, values = _cut(values)
        cuts[description] = cuts.get(description, 0) + 1
        messages = render(name, **values)
    return messages, tuple(f"{description} ({count})" for description, count in cuts.items())


def _cut(values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    for key, end, description in ORDER:
        items = list(values.get(key, ()))
        if len(items) > (1 if key == "passages" else 0):
            items.pop(end)
            return description, {**values, key: tuple(items)}
    passage = values.get("passage")
    if passage is not None and len(passage.text) > SHORTEST:
        halved = replace(passage, text=shorten(passage.text, len(passage.text) // 2))
        return "half of the passage", {**values, "passage": halved}
    for key in TEXTS:
        if len(values.get(key, "")) > SHORTEST:
            return f"half of the {key}", {**values, key: shorten(values[key], len(values[key]) // 2)}
    raise UtteranceError("This does not fit the model's context; set a larger llm.context or ask something shorter.")
