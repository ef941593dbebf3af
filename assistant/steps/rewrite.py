"""Makes a message stand alone: "the 3rd one" and "my country" are named in full, and the US is the USA.

The model sees what was said before and what is known of the person, and writes the message anew with what it points at.
A first message is written anew only where it may point at something that is known of the person: a small model that has
nothing to add changes something else (docs/results/rewriting.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from threading import Event

from assistant.prompting.budget import fit
from assistant.prompting.history import recent
from assistant.protocols import Parts
from assistant.steps.ordinals import spelt_out
from assistant.text.overlap import coverage
from assistant.text.sentences import in_full, normalise
from assistant.types import Exchange, Messages, Options, Turn
from ptkb.rank import SAME_AGAIN

# A rewrite that grew beyond this is an answer, not a question.
_LONGEST = 3.0
_ROOM = 60
# Few facts are all shown, of many the most relevant: so many characters, some 200 tokens.
_FACTS = 800
# "and the second most?" goes on with the question before, and is none without it; longer ones mostly are.
_GOES_ON = re.compile(r"\W*(?:and|but|or|(?:what|how) about)\b", re.IGNORECASE)
_FEW_WORDS = 6
# So many times they are written anew; what drops one of them is the question before once more, in other words.
_TRIES = 4


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `question`. The first message of somebody of whom nothing is known is its own question.

    Small models go wrong in three ways that can be seen: they answer the message, go on writing, or repeat an earlier
    question. Such a rewrite is not used, and the message is asked as it is. A few words that only go on with the
    question before ("And bread?") are first written anew from that one exchange, a few times and less greedily; where
    that goes wrong as well, they are asked behind that question. "The 3rd one" is spelt out before the model sees it.
    """
    history = recent(turn.history, exchanges=3, chars=400)
    facts = _facts(turn) if history or _is_near(turn, parts.settings.facts.rewrite_threshold) else ()
    named = turn.history and parts.settings.turn.resolve_ordinals
    utterance = spelt_out(turn.said, turn.history[-1]) if named else turn.said
    if not history and not facts:
        question = in_full(turn.said)
        yield replace(turn, question=question, rewritten=question != turn.utterance)
        return
    prompt = _Prompt(facts, utterance, parts)
    messages, cuts = prompt.after(history)
    question = in_full(_written(messages, prompt, turn, stop))
    yield replace(turn, question=question, rewritten=question != turn.utterance, cuts=turn.cuts + cuts)


def _is_near(turn: Turn, least: float) -> bool:
    """Whether the message may point at something that is known of the person."""
    return any(fact.relevance >= least for fact in turn.facts)


def _facts(turn: Turn) -> tuple[str, ...]:
    """What the person told of themselves, most relevant first, as far as there is room."""
    found: list[str] = []
    for fact in turn.facts:
        if sum(map(len, found)) + len(fact.text) > _FACTS:
            break
        found.append(" ".join(fact.text.split()))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Prompt:
    """What stays the same, however much of the conversation the model is shown."""

    facts: tuple[str, ...]
    utterance: str
    parts: Parts

    def after(self, history: tuple[Exchange, ...]) -> tuple[Messages, tuple[str, ...]]:
        """The prompt with these exchanges before the utterance, and what of it had no room."""
        # small models take "And bread?" for the same question once more; "What about bread?" they repeat as it is
        said = SAME_AGAIN.sub("And", " ".join(self.utterance.split()))
        return fit("rewrite", self.parts.llm, _ROOM, history=history, facts=self.facts, utterance=said)


def _written(messages: Messages, prompt: _Prompt, turn: Turn, stop: Event) -> str:
    """The utterance as the model writes it, or where it can't, the utterance with the question that it goes on with."""
    utterance, greedy = prompt.utterance, Options(max_tokens=_ROOM, stop=("\n",))
    if written := _usable(prompt.parts, messages, greedy, stop, utterance, turn):
        return written
    if not _goes_on(utterance, turn):
        return utterance
    before = turn.history[-1]
    alone, _ = prompt.after(recent((replace(before, utterance=before.question),), exchanges=1, chars=400))
    others = [replace(greedy, temperature=1.0, seed=seed) for seed in range(_TRIES)]
    for options in others if alone == messages else [greedy, *others]:
        written = "" if stop.is_set() else _usable(prompt.parts, alone, options, stop, utterance, turn)
        if normalise(written) != normalise(utterance) and coverage(utterance, written) == 1:
            return written
    return f"{before.question.rstrip(' .?!')}? {utterance}"


def _usable(parts: Parts, messages: Messages, options: Options, stop: Event, utterance: str, turn: Turn) -> str:
    """What the model writes, or "" where that can be seen to be wrong."""
    [completion] = parts.llm.complete([messages], options, stop)
    written, said = completion.text.strip().removeprefix("A:").strip().strip('"'), len(turn.said)
    # what has no room is cut off, and a question would lose its end
    too_long = completion.finish == "length" or len(written) > max(_LONGEST * said, said + 160)
    answers = "?" in utterance and "?" not in written
    return "" if too_long or answers or _was_said(written, turn) else written


def _goes_on(utterance: str, turn: Turn) -> bool:
    """Whether the utterance is a few words that are no question without the one before."""
    return bool(turn.history) and bool(_GOES_ON.match(utterance)) and len(utterance.split()) <= _FEW_WORDS


def _was_said(written: str, turn: Turn) -> bool:
    """Whether this is an earlier question, unless that is what the user has just asked again."""
    before = {normalise(text) for one in turn.history for text in (one.utterance, one.question)}
    return normalise(written) in before - {normalise(turn.said)}
