"""The events of a turn as sentences for people."""

from __future__ import annotations

from collections.abc import Mapping

from assistant.types import EventCode, TurnEvent

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
    "quoted": "No reply in the model's own words passed, so a sentence that answers is quoted.",
    "unsupported": "This was written with passages at hand, but none of them says it.",
    "own_knowledge": "The library gave no answer, so the model was asked what it knows itself.",
    "lines_left": "Left out, since no passage says it: {} of the lines that were written.",
    "other": "{}",
}


def sentence(event: TurnEvent) -> str:
    """An event as a sentence for a person."""
    return SENTENCES[event.code].format(event.detail)
