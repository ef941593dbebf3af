"""Small talk and talk about the conversation: a reply without retrieval, draft or sources.

A message that only tells something about its writer gets a fixed acknowledgement: asked to reply to an illness or an
allergy, a small model would give advice that no source backs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.prompting.history import recent
from assistant.prompting.stream import stream
from assistant.protocols import Parts
from assistant.text.sentences import finished
from assistant.types import Answer, Turn
from assistant.wording.replies import fixed
from ptkb.extract import only_tells

_MAX_TOKENS = 120
_MOST = 20
# For small talk the prompt has the last exchanges. A question about the conversation may be about any of them, so its
# prompt has all, with each reply cut short.
_LAST, _LONG, _SHORT = 4, 600, 200


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `answer`. The prompt has the facts nearest to the utterance, since the talk may be about them."""
    if only_tells(turn.said, parts.embedder):
        yield replace(turn, question=turn.utterance, answer=fixed("acknowledged", "conversation"))
        return
    facts = tuple(fact.text for fact in turn.facts[:_MOST])
    about_all = turn.intent == "conversation"
    history = recent(turn.history, len(turn.history) if about_all else _LAST, _SHORT if about_all else _LONG)
    values = {"history": history, "facts": facts, "utterance": turn.utterance}
    turn = replace(turn, question=turn.utterance)
    for turn, completion in stream("converse", turn, parts, stop, _MAX_TOKENS, **values):
        answer = Answer(finished(completion, "chat"), origin="conversation")
        yield turn if completion.read else replace(turn, answer=answer)
