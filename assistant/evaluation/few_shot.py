"""Few-shot prompts: questions and answers are shown to the model as if it had just answered them."""

from __future__ import annotations

from collections.abc import Sequence

from assistant.errors import DataError
from assistant.experiment.datasets import Question, sample
from assistant.llm.wrapper import Wrapper
from assistant.prompting.render import render
from assistant.protocols import LLM
from assistant.types import Message, Messages


def draw_demonstrations(
    questions: Sequence[Question], asked_questions: Sequence[Question], n: int, seed: int
) -> tuple[Question, ...]:
    """`n` questions as demonstrations, none of them in `asked_questions`.

    They stay the same if more questions are asked later.

    Raises:
        DataError: fewer are left over.
    """
    # an experiment takes its sample from the front of the same order
    shots = [question for question in sample(questions, None, seed) if question.answers][::-1][:n]
    if len(shots) < n or {question.id for question in shots} & {question.id for question in asked_questions}:
        raise DataError(f"No {n} questions are left over to demonstrate answers with; lower --limit or --shots.")
    return tuple(shots)


class Demonstrator(Wrapper):
    """An LLM wrapped around an LLM that inserts demonstrations behind the system message.

    A choice among words gets none. Without demonstrations everything is passed on as it is.
    """

    def __init__(self, llm: LLM, demonstrations: Sequence[Question]) -> None:
        super().__init__(llm)
        self._demonstration_messages = tuple(message for question in demonstrations for message in _exchange(question))

    def outgoing(self, messages: Messages) -> Messages:
        """The messages with the demonstrations."""
        system, *other_messages = messages
        return (system, *self._demonstration_messages, *other_messages)


def _exchange(question: Question) -> Messages:
    prompt = render("factoid/closed_book", question=question.text)[-1]
    return prompt, Message("assistant", question.answers[0])
