"""Caches a model's replies in a SQLite file: an LLM wrapped around an LLM.

Strategies share prompts (the fallback asks what concatenation and post-fusion ask, a gold passage that was found needs
no inserting), and one model needs minutes for what it has already said.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from math import inf
from pathlib import Path
from threading import Event, Lock, local
from time import perf_counter
from typing import Any, TypeVar

from assistant.errors import DataError
from assistant.llm.wrapper import Wrapper
from assistant.protocols import LLM
from assistant.types import Choice, Completion, Messages, Options

A = TypeVar("A")
Reply = Completion | Choice | float
REPLIES = "replies.sqlite"
# The key under which the file names the model that gave the replies.
_MODEL = "model"


class CachedLLM(Wrapper):
    """Asks `llm` only for replies that the file lacks. A reply that was cut off by `stop` is not stored.

    `saved` adds up the seconds that the cached replies took when the model wrote them, so that they can be counted;
    each thread has its own sum. The seconds of a batch are divided evenly among its replies.

    `model` names what gives the replies; the file names it as well.

    Raises:
        DataError: the file can't be read or written, or holds another model's replies.
    """

    def __init__(self, llm: LLM, file: Path, model: str) -> None:
        super().__init__(llm)
        self._saved, self._using = local(), Lock()
        try:
            self._file = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
            self._file.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, seconds REAL, reply TEXT)")
            _, other = self._found(_MODEL) or self._keep([_MODEL], [model], 0.0)[_MODEL]
        except (sqlite3.Error, ValueError) as error:
            raise DataError(f"The kept replies in {file} can't be used ({error}); remove that file.") from error
        if other != model:
            raise DataError(f"{file} holds replies of {other}, not of {model}; choose another file.")

    @property
    def saved(self) -> float:
        """Seconds that this thread did not have to wait, so far."""
        return getattr(self._saved, "seconds", 0.0)

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        """The kept reply whole, or as the model writes it."""
        key = _key("complete", messages, options)
        if cached := self._found(key):
            self._saved.seconds = self.saved + cached[0]
            yield _completion(cached[1])
            return
        since, completion = perf_counter(), Completion("")
        for completion in self._llm.stream(messages, options, stop):
            yield completion
        if not stop.is_set():
            self._keep([key], [completion], perf_counter() - since)

    def complete(self, batch: Sequence[Messages], options: Options, stop: Event) -> list[Completion]:
        """Kept replies, and those of the model for the rest of the batch."""
        keys = [_key("complete", messages, options) for messages in batch]
        return [
            Completion("", finish="cancelled") if reply is None else _completion(reply)
            for reply in self._replies(keys, batch, lambda missing: self._llm.complete(missing, options, stop), stop)
        ]

    def choose(self, batch: Sequence[Messages], words: tuple[str, ...], stop: Event) -> list[Choice]:
        """Kept choices, and those of the model for the rest of the batch."""
        keys = [_key("choose", messages, words) for messages in batch]
        even = {"probabilities": {word: 1 / len(words) for word in words}}
        return [
            Choice(**(even if reply is None else reply))
            for reply in self._replies(keys, batch, lambda missing: self._llm.choose(missing, words, stop), stop)
        ]

    def score(self, batch: Sequence[tuple[Messages, str]], stop: Event) -> list[float]:
        """Kept scores, and those of the model for the rest of the batch."""
        keys = [_key("score", messages, (text,)) for messages, text in batch]
        replies = self._replies(keys, batch, lambda missing: self._llm.score(missing, stop), stop)
        return [-inf if reply is None else float(reply) for reply in replies]

    def _replies(
        self, keys: Sequence[str], batch: Sequence[A], ask: Callable[[list[A]], Sequence[Reply]], stop: Event
    ) -> list[Any]:
        """What is kept in the end of each reply, nothing of those that `stop` cut off."""
        kept = {key: found for key in set(keys) if (found := self._found(key))}
        self._saved.seconds = self.saved + sum(seconds for seconds, _ in kept.values())
        missing = {key: asked for key, asked in zip(keys, batch, strict=True) if key not in kept}
        if missing:
            since = perf_counter()
            replies = ask(list(missing.values()))
            kept |= {} if stop.is_set() else self._keep(list(missing), replies, perf_counter() - since)
        return [kept[key][1] if key in kept else None for key in keys]

    def _found(self, key: str) -> tuple[float, Any] | None:
        """Seconds and reply, as they are kept."""
        with self._using:
            row = self._file.execute("SELECT seconds, reply FROM replies WHERE key = ?", (key,)).fetchone()
        return (row[0], json.loads(row[1])) if row else None

    def _keep(
        self, keys: Sequence[str], replies: Sequence[Reply | str], seconds: float
    ) -> dict[str, tuple[float, Any]]:
        each = round(seconds / len(keys), 4)
        plain = [reply if isinstance(reply, (int, float, str)) else asdict(reply) for reply in replies]
        rows = [(key, each, json.dumps(reply, ensure_ascii=False)) for key, reply in zip(keys, plain, strict=True)]
        with self._using:
            self._file.executemany("INSERT OR REPLACE INTO replies VALUES (?, ?, ?)", rows)
        return {key: (each, json.loads(reply)) for key, _, reply in rows}


def saved_by(llm: LLM) -> float:
    """The seconds that this thread did not have to wait, so far; none where the model's replies aren't kept."""
    return llm.saved if isinstance(llm, CachedLLM) else 0.0


def _completion(reply: dict[str, Any]) -> Completion:
    return Completion(**{**reply, "logprobs": tuple(reply["logprobs"])})


def _key(kind: str, messages: Messages, how: Options | tuple[str, ...]) -> str:
    asked = [kind, [asdict(message) for message in messages], asdict(how) if isinstance(how, Options) else how]
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:32]
