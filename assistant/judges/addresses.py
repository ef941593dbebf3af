"""Addresses: is this a reply to what was asked, and is it what the text tells?

A sentence can stand in a passage word for word and still answer another question, and a small model says "yes" where
its passage says "no". The language model sees neither while it writes, but mostly does when it is shown its own reply
beside the text and asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import Event

from assistant.prompt import render
from assistant.text import around, quote
from assistant.types import LLM, Citation, Claim, Passage, Span, Turn, Verdict

# Words of each cited passage that are shown around what was quoted from it, and passages at most.
WORDS, MOST = 80, 3
# A claim that comes without a question replies to this one.
ANY = "What does the text say?"


class Addresses:
    """The second look as a judge of support, so that it is measured as the others are.

    A claim is a reply to its question, and its passages are the text. It knows no "partly", and code has no veto.
    """

    def __init__(self, llm: LLM, threshold: float) -> None:
        self._llm, self._threshold = llm, threshold

    @property
    def threshold(self) -> float:
        """The probability of yes under which a reply is set aside."""
        return self._threshold

    def judge(self, claims: Sequence[Claim], stop: Event) -> list[Verdict]:
        """One verdict a claim, "supported" from the threshold on."""
        found = probabilities(claims, self._llm, stop)
        return [Verdict(one, "supported" if one >= self._threshold else "not") for one in found]


def addressed(turn: Turn, reply: str, llm: LLM, stop: Event) -> float:
    """How likely the reply answers the turn's question as its citations tell, in [0, 1]."""
    [probability] = probabilities([Claim(reply, evidence(turn.citations, turn.passages), turn.question)], llm, stop)
    return probability


def probabilities(claims: Sequence[Claim], llm: LLM, stop: Event) -> list[float]:
    """How likely each claim answers its question as its evidence tells, in [0, 1].

    Raises:
        SequiturError: the language model can't be asked.
    """
    prompts = [
        render(
            "addresses",
            evidence=" ".join(passage.titled for passage in claim.evidence),
            question=claim.question or ANY,
            reply=claim.sentence,
        )
        for claim in claims
    ]
    return [choice.probabilities["yes"] for choice in llm.choose(prompts, ("yes", "no"), stop)] if prompts else []


def evidence(citations: Sequence[Citation], passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """The cited passages, each cut down to what it says around the first quotation from it."""
    first = {one.passage_id: one for one in reversed(citations)}
    shown = [passage for passage in passages if passage.id in first][:MOST]
    return tuple(_stretch(passage, first[passage.id]) for passage in shown)


def _stretch(passage: Passage, cited: Citation) -> Passage:
    span = around(passage.text, Span(cited.start, cited.end), WORDS)
    return replace(passage, text=quote(passage.text, span))
