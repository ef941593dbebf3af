"""Replies that a model has given before, kept in a file: an LLM around an LLM.

Strategies share prompts (the fallback asks what concatenation and post-fusion ask, a gold passage that was found needs
no inserting), and one model needs minutes for what it has already said.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from math import inf
from pathlib import Path
from threading import Event, Lock, local
from time import perf_counter
from typing import Any, TypeVar

from assistant.errors import DataError
from assistant.experiment.runs import whole_lines
from assistant.llm.wrapper import Wrapper
from assistant.protocols import LLM
from assistant.types import (
    Choice,
    Completion,
    Messages,
    Options,
)

A = TypeVar("A")
Reply = Completion | Choice | float


class Memo(Wrapper):
    """Asks `llm` what the file lacks. A reply that was cut off by `stop` is not kept.

    `saved` adds up the seconds that the replies out of the file took when they were given, so that whoever measures
    can count them; each thread has a sum of its own. A batch's seconds are shared out evenly.

    `model` says what gave the replies; the file's first line says it, too.

    Raises:
        DataError: the file can't be read or written, or holds another model's replies.
    """

    def __init__(self, llm: LLM, file: Path, model: str) -> None:
        super().__init__(llm)
        self._file = file
        self._saved, self._writing = local(), Lock()
        try:
            self._kept: dict[str, dict[str, Any]] = {row["key"]: row for row in self._rows(model)}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"The kept replies in {file} can't be used ({error}); remove that file.") from error

    def _rows(self, model: str) -> Iterator[dict[str, Any]]:
        self._file.touch()
        rows = map(json.loads, whole_lines(self._file))
        if (head := next(rows, None)) is None:
            self._file.write_text(json.dumps({"model": model}, ensure_ascii=False) + "\n", encoding="utf-8")
        elif (other := head["model"]) != model:
            raise DataError(f"{self._file} holds replies of {other}, not of {model}; choose another file.")
        yield from rows

    @property
    def saved(self) -> float:
        """Seconds that this thread did not have to wait, so far."""
        return getattr(self._saved, "seconds", 0.0)

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        """The kept reply whole, or as the model writes it."""
        key = _key("complete", messages, options)
        if key in self._kept:
            self._spare([key])
            yield self._completion(key)
            return
        since, completion = perf_counter(), Completion("")
        for completion in self._llm.stream(messages, options, stop):
            yield completion
        self._keep([key], [completion], perf_counter() - since, stop)

    def complete(self, batch: Sequence[Messages], options: Options, stop: Event) -> list[Completion]:
        """Kept replies, and those of the model for the rest of the batch."""
        keys = [_key("complete", messages, options) for messages in batch]
        self._ask(keys, batch, lambda missing: self._llm.complete(missing, options, stop), stop)
        return [self._completion(key) if key in self._kept else Completion("", finish="cancelled") for key in keys]

    def choose(self, batch: Sequence[Messages], words: tuple[str, ...], stop: Event) -> list[Choice]:
        """Kept choices, and those of the model for the rest of the batch."""
        keys = [_key("choose", messages, words) for messages in batch]
        self._ask(keys, batch, lambda missing: self._llm.choose(missing, words, stop), stop)
        even = Choice({word: 1 / len(words) for word in words})
        return [Choice(**self._kept[key]["reply"]) if key in self._kept else even for key in keys]

    def score(self, batch: Sequence[tuple[Messages, str]], stop: Event) -> list[float]:
        """Kept scores, and those of the model for the rest of the batch."""
        keys = [_key("score", messages, (text,)) for messages, text in batch]
        self._ask(keys, batch, lambda missing: self._llm.score(missing, stop), stop)
        return [float(self._kept[key]["reply"]) if key in self._kept else -inf for key in keys]

    def _ask(
        self, keys: Sequence[str], batch: Sequence[A], ask: Callable[[list[A]], Sequence[Reply]], stop: Event
    ) -> None:
        self._spare([key for key in set(keys) if key in self._kept])
        missing = {key: asked for key, asked in zip(keys, batch, strict=True) if key not in self._kept}
        if missing:
            since = perf_counter()
            replies = ask(list(missing.values()))
            self._keep(list(missing), replies, perf_counter() - since, stop)

    def _spare(self, keys: Sequence[str]) -> None:
        self._saved.seconds = self.saved + sum(self._kept[key]["seconds"] for key in keys)

    def _completion(self, key: str) -> Completion:
        reply = self._kept[key]["reply"]
        return Completion(**{**reply, "logprobs": tuple(reply["logprobs"])})

    def _keep(self, keys: Sequence[str], replies: Sequence[Reply], seconds: float, stop: Event) -> None:
        if stop.is_set():
            return
        with self._writing, self._file.open("a", encoding="utf-8") as file:
            for key, reply in zip(keys, replies, strict=True):
                row = {"key": key, "seconds": round(seconds / len(keys), 4), "reply": _plain(reply)}
                self._kept[key] = row
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _plain(reply: Reply) -> object:
    return reply if isinstance(reply, (int, float)) else asdict(reply)


def _key(kind: str, messages: Messages, how: Options | tuple[str, ...]) -> str:
    asked = [kind, [asdict(message) for message in messages], asdict(how) if isinstance(how, Options) else how]
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:32]
