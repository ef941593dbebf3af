"""Fixed replies, the label of replies without a source, and the events of a turn as sentences."""

from __future__ import annotations

from collections.abc import Mapping

from assistant.types import Answer, EventCode, Origin, Outcome, TurnEvent

LABEL = "Not from your library: this is the model's own knowledge, without a source."
FIXED: Mapping[Outcome, str] = {
    "not_held": "The library doesn't hold an answer to this.",
    "unsuited": "What I found, or know, doesn't suit what you told me, so I left it out.",
    "ask": "The library doesn't seem to hold an answer to this. The model can answer from its own knowledge, without a "
    "source, or from what was found all the same. You can also add a document that tells it, or ask in other words.",
    "acknowledged": "Thanks for telling me. My answers in this conversation take that into account, all others once it "
    "is among your facts.",
}
SENTENCES: Mapping[EventCode, str] = {
    "documents_missing": "Documents of yours are still being added and were not searched; ask again once they are "
    "listed.",
    "none_relevant": "No passage seems to answer this ({}).",
    "relevance_failed": "The passages were used as they were found: {}",
    "quality_failed": "Unreliable passages were not left out: {}",
    "none_reliable": "None of the passages was judged reliable, so only the best match was kept.",
    "summary_failed": "The passages were not summed up, but cut to their best sentences: {}",
    "suitability_failed": "What may not suit you was not left out: {}",
    "not_checked": "The sentences were not checked against the passages: {}",
    "second_look_failed": "Whether the reply answers the question was not looked at: {}",
    "set_aside": "A reply was set aside: looked at again, it didn't answer the question as its sources tell.",
    "fell_back": "The passages together gave no answer, so each was asked alone.",
    "quoted": "No reply in the model's own words passed, so what answers in the passages is quoted.",
    "outdone": "What stands in the passages answers more surely than the model's own words did, so it is quoted.",
    "unsupported": "This was written with passages at hand, but none of them says it.",
    "own_knowledge": "The library gave no answer, so the model was asked what it knows itself.",
    "lines_left": "Left out, since no passage says it: {} of the lines that were written.",
    "other": "{}",
}


def fixed(outcome: Outcome, origin: Origin = "passages") -> Answer:
    """The fixed reply for this outcome."""
    return Answer(FIXED[outcome], origin=origin, outcome=outcome)


def reply(answer: Answer | None) -> str:
    """A reply as people read it: one without a source says so in its first line."""
    if answer is None:
        return ""
    return f"{LABEL}\n\n{answer.text}" if answer.outcome == "own" and answer.text else answer.text


def sentence(event: TurnEvent) -> str:
    """An event as a sentence for a person."""
    return SENTENCES[event.code].format(event.detail)
