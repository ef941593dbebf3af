"""Counts tokens and seconds: an LLM wrapped around an LLM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Event, Lock
from time import perf_counter

from assistant.llm.wrapper import Wrapper
from assistant.protocols import LLM
from assistant.types import Choice, Completion, Message, Messages, Options, Tokens


class Meter(Wrapper):
    """Passes everything on to `llm`, and adds up tokens and the seconds spent waiting for it. One for each turn."""

    def __init__(self, llm: LLM) -> None:
        super().__init__(llm)
        self._lock = Lock()
        self.tokens, self.seconds = Tokens(), 0.0

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        """As the model does it. The consumer's own time between two pieces is not counted."""
        start_time, completion = perf_counter(), Completion("")
        try:
            for piece in self._llm.stream(messages, options, stop):
                self._add(Tokens(), perf_counter() - start_time)
                if not piece.read:
                    completion = piece
                yield piece
                start_time = perf_counter()
        finally:
            self._add(_tokens(completion), 0.0)

    def complete(self, batch: Sequence[Messages], options: Options, stop: Event) -> list[Completion]:
        """As the model does it."""
        start_time = perf_counter()
        completions = self._llm.complete(batch, options, stop)
        self._add(sum(map(_tokens, completions), Tokens()), perf_counter() - start_time)
        return completions

    def choose(self, batch: Sequence[Messages], words: tuple[str, ...], stop: Event) -> list[Choice]:
        """As the model does it. A choice writes one token."""
        start_time = perf_counter()
        choices = self._llm.choose(batch, words, stop)
        self._add(
            sum((Tokens(choice.prompt_tokens, 1, choice.cached) for choice in choices), Tokens()),
            perf_counter() - start_time,
        )
        return choices

    def score(self, batch: Sequence[tuple[Messages, str]], stop: Event) -> list[float]:
        """As the model does it. What is scored is read, so it counts as part of the prompt."""
        start_time = perf_counter()
        scores = self._llm.score(batch, stop)
        read = sum(self._llm.count((*messages, Message("assistant", text))) for messages, text in batch)
        self._add(Tokens(read), perf_counter() - start_time)
        return scores

    def _add(self, tokens: Tokens, seconds: float) -> None:
        with self._lock:
            self.tokens += tokens
            self.seconds += seconds


def _tokens(completion: Completion) -> Tokens:
    return Tokens(completion.prompt_tokens, completion.completion_tokens, completion.cached)
