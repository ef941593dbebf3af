"""Few-shot prompts: questions and answers are shown to the model as if it had just answered them."""

from __future__ import annotations

from collections.abc import Sequence

from assistant.errors import DataError
from assistant.experiment.datasets import Question, sample
from assistant.llm.wrapper import Wrapper
from assistant.prompting.render import render
from assistant.protocols import LLM
from assistant.types import Message, Messages


def draw(questions: Sequence[Question], asked: Sequence[Question], n: int, seed: int) -> tuple[Question, ...]:
    """`n` questions as demonstrations, none of which is `asked`; they stay the same if more questions are asked later.

    Raises:
        DataError: fewer are left over.
    """
    # an experiment takes its sample from the front of the same order
    able = [question for question in sample(questions, None, seed) if question.answers][::-1][:n]
    if len(able) < n or {question.id for question in able} & {question.id for question in asked}:
        raise DataError(f"No {n} questions are left over to demonstrate answers with; lower --limit or --shots.")
    return tuple(able)


class Demonstrator(Wrapper):
    """An LLM wrapped around an LLM that inserts demonstrations behind the system message.

    A choice among words gets none. Without demonstrations everything is passed on as it is.
    """

    def __init__(self, llm: LLM, demonstrations: Sequence[Question]) -> None:
        super().__init__(llm)
        self._shown = tuple(message for one in demonstrations for message in _exchange(one))

    def asked(self, messages: Messages) -> Messages:
        """The messages with the demonstrations."""
        system, *rest = messages
        return (system, *self._shown, *rest)


def _exchange(question: Question) -> Messages:
    asked = render("factoid/closed_book", question=question.text)[-1]
    return asked, Message("assistant", question.answers[0])
