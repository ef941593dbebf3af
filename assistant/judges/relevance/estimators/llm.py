"""A chat model as relevance estimator, without training: asked true or false, by probability (RE-RAG, equation 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import Event

from assistant.errors import UtteranceError
from assistant.prompting.render import render
from assistant.protocols import LLM
from assistant.text.sentences import shorten
from assistant.types import Messages, Passage, Relevance

WORDS = ("true", "false")


def asking(llm: LLM) -> LlmEstimator:
    """The estimator that asks this model; see `estimators.PromptedModule`."""
    return LlmEstimator(llm)


class LlmEstimator:
    """Asks the model of each passage whether it answers the question. A passage too long for it is cut at its end."""

    calibration = ""

    def __init__(self, llm: LLM) -> None:
        self._llm = llm
        self.name = f"llm:{llm.name}"

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
        """One estimate for each passage; see `Estimator`.

        Raises:
            UtteranceError: the question alone is too long for the model.
        """
        if not passages:
            return []
        prompts = [fit_passage("relevance", self._llm, 1, question, passage) for passage in passages]
        choices = self._llm.choose(prompts, WORDS, stop)
        return [Relevance.of_confidence(choice.probabilities["true"]) for choice in choices]


def fit_passage(name: str, llm: LLM, reply: int, question: str, passage: Passage, **values: object) -> Messages:
    """The prompt `name` about one passage, whose text is halved until the prompt and `reply` tokens fit the context.

    `values` are those of the prompt's other variables.

    Raises:
        UtteranceError: the question alone is too long.
    """
    messages = render(name, question=question, passage=passage, **values)
    while llm.count(messages) + reply > llm.context:
        if len(passage.text) < 2:
            raise UtteranceError("The question is too long for the model's context; ask something shorter.")
        passage = replace(passage, text=shorten(passage.text, len(passage.text) // 2))
        messages = render(name, question=question, passage=passage, **values)
    return messages
