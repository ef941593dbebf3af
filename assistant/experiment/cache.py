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

    `saved_seconds` adds up the seconds that the cached replies took when the model wrote them, so that they can be
    counted; each thread has its own sum. The seconds of a batch are divided evenly among its replies.

    `model` names what gives the replies; the file names it as well.

    Raises:
        DataError: the file can't be read or written, or holds another model's replies.
    """

    def __init__(self, llm: LLM, file: Path, model: str) -> None:
        super().__init__(llm)
        self._saved, self._file_lock = local(), Lock()
        try:
            self._file = sqlite3.connect(file, check_same_thread=False, isolation_level=None)
            self._file.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, seconds REAL, reply TEXT)")
            _, stored_model = self._stored_reply(_MODEL) or self._store([_MODEL], [model], 0.0)[_MODEL]
        except (sqlite3.Error, ValueError) as error:
            raise DataError(f"The kept replies in {file} can't be used ({error}); remove that file.") from error
        if stored_model != model:
            raise DataError(f"{file} holds replies of {stored_model}, not of {model}; choose another file.")

    @property
    def saved_seconds(self) -> float:
        """Seconds that this thread did not have to wait, so far."""
        return getattr(self._saved, "seconds", 0.0)

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        """The kept reply whole, or as the model writes it."""
        key = _key("complete", messages, options)
        if cached := self._stored_reply(key):
            self._saved.seconds = self.saved_seconds + cached[0]
            yield _completion(cached[1])
            return
        start, completion = perf_counter(), Completion("")
        for completion in self._llm.stream(messages, options, stop):
            yield completion
        if not stop.is_set():
            self._store([key], [completion], perf_counter() - start)

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
        uniform = {"probabilities": {word: 1 / len(words) for word in words}}
        return [
            Choice(**(uniform if reply is None else reply))
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
        """Each reply as it is stored, in the order of `keys`; None for those that `stop` cut off."""
        stored_replies = {key: stored for key in set(keys) if (stored := self._stored_reply(key))}
        self._saved.seconds = self.saved_seconds + sum(seconds for seconds, _ in stored_replies.values())
        missing = {key: request for key, request in zip(keys, batch, strict=True) if key not in stored_replies}
        if missing:
            start = perf_counter()
            replies = ask(list(missing.values()))
            stored_replies |= {} if stop.is_set() else self._store(list(missing), replies, perf_counter() - start)
        return [stored_replies[key][1] if key in stored_replies else None for key in keys]

    def _stored_reply(self, key: str) -> tuple[float, Any] | None:
        """Seconds and reply, as they are stored; None where there is none."""
        with self._file_lock:
            row = self._file.execute("SELECT seconds, reply FROM replies WHERE key = ?", (key,)).fetchone()
        return (row[0], json.loads(row[1])) if row else None

    def _store(
        self, keys: Sequence[str], replies: Sequence[Reply | str], seconds: float
    ) -> dict[str, tuple[float, Any]]:
        seconds_each = round(seconds / len(keys), 4)
        plain_replies = [reply if isinstance(reply, (int, float, str)) else asdict(reply) for reply in replies]
        rows = [
            (key, seconds_each, json.dumps(reply, ensure_ascii=False))
            for key, reply in zip(keys, plain_replies, strict=True)
        ]
        with self._file_lock:
            self._file.executemany("INSERT OR REPLACE INTO replies VALUES (?, ?, ?)", rows)
        return {key: (seconds_each, json.loads(reply)) for key, _, reply in rows}


def saved_seconds_of(llm: LLM) -> float:
    """The seconds that this thread did not have to wait, so far; none where the model's replies aren't kept."""
    return llm.saved_seconds if isinstance(llm, CachedLLM) else 0.0


def _completion(reply: dict[str, Any]) -> Completion:
    return Completion(**{**reply, "logprobs": tuple(reply["logprobs"])})


def _key(kind: str, messages: Messages, parameters: Options | tuple[str, ...]) -> str:
    options = asdict(parameters) if isinstance(parameters, Options) else parameters
    request = [kind, [asdict(message) for message in messages], options]
    return hashlib.sha256(json.dumps(request).encode()).hexdigest()[:32]
