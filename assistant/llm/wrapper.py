"""The base class of wrappers: an LLM that passes everything on to another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Event

from assistant.protocols import LLM
from assistant.types import Choice, Completion, Messages, Options


class Wrapper:
    """An `LLM` around `llm`; whatever a subclass doesn't override is passed on."""

    def __init__(self, llm: LLM) -> None:
        self._llm = llm
        self.name, self.context, self.can_score = llm.name, llm.context, llm.can_score

    def outgoing(self, messages: Messages) -> Messages:
        """The messages that are sent to the model in place of these, but not by `choose`."""
        return messages

    def count(self, messages: Messages) -> int:
        """As the model does it."""
        return self._llm.count(self.outgoing(messages))

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        """As the model does it."""
        return self._llm.stream(self.outgoing(messages), options, stop)

    def complete(self, batch: Sequence[Messages], options: Options, stop: Event) -> list[Completion]:
        """As the model does it."""
        return self._llm.complete([self.outgoing(messages) for messages in batch], options, stop)

    def choose(self, batch: Sequence[Messages], words: tuple[str, ...], stop: Event) -> list[Choice]:
        """As the model does it."""
        return self._llm.choose(batch, words, stop)

    def score(self, batch: Sequence[tuple[Messages, str]], stop: Event) -> list[float]:
        """As the model does it, if it can."""
        return self._llm.score([(self.outgoing(messages), text) for messages, text in batch], stop)
