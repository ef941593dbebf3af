"""Decides whether an answer counts as "unknown", by one of several tests.

All strategies that don't reason use this. After reasoning only the word "unknown" counts
(`assistant.prompting.unknown`); `assistant.steps.closed_book` has the rule for the model's own knowledge.

A large model says the word itself (post-fusion, section 3.1). A small one hardly ever does, but its probabilities show
what it knows. Every test gives a confidence between 0 and 1; below a measured threshold the answer counts as unknown.
`python -m assistant evaluate uncertainty` compares the tests on questions with known answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from threading import Event

from assistant.errors import ChoiceError
from assistant.judges.addresses import Addresses, excerpts_with
from assistant.prompting.render import render
from assistant.prompting.unknown import says_unknown
from assistant.protocols import LLM, Parts
from assistant.settings import TurnSettings, Uncertainty
from assistant.text.sentences import without_title
from assistant.types import Claim, Completion, Form, Message, Messages, Passage

UNKNOWN = "unknown"
WORD: Uncertainty = "word"


@dataclass(frozen=True, slots=True)
class PromptedAnswer:
    """A prompt that asked for an answer or the word "unknown", its completion, its passages, and its question."""

    messages: Messages
    completion: Completion
    passages: tuple[Passage, ...] = ()
    question: str = ""


def uncertainty_label(knobs: TurnSettings) -> str:
    """The test by which short answers count as unknown, for a run to state: its name, and its threshold if any."""
    return WORD if knobs.uncertainty == WORD else f"{knobs.uncertainty} < {knobs.unknown_threshold}"


def unknown(answers: Sequence[PromptedAnswer], form: Form, parts: Parts, stop: Event) -> list[bool]:
    """For each answer, whether it counts as unknown: it says so, or the confidence in it is below the threshold.

    Short answers and whole sentences have different tests and thresholds, since more tokens are less likely.
    """
    knobs = parts.settings.turn
    short = knobs.uncertainty, knobs.unknown_threshold
    test, threshold = short if form == "factoid" else (knobs.chat_uncertainty, knobs.chat_unknown_threshold)
    return [value == 0 or value < threshold for value in confidences(answers, test, parts, stop)]


def confidences(answers: Sequence[PromptedAnswer], test: Uncertainty, parts: Parts, stop: Event) -> list[float]:
    """The confidence in each answer, between 0 and 1, by one of these tests; always 0 for one that says "unknown".

    - word: 1 for every other answer;
    - p_unknown: the probability of the answer's first word against that of "unknown" in its place;
    - mean_logprob: the geometric mean of the answer's token probabilities;
    - lowest_logprob: the probability of its least likely token;
    - holds: the probability of "yes" when the model is asked whether the passages of the prompt state the answer;
    - relevance: the relevance estimator's highest confidence in a passage, whatever the answer; 1 without an estimator;
    - addresses: the probability of "yes" when the model is shown only the passages that say the answer, and asked
      whether it answers the question as they do, joined with the judge of support (`assistant.judges.addresses`).
    """
    unknowns = [says_unknown(without_title(answer.completion.text.lstrip(), answer.passages)) for answer in answers]
    known_answers = [answer for answer, is_unknown in zip(answers, unknowns, strict=True) if not is_unknown]
    values = iter(_TESTS[test](known_answers, parts, stop))
    return [0.0 if is_unknown else next(values) for is_unknown in unknowns]


def _word(answers: Sequence[PromptedAnswer], parts: Parts, stop: Event) -> list[float]:  # noqa: ARG001 - all tests are called alike
    return [1.0 for _ in answers]


def _p_unknown(answers: Sequence[PromptedAnswer], parts: Parts, stop: Event) -> list[float]:
    return [_against_unknown(answer, parts.llm, stop) for answer in answers]


def _against_unknown(answer: PromptedAnswer, llm: LLM, stop: Event) -> float:
    first_word = answer.completion.text.split()[0]
    try:
        [choice] = llm.choose([answer.messages], (first_word, UNKNOWN), stop)
    except ChoiceError:  # "United" may begin with the token that "unknown" begins with
        return 0.5
    return choice.probabilities[first_word]


def _mean_logprob(answers: Sequence[PromptedAnswer], parts: Parts, stop: Event) -> list[float]:  # noqa: ARG001
    # a backend that gives no log-probabilities leaves only the word to go by
    return [exp(sum(logs) / len(logs)) if (logs := answer.completion.logprobs) else 1.0 for answer in answers]


def _lowest_logprob(answers: Sequence[PromptedAnswer], parts: Parts, stop: Event) -> list[float]:  # noqa: ARG001
    return [exp(min(answer.completion.logprobs, default=0.0)) for answer in answers]


def _holds(answers: Sequence[PromptedAnswer], parts: Parts, stop: Event) -> list[float]:
    # the question continues the conversation, so that the passages are not read a second time
    prompts = [
        (
            *answer.messages,
            Message("assistant", answer.completion.text),
            *render("holds", answer=answer.completion.text),
        )
        for answer in answers
    ]
    choices = parts.llm.choose(prompts, ("yes", "no"), stop) if prompts else []
    return [choice.probabilities["yes"] for choice in choices]


def _relevance(answers: Sequence[PromptedAnswer], parts: Parts, stop: Event) -> list[float]:  # noqa: ARG001
    passage_confidences = [[p.confidence for p in answer.passages if p.confidence is not None] for answer in answers]
    return [max(confidence_values, default=1.0) for confidence_values in passage_confidences]


def _addresses(answers: Sequence[PromptedAnswer], parts: Parts, stop: Event) -> list[float]:
    texts = [without_title(answer.completion.text.strip(), answer.passages) for answer in answers]
    claims = [
        Claim(text, excerpts_with(text, answer.passages), answer.question)
        for text, answer in zip(texts, answers, strict=True)
    ]
    judge = parts.support(parts.llm) if parts.support else None
    return [
        verdict.probability for verdict in Addresses(parts.llm, judge, parts.embedder, 0.0, 0.0).judge(claims, stop)
    ]


_TESTS: Mapping[Uncertainty, Callable[[Sequence[PromptedAnswer], Parts, Event], list[float]]] = {
    "word": _word,
    "p_unknown": _p_unknown,
    "mean_logprob": _mean_logprob,
    "lowest_logprob": _lowest_logprob,
    "holds": _holds,
    "relevance": _relevance,
    "addresses": _addresses,
}
WAYS: tuple[Uncertainty, ...] = tuple(_TESTS)
