"""Joins prompts of several threads into one batch: an LLM wrapped around an LLM.

A batch reads and writes for all of its prompts at once, which costs far less than a stream for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from threading import Event, Lock
from time import sleep

from assistant.llm.wrapper import Wrapper
from assistant.protocols import LLM, Parts
from assistant.types import Completion, Messages, Options

# Seconds that a batch waits for other threads that are about to ask; next to nothing beside the time it takes.
_WAIT_SECONDS = 0.2


def with_batching(parts: Parts, jobs: int) -> Parts:
    """The parts for an experiment that makes `jobs` rows at a time."""
    return replace(parts, llm=BatchingLLM(parts.llm)) if jobs > 1 else parts


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    batch: tuple[Messages, ...]
    options: Options
    replies: Future[list[Completion]] = field(default_factory=Future)


class BatchingLLM(Wrapper):
    """Puts prompts with the same options, asked by several threads at about the same time, to `llm` as one batch.

    A reply comes whole, also where it is streamed. All threads are expected to share one `stop`.
    """

    def __init__(self, llm: LLM) -> None:
        super().__init__(llm)
        self._waiting: list[_Request] = []
        self._queue_lock, self._model_lock = Lock(), Lock()

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        """The reply, whole."""
        yield from self.complete([messages], options, stop)

    def complete(self, batch: Sequence[Messages], options: Options, stop: Event) -> list[Completion]:
        """One completion for each prompt; an error of the model is raised to all whose prompts were in the batch."""
        request = _Request(tuple(batch), options)
        with self._queue_lock:
            self._waiting.append(request)
        with self._model_lock:
            if not request.replies.done():
                sleep(_WAIT_SECONDS)
                self._ask(options, stop)
        return request.replies.result()

    def _ask(self, options: Options, stop: Event) -> None:
        with self._queue_lock:
            requests = [request for request in self._waiting if request.options == options]
            self._waiting = [request for request in self._waiting if request.options != options]
        try:
            replies = iter(
                self._llm.complete([messages for request in requests for messages in request.batch], options, stop)
            )
            for request in requests:
                request.replies.set_result([next(replies) for _ in request.batch])
        except Exception as error:  # noqa: BLE001 - each of them raises it in `complete`
            for request in requests:
                request.replies.set_exception(error)
