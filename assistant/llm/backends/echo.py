"""Says back what it is asked, from any file: an example of how little a backend takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event

from assistant.errors import ModelError
from assistant.llm.backends import Wanted
from assistant.protocols import Engine, Progress
from assistant.settings import Settings
from assistant.types import Choice, Completion, Messages, Options

APART = False


def fitness(wanted: Wanted) -> int:  # noqa: ARG001
    """It is only had where it is asked for."""
    return 0


def load(path: Path, name: str, settings: Settings, progress: Progress) -> Engine:  # noqa: ARG001
    """The engine, whatever lies there."""
    return Echo(name, settings.llm.context)


class Echo:
    """An `Engine` whose replies are the last messages; a word is a token, and all words are as likely."""

    can_score = False

    def __init__(self, name: str, context: int) -> None:
        self.name, self.context = name, context

    def count(self, messages: Messages) -> int:
        """Words."""
        return sum(len(message.content.split()) for message in messages)

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        """The reply, whole."""
        yield from self.complete([messages], options, stop)

    def complete(self, batch: Sequence[Messages], options: Options, stop: Event) -> list[Completion]:  # noqa: ARG002
        """The last message of each prompt, as far as there is room; it is there at once."""
        replies = [messages[-1].content.split()[: options.max_tokens] for messages in batch]
        return [
            Completion(" ".join(words), self.count(messages), len(words), finish="stop")
            for messages, words in zip(batch, replies, strict=True)
        ]

    def choose(self, batch: Sequence[Messages], words: tuple[str, ...], stop: Event) -> list[Choice]:  # noqa: ARG002
        """Even odds."""
        return [Choice({word: 1 / len(words) for word in words}, self.count(messages)) for messages in batch]

    def score(self, batch: Sequence[tuple[Messages, str]], stop: Event) -> list[float]:  # noqa: ARG002
        """Always fails; see `can_score`."""
        raise ModelError(f"{self.name} can't tell how likely a text is.")

    def close(self) -> None:
        """Nothing is held."""
