"""Fixed replies, and the label of replies without a source."""

from __future__ import annotations

from collections.abc import Mapping

from assistant.types import Answer, Origin, Outcome

LABEL = "Not from your library: this is the model's own knowledge, without a source."
FIXED: Mapping[Outcome, str] = {
    "not_held": "The library doesn't hold an answer to this.",
    "unsuited": "What was found doesn't suit what you told me, so it was left out.",
    "ask": "The library doesn't seem to hold an answer to this. The model can answer from its own knowledge, without a "
    "source, or from what was found all the same. You can also add a document that tells it, or ask in other words.",
    "acknowledged": "Thanks for telling me. Once that is among your facts, my answers take it into account.",
}


def fixed(outcome: Outcome, origin: Origin = "passages") -> Answer:
    """The fixed reply for this outcome."""
    return Answer(FIXED[outcome], origin=origin, outcome=outcome)


def reply(answer: Answer | None) -> str:
    """A reply as people read it: one without a source says so in its first line."""
    if answer is None:
        return ""
    return f"{LABEL}\n\n{answer.text}" if answer.outcome == "own" and answer.text else answer.text
