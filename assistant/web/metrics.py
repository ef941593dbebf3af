"""What Prometheus reads of a running page: times, tokens, the queue and errors; no texts, and nobody's name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from threading import Event, Lock

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from assistant.chat import PartsSource
from assistant.llm.wrapper import Wrapper
from assistant.protocols import LLM, Parts
from assistant.settings import Settings
from assistant.types import Choice, Choices, Completion, Messages, Options, Turn, Wait
from assistant.web.clock import Clock

_LOG = logging.getLogger(__name__)
# Upper bounds in seconds: a source is there in a tenth of one, a whole turn takes seconds on a GPU and up to minutes.
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250)


class Metrics:
    """All figures of one page. Safe to use from several threads.

    `watch` stands around turns, and `source` lends parts whose calls of the language model are counted.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._turns = self._counter("turns", "Turns that are over, by how they ended.", "status")
        self._errors = self._counter("errors", "Turns that failed, by the kind of error and the step.", "kind", "step")
        self._read = self._counter("tokens_read", "Tokens of prompts that the language model read for turns.")
        self._written = self._counter("tokens_written", "Tokens that the language model wrote for turns.")
        self._running = self._gauge("turns_running", "Turns that are being answered.")
        self._prompts, self._lock = 0, Lock()
        self._gauge(
            "model_prompts", "Prompts at the language model: being read, being answered, or waiting for their turn."
        ).set_function(lambda: self._prompts)
        self._source = self._histogram("first_source_seconds", "From a message to the first passage found for it.")
        self._word = self._histogram("first_word_seconds", "From a message to the first word of the reply.")
        self._whole = self._histogram("turn_seconds", "From a message to the end of its turn.")

    def watch(self, user: str, turns: Iterator[Turn]) -> Iterator[Turn]:  # noqa: ARG002 - whose it is isn't told
        """The snapshots as they come, timed and counted."""
        clock = Clock()
        with self._running.track_inprogress():
            try:
                for turn in turns:
                    clock.see(turn)
                    yield turn
            except GeneratorExit:
                clock.status = "stopped"
                raise
            except Exception as error:
                clock.fail(type(error).__name__)
                raise
            finally:
                self._note(clock)

    def source(self, source: PartsSource, settings: Settings) -> PartsSource:
        """The same source of parts, with this page's figures of the queue at its language model."""
        self._gauge("model_queue", "Prompts at the language model beyond those that run side by side.").set_function(
            lambda: max(self._prompts - settings.llm.slots, 0)
        )
        return _CountedSource(source, self._at_model)

    def show_readiness(self, ready: Callable[[], bool]) -> None:
        """Show whether questions can be answered."""
        self._gauge("ready", "1 once the models and the library are loaded.").set_function(lambda: float(ready()))

    def text(self) -> bytes:
        """All of it, in Prometheus's text format."""
        return generate_latest(self.registry)

    @contextmanager
    def _at_model(self, prompts: int) -> Iterator[None]:
        self._add(prompts)
        try:
            yield
        finally:
            self._add(-prompts)

    def _add(self, prompts: int) -> None:
        with self._lock:
            self._prompts += prompts

    def _note(self, clock: Clock) -> None:
        self._turns.labels(clock.status).inc()
        if clock.status == "failed":
            self._errors.labels(clock.error_kind, clock.step).inc()
        self._read.inc(clock.tokens.prompt)
        self._written.inc(clock.tokens.completion)
        for histogram, seconds in (
            (self._source, clock.first_source),
            (self._word, clock.first_word),
            (self._whole, clock.elapsed),
        ):
            if seconds is not None:
                histogram.observe(seconds)
        _LOG.info("turn over", extra={"figures": clock.log_fields()})

    def _counter(self, name: str, description: str, *labels: str) -> Counter:
        return Counter(f"sequitur_{name}", description, labels, registry=self.registry)

    def _gauge(self, name: str, description: str) -> Gauge:
        return Gauge(f"sequitur_{name}", description, registry=self.registry)

    def _histogram(self, name: str, description: str) -> Histogram:
        return Histogram(f"sequitur_{name}", description, buckets=_SECONDS, registry=self.registry)


class _CountedSource:
    """A `PartsSource` whose language model is counted."""

    def __init__(self, source: PartsSource, count_prompts: Callable[[int], AbstractContextManager[None]]) -> None:
        self._source, self._count_prompts = source, count_prompts

    @property
    def settings(self) -> Settings:
        return self._source.settings

    def loaded(self, seconds: float, model: str = "") -> bool:
        return self._source.loaded(seconds, model)

    def waiting(self) -> Wait:
        return self._source.waiting()

    @contextmanager
    def lent(self, user: str, choices: Choices, model: str = "") -> Iterator[Parts]:
        with self._source.lent(user, choices, model) as parts:
            yield replace(parts, llm=_CountedLLM(parts.llm, self._count_prompts))


class _CountedLLM(Wrapper):
    """Passes everything on to `llm`, and counts the prompts that are there."""

    def __init__(self, llm: LLM, count_prompts: Callable[[int], AbstractContextManager[None]]) -> None:
        super().__init__(llm)
        self._count_prompts = count_prompts

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        with self._count_prompts(1):
            yield from self._llm.stream(messages, options, stop)

    def complete(self, batch: Sequence[Messages], options: Options, stop: Event) -> list[Completion]:
        with self._count_prompts(len(batch)):
            return self._llm.complete(batch, options, stop)

    def choose(self, batch: Sequence[Messages], words: tuple[str, ...], stop: Event) -> list[Choice]:
        with self._count_prompts(len(batch)):
            return self._llm.choose(batch, words, stop)

    def score(self, batch: Sequence[tuple[Messages, str]], stop: Event) -> list[float]:
        with self._count_prompts(len(batch)):
            return self._llm.score(batch, stop)
