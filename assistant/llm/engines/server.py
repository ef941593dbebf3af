"""A server's model as an engine: calls of many threads become requests of one event loop.

In it a request that is left is closed at once, wherever it is: while it connects, waits, or is written.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from functools import lru_cache, partial
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any, Generic, TypeVar

from assistant.errors import ModelError
from assistant.llm.context_limit import check_context
from assistant.llm.control_tokens import defuse
from assistant.llm.fair_queue import FairQueue
from assistant.llm.servers.discovery import ANY_MODEL, meet
from assistant.llm.servers.openai_compatible import Abilities, OpenAICompatible, estimated_tokens
from assistant.llm.servers.reply_stream import completions, paced
from assistant.llm.servers.wire import Wire
from assistant.llm.thoughts import ThoughtFilter
from assistant.settings import Backend, LLMSettings
from assistant.types import Choice, Completion, Messages, Options

T = TypeVar("T")
_POLL = 0.02
_CACHED_COUNTS = 512
# Seconds for which a server that couldn't be met isn't asked anew, so that all who waited for that hear of it.
RETRY_SECONDS = 2.0
# Seconds for which a server may count the tokens of a prompt, since nobody can stop that; and for which estimates do
# where it took longer.
COUNT_SECONDS, ESTIMATE_SECONDS = 5.0, 60.0


@dataclass
class _CountTimeout:
    """When the server last took too long to count; the engine and its copies, one a turn, all go by it."""

    time: float = -math.inf


class Server:
    """A server's model, shared by all users in a fair queue. `meet`, or the first call, asks the server what it is.

    Raises:
        ModelError: there is no such address.
    """

    backend: Backend = "server"

    def __init__(self, settings: LLMSettings) -> None:
        self._settings = settings
        self._wire = Wire(settings.server, settings.api_key.get_secret_value(), settings.first_token_timeout)
        self.name = self._wire.root if settings.model in ANY_MODEL else settings.model
        self.context, self.can_score = settings.context, False
        self._queue = FairQueue(settings.slots)
        self._meeting: Future[OpenAICompatible] | None = None
        self._failure_time, self._lock = -math.inf, Lock()
        self._count_timeout = _CountTimeout()
        self._thoughts = ThoughtFilter()
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="server", daemon=True)
        self._thread.start()
        self._cached_count = lru_cache(_CACHED_COUNTS)(self._count)
        self.salt = ""

    @property
    def abilities(self) -> Abilities:
        """What the server can do with this model."""
        return self.meet().abilities

    @property
    def kind(self) -> str:
        """The kind of server."""
        return self.meet().KIND

    def meet(self) -> OpenAICompatible:
        """Ask the server what it can do, unless that is known, or being asked, or failed in the last `RETRY_SECONDS`.

        Raises:
            ModelError: it doesn't answer, has no such model, or can't do what is needed.
        """
        return self._result(self._current_meeting())

    def is_met(self, seconds: float) -> bool:
        """Wait for at most so many seconds; whether what `meet` asks has an answer by then, or has failed."""
        try:
            return bool(wait([self._current_meeting()], seconds).done)
        except ModelError:  # unloaded, which the first call tells
            return True

    def _current_meeting(self) -> Future[OpenAICompatible]:
        """The meeting with the server, begun unless there is one that did not fail long ago."""
        with self._lock:
            meeting = self._meeting
            failed = meeting and meeting.done() and (meeting.cancelled() or meeting.exception())
            if meeting is None or (failed and monotonic() - self._failure_time >= RETRY_SECONDS):
                meeting = self._meeting = self._submitted(self._meet())
            return meeting

    async def _meet(self) -> OpenAICompatible:
        settings = self._settings
        explicit_context = settings.context if "context" in settings.model_fields_set else None
        try:
            server = await meet(self._wire, settings.model, explicit_context, settings.context)
        except ModelError:
            self._failure_time = monotonic()
            raise
        self.name, self.context, self.can_score = server.name, server.abilities.context, server.abilities.score
        self._thoughts.unopened = server.abilities.unopened
        return server

    def salted(self, salt: str) -> Server:
        """This engine for prompts whose cached beginnings are shared only among prompts of the same salt.

        A server that can't be met is told of by the first call.
        """
        with suppress(ModelError):
            self.meet()
        view = copy(self)
        view.salt = salt
        return view

    def count(self, messages: Messages) -> int:
        """Tokens of the prompt that these messages make; where the server doesn't count, or not soon, an estimate."""
        if monotonic() - self._count_timeout.time >= ESTIMATE_SECONDS:
            try:
                return self._cached_count(messages)
            except TimeoutError:
                self._count_timeout.time = monotonic()
        return estimated_tokens(messages)

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        """The completion as it grows; see `assistant.protocols.LLM`."""
        self._check(messages)
        yield from _with_cancelled(self._begin(messages, options, stop, object()))

    def complete(self, batch: Sequence[Messages], options: Options, stop: Event) -> list[Completion]:
        """One completion for each prompt, side by side, in the prompts' order."""
        self._check(*batch)
        owner, jobs = object(), list[_Job[Completion]]()
        try:
            for messages in batch:
                jobs.append(self._begin(messages, options, stop, owner))
            return [list(_with_cancelled(job))[-1] for job in jobs]
        finally:
            for job in jobs:
                job.leave()

    def choose(self, batch: Sequence[Messages], words: tuple[str, ...], stop: Event) -> list[Choice]:
        """How likely each word is to begin the reply, normalised over the words; equal odds after `stop`.

        Raises:
            ChoiceError: the words begin alike, the server tells no probabilities, or none of enough weight.
        """
        self._check(*batch)
        even_choice = Choice({word: 1 / len(words) for word in words})
        server = self._salted_server()
        return self._parallel_results(
            [partial(server.choose, messages, words) for messages in batch], even_choice, stop
        )

    def score(self, batch: Sequence[tuple[Messages, str]], stop: Event) -> list[float]:
        """The log-probability of each text after its prompt; minus infinity after `stop`.

        Raises:
            ModelError: the server can't tell (`can_score` is False).
        """
        server = self._salted_server()
        calls = [partial(server.score, messages, defuse(text)) for messages, text in batch]
        return self._parallel_results(calls, -math.inf, stop)

    def close(self) -> None:
        """Close all requests, which fail, and all connections."""
        if self._loop.is_running():
            self._run(self._end_requests())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _salted_server(self) -> OpenAICompatible:
        return self.meet().salted(self.salt) if self.salt else self.meet()

    def _count(self, messages: Messages) -> int:
        counting = self._submitted(self.meet().count(messages))
        try:
            return self._result(counting, COUNT_SECONDS)
        except TimeoutError:
            counting.cancel()
            raise

    def _check(self, *batch: Messages) -> None:
        """Refuse prompts that leave no room for a reply."""
        for messages in batch:
            check_context(self.count(messages), self)

    def _begin(self, messages: Messages, options: Options, stop: Event, owner: object) -> _Job[Completion]:
        server, settings = self._salted_server(), self._settings
        pieces = paced(
            server.stream(messages, options), settings.first_token_timeout, settings.next_token_timeout, self._wire.root
        )
        return self._start(completions(pieces, self._thoughts, self._wire.broken_off()), stop, owner)

    def _parallel_results(
        self, calls: Sequence[Callable[[], Coroutine[Any, Any, T]]], default: T, stop: Event
    ) -> list[T]:
        """The results of these calls, made in parallel."""
        owner, jobs = object(), list[_Job[T]]()
        try:
            for call in calls:
                jobs.append(self._start(_single_result(call), stop, owner))
            return [next(iter(job), default) for job in jobs]
        finally:
            for job in jobs:
                job.leave()

    def _start(self, items: AsyncIterator[T], stop: Event, owner: object) -> _Job[T]:
        job = _Job[T](stop)
        if not self._queue.enter(owner, stop):
            job.finish()
        elif self._loop.is_running():
            job.run(items, self._loop, lambda: self._queue.leave(owner), self._unloaded_error())
        else:
            self._queue.leave(owner)
            raise self._unloaded_error()
        return job

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._result(self._submitted(coroutine))

    def _submitted(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        if not self._loop.is_running():
            coroutine.close()
            raise self._unloaded_error()
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def _result(self, future: Future[T], seconds: float | None = None) -> T:
        try:
            return future.result(seconds)
        except CancelledError:
            raise self._unloaded_error() from None

    async def _end_requests(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._wire.close()

    def _unloaded_error(self) -> ModelError:
        return ModelError(f"{self.name} was unloaded; start again to use it.")


class _Job(Generic[T]):
    """A request under way: the loop adds items, which the caller takes out until it leaves."""

    def __init__(self, stop: Event) -> None:
        self._stop = stop
        self._items: SimpleQueue[tuple[T] | BaseException | None] = SimpleQueue()
        self._future: Future[None] | None = None

    def run(
        self, items: AsyncIterator[T], loop: asyncio.AbstractEventLoop, on_end: Callable[[], None], unloaded: ModelError
    ) -> None:
        def on_done(_: Future[None]) -> None:
            on_end()
            self.finish()

        async def pump() -> None:
            try:
                async for item in items:
                    self._items.put((item,))
            except asyncio.CancelledError:  # whoever left doesn't hear it
                self._items.put(unloaded)
                raise
            except Exception as error:  # noqa: BLE001 - raised again where it is waited for
                self._items.put(error)

        self._future = asyncio.run_coroutine_threadsafe(pump(), loop)
        self._future.add_done_callback(on_done)

    def finish(self) -> None:
        self._items.put(None)

    def leave(self) -> None:
        if self._future:
            self._future.cancel()

    def __iter__(self) -> Iterator[T]:
        """Items as they come; ends at once when `stop` is set."""
        try:
            while not self._stop.is_set():
                try:
                    item = self._items.get(timeout=_POLL)
                except Empty:
                    continue
                if item is None:
                    return
                if isinstance(item, BaseException):
                    raise item
                yield item[0]
        finally:
            self.leave()


def _with_cancelled(job: _Job[Completion]) -> Iterator[Completion]:
    """The completions of a job; if it is stopped, the last one says "cancelled"."""
    latest = Completion("")
    for completion in job:
        latest = Completion("") if completion.read else completion
        yield completion
    if not latest.finish:
        yield Completion(latest.text, latest.prompt_tokens, latest.completion_tokens, latest.logprobs, "cancelled")


async def _single_result(call: Callable[[], Coroutine[Any, Any, T]]) -> AsyncIterator[T]:
    yield await call()
