"""Small talk and talk about the conversation: a reply without retrieval, draft or sources.

A message that only states something about its writer gets a fixed acknowledgement: in reply to an illness or an
allergy, a small model would give advice that no source backs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.prompting.history import recent
from assistant.prompting.stream import stream
from assistant.protocols import Parts
from assistant.text.sentences import finished_text
from assistant.types import Answer, Turn
from assistant.wording.replies import fixed
from ptkb.extract import only_states_facts

_MAX_TOKENS = 120
_MAX_FACTS = 20
# For small talk the prompt has the last exchanges. A question about the conversation may concern any exchange, so its
# prompt has them all, with each reply cut short.
_LAST_EXCHANGES, _LONG_CHARS, _SHORT_CHARS = 4, 600, 200


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `answer`. The prompt has the facts nearest to the utterance, since it may be about them."""
    if only_states_facts(turn.utterance_in_english, parts.embedder):
        yield replace(turn, question=turn.utterance, answer=fixed("acknowledged", "conversation"))
        return
    facts = tuple(fact.text for fact in turn.facts[:_MAX_FACTS])
    about_all = turn.intent == "conversation"
    history = recent(
        turn.history, len(turn.history) if about_all else _LAST_EXCHANGES, _SHORT_CHARS if about_all else _LONG_CHARS
    )
    values = {"history": history, "facts": facts, "utterance": turn.utterance}
    turn = replace(turn, question=turn.utterance)
    for turn, completion in stream("converse", turn, parts, stop, _MAX_TOKENS, **values):
        answer = Answer(finished_text(completion, "chat"), origin="conversation")
        yield turn if completion.read else replace(turn, answer=answer)
