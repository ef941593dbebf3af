"""Closed questions: does the text say yes, no, or neither?

A small model that answers a closed question from a text writes "Yes" almost whatever the text says. If it has to choose
one of three words, with a few examples before it, it is less sure of a wrong yes. So a reply that begins with a yes or
a no is also compared with this choice. The judge of support is not enough here: the rest of such a reply mostly repeats
the question's own words, by which that judge goes (docs/results/support.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

from assistant.prompting.render import render
from assistant.protocols import LLM
from assistant.text.sentences import words
from assistant.types import Claim

_VERDICTS, _UNKNOWN = ("yes", "no"), "unknown"


def verdict_in(claim: Claim) -> str:
    """The "yes" or "no" with which a reply to a question begins; "" if it begins otherwise, or there is no question."""
    first_word = next(iter(words(claim.sentence)), "").lower() if claim.question else ""
    return first_word if first_word in _VERDICTS else ""


def verdict_probabilities(claims: Sequence[Claim], llm: LLM, stop: Event) -> list[float]:
    """How likely each claim's verdict answers its question by its evidence, as the language model sees it, in [0, 1].

    Raises:
        SequiturError: the language model can't be asked.
    """
    prompts = [
        render("closed", evidence=" ".join(passage.titled for passage in claim.evidence), question=claim.question)
        for claim in claims
    ]
    choices = llm.choose(prompts, (*_VERDICTS, _UNKNOWN), stop) if prompts else []
    return [choice.probabilities[verdict_in(claim)] for claim, choice in zip(claims, choices, strict=True)]
