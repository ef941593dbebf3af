"""Makes a message stand alone: "the 3rd one" is named in full, "my country" by its name, and the US as USA."""

from __future__ import annotations

import re
from collections.abc import Iterator
from threading import Event

from assistant.budget import fit
from assistant.steps.clarify import speaks_of_own_place, told
from assistant.steps.history import recent
from assistant.steps.ordinals import spelt_out
from assistant.text import in_full, normalise
from assistant.types import Exchange, Options, Parts, Turn
from ptkb.rank import SAME_AGAIN

# A rewrite that grew beyond this is an answer, not a question.
_LONGEST = 3.0
_ROOM = 60
# "and the second most?" goes on with the question before, and is none without it; longer ones mostly are.
_GOES_ON = re.compile(r"\W*(?:and|but|or|(?:what|how) about)\b", re.IGNORECASE)
_FEW_WORDS = 6


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `question`. A first utterance is its own question, unless a fact may tell which place it speaks of.

    A rewrite that went wrong is not used. Small models go wrong in three ways that can be seen: they answer, they go on
    writing, or they repeat a question of before. A few words that go on with the question before are then asked behind
    it. What is named by its place in the last reply is spelt out for them.
    """
    history, utterance = _conversation(turn)
    if not history:
        question = in_full(turn.utterance)
        yield turn.grow(question=question, rewritten=question != turn.utterance)
        return
    # small models take "And bread?" for the same question once more; "What about bread?" they repeat as it is
    said = SAME_AGAIN.sub("And", " ".join(utterance.split()))
    messages, cuts = fit("rewrite", parts.llm, _ROOM, history=history, utterance=said)
    [completion] = parts.llm.complete([messages], Options(max_tokens=_ROOM, stop=("\n",)), stop)
    # what has no room is cut off, and a question would lose its end
    question = in_full(utterance if completion.finish == "length" else _question(completion.text, utterance, turn))
    yield turn.grow(question=question, rewritten=question != turn.utterance, cuts=turn.cuts + cuts)


def _conversation(turn: Turn) -> tuple[tuple[Exchange, ...], str]:
    """What was said before, and what is to stand alone.

    Facts that may tell which place is meant count as just said. Where the place was asked for, it is the question from
    before that is asked again.
    """
    if told(turn):
        return (_heard(turn.utterance),), turn.history[-1].utterance
    before = recent(turn.history, exchanges=3, chars=400)
    if turn.used_facts and speaks_of_own_place(turn.utterance):
        before = (_heard(" ".join(turn.used_facts)), *before)
    return before, spelt_out(turn.utterance, turn.history[-1]) if turn.history else turn.utterance


def _heard(text: str) -> Exchange:
    return Exchange(text, text, "I see.")


def _question(written: str, utterance: str, turn: Turn) -> str:
    written, said = written.strip().removeprefix("A:").strip().strip('"'), len(turn.utterance)
    too_long = len(written) > max(_LONGEST * said, said + 160)
    answers = "?" in utterance and "?" not in written
    unusable = not written or too_long or answers or _was_said(written, turn)
    return _behind_the_last(utterance, turn) if unusable else written


def _behind_the_last(utterance: str, turn: Turn) -> str:
    """The utterance itself, with the question before in front of it where it goes on with that."""
    if not turn.history or not _GOES_ON.match(utterance) or len(utterance.split()) > _FEW_WORDS:
        return utterance
    return f"{turn.history[-1].question.rstrip(' .?!')}? {utterance}"


def _was_said(written: str, turn: Turn) -> bool:
    """Whether this is an earlier question, unless that is what the user has just asked again."""
    before = {normalise(text) for one in turn.history for text in (one.utterance, one.question)}
    return normalise(written) in before - {normalise(turn.utterance)}
