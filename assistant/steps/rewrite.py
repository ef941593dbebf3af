"""Rewrites a message so that it stands alone: "the 3rd one" and "my country" are named in full, and US becomes USA.

The model sees the last exchanges and the person's facts, and writes the message again with everything named that it
refers to. A first message is rewritten only if it may refer to a fact: a small model that has nothing to add changes
something else (docs/results/rewriting.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from threading import Event

from assistant.prompting.budget import fit
from assistant.prompting.history import recent
from assistant.protocols import Parts
from assistant.steps.ordinals import spelt_out
from assistant.text.overlap import coverage
from assistant.text.sentences import normalise, with_usa
from assistant.types import Exchange, Messages, Options, Turn
from ptkb.rank import ELLIPTICAL_QUESTION

# A rewrite that grew beyond this is an answer, not a question.
_LONGEST = 3.0
_MAX_TOKENS = 60
# The prompt begins each speaker's words with these; a rewrite that contains one continues the conversation.
_OPENERS = (" A: ", " B: ")
# Characters of facts in the prompt, some 200 tokens: all facts if they are few, else the most relevant.
_FACTS = 800
# "and the second most?" continues the question before it and makes no sense alone; most longer ones stand alone.
_GOES_ON = re.compile(r"\W*(?:and|but|or|(?:what|how) about)\b", re.IGNORECASE)
_FEW_WORDS = 6
# How often such a message is rewritten; a rewrite that drops one of its words only repeats the question before.
_TRIES = 4


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `question`. A first message is used as it is if no facts are known.

    Small models fail in four ways that can be recognised: they answer the message, go on writing, repeat an earlier
    question, or ask something that nobody spoke of. Such a rewrite is discarded, and the message is used as it is. A
    message of a few words that only continues the question before ("And bread?") is rewritten from that one exchange,
    so that no older topic comes in. If that fails, it is tried several times with sampling; if these fail, too, the
    message is appended to that question. "The 3rd one" is spelt out before the model sees it.
    """
    history = _shown(turn)
    facts = _facts(turn) if history or _may_refer_to_facts(turn, parts.settings.facts.rewrite_threshold) else ()
    spells_out = turn.history and parts.settings.turn.resolve_ordinals
    utterance = spelt_out(turn.request, turn.history[-1]) if spells_out else turn.request
    if not history and not facts:
        question = with_usa(turn.request)
        yield replace(turn, question=question, rewritten=question != turn.utterance)
        return
    # small models rewrite "And bread?" like the question before, but leave "What about bread?" as it is
    said = ELLIPTICAL_QUESTION.sub("And", " ".join(utterance.split()))
    messages, cuts = fit("rewrite", parts.llm, _MAX_TOKENS, history=history, facts=facts, utterance=said)
    question = with_usa(_written(messages, utterance, turn, parts, stop))
    yield replace(turn, question=question, rewritten=question != turn.utterance, cuts=turn.cuts + cuts)


def _shown(turn: Turn) -> tuple[Exchange, ...]:
    """The last exchanges; for a message that only continues the question before, that question and its reply alone."""
    if not _continues(turn):
        return recent(turn.history, exchanges=3, chars=400)
    before = turn.history[-1]
    return recent((replace(before, utterance=before.question),), exchanges=1, chars=400)


def _may_refer_to_facts(turn: Turn, threshold: float) -> bool:
    """Whether the message may refer to a fact: one is near enough, or the message states one ("I have a cat. ...")."""
    return bool(turn.rest) or any(fact.relevance >= threshold for fact in turn.facts)


def _facts(turn: Turn) -> tuple[str, ...]:
    """The most relevant facts that fit into the prompt."""
    texts: list[str] = []
    for fact in turn.facts:
        if sum(map(len, texts)) + len(fact.text) > _FACTS:
            break
        texts.append(" ".join(fact.text.split()))
    return tuple(texts)


def _written(messages: Messages, utterance: str, turn: Turn, parts: Parts, stop: Event) -> str:
    """The rewritten utterance; if rewriting fails, the utterance, after the question that it continues, if any."""
    greedy = Options(max_tokens=_MAX_TOKENS, stop=("\n",))
    if written := _usable(parts, messages, greedy, stop, utterance, turn):
        return written
    if not _continues(turn):
        return utterance
    for seed in range(_TRIES):
        sampling = replace(greedy, temperature=1.0, seed=seed)
        written = "" if stop.is_set() else _usable(parts, messages, sampling, stop, utterance, turn)
        if normalise(written) != normalise(utterance) and coverage(utterance, written) == 1:
            return written
    return f"{turn.history[-1].question.rstrip(' .?!')}? {utterance}"


def _usable(parts: Parts, messages: Messages, options: Options, stop: Event, utterance: str, turn: Turn) -> str:
    """The model's rewrite, or "" if it is recognisably wrong."""
    [completion] = parts.llm.complete([messages], options, stop)
    written, said = completion.text.strip().removeprefix("A:").strip().strip('"'), len(turn.utterance_in_english)
    # a rewrite that ran out of tokens is cut off at its end
    too_long = completion.finish == "length" or len(written) > max(_LONGEST * said, said + 160)
    answers = "?" in utterance and "?" not in written
    # naming what a fact says adds words; a rewrite of a first message that adds none can only lose some
    only_shortens = not turn.history and coverage(written, utterance) == 1
    goes_on = any(opener in written and opener not in turn.utterance_in_english for opener in _OPENERS)
    wrong = too_long or answers or only_shortens or goes_on or _was_said(written, turn) or _is_unrelated(written, turn)
    return "" if wrong else written


def _continues(turn: Turn) -> bool:
    """Whether this is a few words that only make sense after the question before."""
    return bool(turn.history) and bool(_GOES_ON.match(turn.request)) and len(turn.request.split()) <= _FEW_WORDS


def _is_unrelated(written: str, turn: Turn) -> bool:
    """Whether this has no word of the message, of what was said before, or of the facts."""
    before = (text for exchange in turn.history for text in (exchange.utterance, exchange.question, exchange.reply))
    return not coverage(written, " ".join([turn.utterance_in_english, *before, *(fact.text for fact in turn.facts)]))


def _was_said(written: str, turn: Turn) -> bool:
    """Whether this repeats an earlier question that the user did not just ask again."""
    earlier = {normalise(text) for exchange in turn.history for text in (exchange.utterance, exchange.question)}
    return normalise(written) in earlier - {normalise(turn.request)}
