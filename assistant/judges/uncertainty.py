"""Decides whether an answer counts as "unknown": one component with several ways to tell.

The strategies share it; where reasoning is pruned and where the model answers from its own knowledge, only the word
counts (`assistant.prompting.unknown`).

A large model says the word itself (post-fusion, section 3.1). A small one hardly ever does; what it knows shows in its
probabilities. Every way gives a confidence between 0 and 1; below a threshold that was measured, the answer is unknown.
`python -m assistant evaluate uncertainty` compares the ways on questions with known answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from threading import Event

from assistant.errors import ChoiceError
from assistant.judges.addresses import Addresses, backing
from assistant.prompting.render import render
from assistant.prompting.unknown import says_unknown
from assistant.protocols import LLM, Parts
from assistant.settings import TurnSettings, Uncertainty
from assistant.text.sentences import without_title
from assistant.types import Claim, Completion, Form, Message, Messages, Passage

Way = Uncertainty
UNKNOWN = "unknown"
WORD: Way = "word"


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt that asked for an answer or the word "unknown", what the model wrote, from which passages, to what."""

    messages: Messages
    completion: Completion
    passages: tuple[Passage, ...] = ()
    question: str = ""


def told(knobs: TurnSettings) -> str:
    """How short answers are told to be unknown: the way, and its threshold where it has one."""
    return WORD if knobs.uncertainty == WORD else f"{knobs.uncertainty} < {knobs.unknown_threshold}"


def unknown(asked: Sequence[Asked], form: Form, parts: Parts, stop: Event) -> list[bool]:
    """For each answer, whether it counts as unknown: it says so, or the confidence in it is below the set threshold.

    Short answers and whole sentences have a way and a threshold of their own: the more tokens, the less likely one.
    """
    knobs = parts.settings.turn
    short = knobs.uncertainty, knobs.unknown_threshold
    way, threshold = short if form == "factoid" else (knobs.chat_uncertainty, knobs.chat_unknown_threshold)
    found = confidences(asked, way, parts, stop)
    return [confidence == 0 or confidence < threshold for confidence in found]


def confidences(asked: Sequence[Asked], way: Way, parts: Parts, stop: Event) -> list[float]:
    """How sure each answer is, between 0 and 1; 0 for one that says "unknown" in words, whatever the way.

    - word: 1 for every answer that does not say it;
    - p_unknown: the probability of the answer's first word against that of "unknown" in its place;
    - mean_logprob: the geometric mean of the answer's token probabilities;
    - lowest_logprob: the probability of its least likely token;
    - holds: asked afterwards whether the passages of the prompt state the answer, the probability of yes;
    - relevance: the relevance estimator's highest confidence in the passages, whatever was answered; 1 where there is
      none;
    - addresses: asked afterwards, with the passages that say the answer alone, whether it answers the question as they
      tell; the judge of support is asked as well (`assistant.judges.addresses`).
    """
    lost = [says_unknown(without_title(one.completion.text.lstrip(), one.passages)) for one in asked]
    found = iter(_WAYS[way]([one for one, is_lost in zip(asked, lost, strict=True) if not is_lost], parts, stop))
    return [0.0 if is_lost else next(found) for is_lost in lost]


def _word(asked: Sequence[Asked], parts: Parts, stop: Event) -> list[float]:  # noqa: ARG001 - all ways are called alike
    return [1.0 for _ in asked]


def _p_unknown(asked: Sequence[Asked], parts: Parts, stop: Event) -> list[float]:
    return [_against_unknown(one, parts.llm, stop) for one in asked]


def _against_unknown(one: Asked, llm: LLM, stop: Event) -> float:
    first = one.completion.text.split()[0]
    try:
        [choice] = llm.choose([one.messages], (first, UNKNOWN), stop)
    except ChoiceError:  # "United" may begin with the token that "unknown" begins with
        return 0.5
    return choice.probabilities[first]


def _mean_logprob(asked: Sequence[Asked], parts: Parts, stop: Event) -> list[float]:  # noqa: ARG001
    # no logprobs means that the backend gives none: then only the word can tell
    return [exp(sum(logs) / len(logs)) if (logs := one.completion.logprobs) else 1.0 for one in asked]


def _lowest_logprob(asked: Sequence[Asked], parts: Parts, stop: Event) -> list[float]:  # noqa: ARG001
    return [exp(min(one.completion.logprobs, default=0.0)) for one in asked]


def _holds(asked: Sequence[Asked], parts: Parts, stop: Event) -> list[float]:
    # the talk goes on where it was, so that the passages are not read a second time
    prompts = [
        (*one.messages, Message("assistant", one.completion.text), *render("holds", answer=one.completion.text))
        for one in asked
    ]
    choices = parts.llm.choose(prompts, ("yes", "no"), stop) if prompts else []
    return [choice.probabilities["yes"] for choice in choices]


def _relevance(asked: Sequence[Asked], parts: Parts, stop: Event) -> list[float]:  # noqa: ARG001
    told = [[one.confidence for one in answer.passages if one.confidence is not None] for answer in asked]
    return [max(confidences, default=1.0) for confidences in told]


def _addresses(asked: Sequence[Asked], parts: Parts, stop: Event) -> list[float]:
    answers = [without_title(one.completion.text.strip(), one.passages) for one in asked]
    claims = [
        Claim(answer, backing(answer, one.passages), one.question) for answer, one in zip(answers, asked, strict=True)
    ]
    judge = parts.support(parts.llm) if parts.support else None
    return [one.probability for one in Addresses(parts.llm, judge, parts.embedder, 0.0).judge(claims, stop)]


_WAYS: Mapping[Way, Callable[[Sequence[Asked], Parts, Event], list[float]]] = {
    "word": _word,
    "p_unknown": _p_unknown,
    "mean_logprob": _mean_logprob,
    "lowest_logprob": _lowest_logprob,
    "holds": _holds,
    "relevance": _relevance,
    "addresses": _addresses,
}
WAYS: tuple[Way, ...] = tuple(_WAYS)
