"""Makes a message stand alone: "the 3rd one" is named in full, and "my country" by its name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from threading import Event

from assistant.budget import fit
from assistant.steps.history import recent
from assistant.steps.ordinals import spelt_out
from assistant.text import normalise
from assistant.types import Exchange, Options, Parts, Turn
from ptkb.rank import SAME_AGAIN

# A rewrite that grew beyond this is an answer, not a question.
_LONGEST = 3.0
_ROOM = 60
# Places that only a fact about the person can name.
_MY_PLACE = re.compile(
    r"\bmy (?:\w+ )?(?:country|city|town|village|hometown|homeland|nation|continent|capital|currency|language)\b"
    r"|\bwhere i(?:'m|’m| am)? (?:live|come from|from|was born|grew up)\b|\b(?:around|over|from|in|near) here\b",
    re.IGNORECASE,
)
_HEARD = "I see."


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `question`. A first utterance is its own question, unless a fact may tell which place it speaks of.

    A rewrite that went wrong is not used.
    What is named by its place in the last reply is spelt out before the model sees it. Small models go wrong in three
    ways that can be seen: they answer, they go on writing, or they repeat a question of before.
    """
    history = _told(turn) + recent(turn.history, exchanges=3, chars=400)
    if not history:
        yield turn.grow(question=turn.utterance)
        return
    utterance = spelt_out(turn.utterance, history[-1])
    # small models take "And bread?" for the same question once more; "What about bread?" they repeat as it is
    said = SAME_AGAIN.sub("And", " ".join(utterance.split()))
    messages, cuts = fit("rewrite", parts.llm, _ROOM, history=history, utterance=said)
    [completion] = parts.llm.complete([messages], Options(max_tokens=_ROOM, stop=("\n",)), stop)
    # what has no room is cut off, and a question would lose its end
    question = utterance if completion.finish == "length" else _question(completion.text, utterance, turn)
    yield turn.grow(question=question, rewritten=question != turn.utterance, cuts=turn.cuts + cuts)


def _told(turn: Turn) -> tuple[Exchange, ...]:
    """The facts, as if the person had just said them, where only they can tell which place is meant."""
    if not turn.used_facts or not _MY_PLACE.search(turn.utterance):
        return ()
    facts = " ".join(turn.used_facts)
    return (Exchange(facts, facts, _HEARD),)


def _question(written: str, utterance: str, turn: Turn) -> str:
    written, said = written.strip().removeprefix("A:").strip().strip('"'), len(turn.utterance)
    too_long = len(written) > max(_LONGEST * said, said + 160)
    answers = "?" in utterance and "?" not in written
    return utterance if not written or too_long or answers or _was_said(written, turn) else written


def _was_said(written: str, turn: Turn) -> bool:
    """Whether this is an earlier question, unless that is what the user has just asked again."""
    before = {normalise(text) for one in turn.history for text in (one.utterance, one.question)}
    return normalise(written) in before - {normalise(turn.utterance)}
