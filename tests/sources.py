"""Where a chat gets its parts in tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event

from assistant.errors import ModelError
from assistant.protocols import Parts
from assistant.settings import Settings
from assistant.types import Choices, Wait


@dataclass
class Given:
    """These parts, from when `there` is set on; it is from the start. Where `error` is set, there are none."""

    made: Parts
    error: str = ""
    there: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        self.there.set()

    @property
    def settings(self) -> Settings:
        return self.made.settings

    def waiting(self) -> Wait:
        return Wait("loading", "Language model", 42, 100)

    def loaded(self, seconds: float, model: str = "") -> bool:
        return self.there.wait(seconds)

    @contextmanager
    def lent(self, user: str, choices: Choices, model: str = "") -> Iterator[Parts]:
        yield self.parts(user, choices)

    def parts(self, user: str, choices: Choices) -> Parts:
        if self.error:
            raise ModelError(self.error)
        return self.made
