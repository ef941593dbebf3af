"""Builds the parts that the settings name. The only file that knows every implementation.

Loading takes seconds to minutes (weights, index, model), so it runs in a thread of its own, stage by stage, while the
page is already up; heavy imports happen in here for the same reason.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TypeVar

from assistant.errors import ModelError, SequiturError
from assistant.settings import Settings
from assistant.steps.intent import intent_of
from assistant.types import LLM, Choices, Embedder, Parts, Progress
from ptkb.extract import offers

_LOG = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stage:
    """One thing that is being made ready. `fraction` is in [0, 1], or None where the end can't be told."""

    name: str
    fraction: float | None = None
    done: bool = False
    error: str = ""


class Loader:
    """Makes everything ready in the background, and hands out parts once it is."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._stages: dict[str, Stage] = {}
        self._lock = Lock()
        self._finished = Event()
        self._llm: LLM | None = None
        self._embedder: Embedder | None = None
        self._notice = ""

    @property
    def ready(self) -> bool:
        """Whether questions can be answered."""
        return self._finished.is_set() and not self.error

    @property
    def error(self) -> str:
        """The sentence that says why loading failed, or ""."""
        return next((stage.error for stage in self.stages() if stage.error), "")

    @property
    def notice(self) -> str:
        """What a person should know though everything works: why another model answers than the one asked for."""
        return self._notice

    def stages(self) -> tuple[Stage, ...]:
        """What is being loaded, in order, as of now."""
        with self._lock:
            return tuple(self._stages.values())

    def start(self) -> None:
        """Begin loading in a thread."""
        Thread(target=self._load, name="loader", daemon=True).start()

    def wait(self, watch: Callable[[tuple[Stage, ...]], None] = lambda _: None, every: float = 0.2) -> None:
        """Wait until loading has ended, showing the stages to `watch` every so many seconds.

        Raises:
            SequiturError: loading failed; the message says what to do.
        """
        while not self._finished.wait(every):
            watch(self.stages())
        watch(self.stages())
        if self.error:
            raise ModelError(self.error)

    def parts(self, user: str, choices: Choices) -> Parts:
        """The parts for a turn of `user`, searching the library that `choices` names.

        Raises:
            SequiturError: still loading, loading failed, or there is no such library.
        """
        if self.error:
            raise ModelError(self.error)
        if not self._finished.is_set() or self._llm is None or self._embedder is None:
            raise ModelError("Sequitur is still loading; try again in a moment.")
        from assistant.library.shelves import open_shelves  # noqa: PLC0415 - starts the JVM

        return Parts(self.settings, self._llm, self._embedder, open_shelves(choices.library, user, self.settings))

    def _load(self) -> None:
        try:
            self._embedder = self._stage("Sentence-BERT", self._load_embedder)
            self._stage("Starter library", self._load_starter)
            self._llm = self._stage("Language model", self._load_llm)
        except SequiturError:
            pass  # the stage holds the sentence, and whoever asks for parts is told
        finally:
            self._finished.set()

    def _stage(self, name: str, load: Callable[[Progress], T]) -> T:
        self._set(Stage(name))
        try:
            result = load(lambda done, total: self._set(Stage(name, done / total if total else None)))
        except SequiturError as error:
            self._set(Stage(name, error=str(error)))
            raise
        except Exception as error:
            _LOG.exception("loading %s failed", name)
            self._set(Stage(name, error=f"{name} could not be loaded ({error}); the log has the details."))
            raise ModelError(str(error)) from error
        self._set(Stage(name, 1.0, done=True))
        return result

    def _set(self, stage: Stage) -> None:
        with self._lock:
            self._stages[stage.name] = stage

    def _load_embedder(self, progress: Progress) -> Embedder:
        embedder = load_embedder(self.settings, progress)
        # Both learn from examples when they are first used; nobody's first message should wait for that.
        intent_of("Hello", embedder, self.settings.turn.intent_threshold)
        offers("I'm vegan.", (), embedder)
        return embedder

    def _load_starter(self, progress: Progress) -> Path:
        from assistant.library.starter import ensure_starter  # noqa: PLC0415 - starts the JVM

        return ensure_starter(self.settings, progress)

    def _load_llm(self, progress: Progress) -> LLM:
        from assistant.llm.load import load_or_fall_back  # noqa: PLC0415

        return load_or_fall_back(self.settings, progress, self._tell)

    def _tell(self, notice: str) -> None:
        self._notice = notice


def load_embedder(settings: Settings, progress: Progress) -> Embedder:
    """The Sentence-BERT model that the settings name, fetched if need be.

    Raises:
        ModelError: it can't be had or loaded.
    """
    from assistant.llm.catalogue import Catalogue  # noqa: PLC0415
    from assistant.llm.embedder import SentenceEmbedder  # noqa: PLC0415

    return SentenceEmbedder(Catalogue.load().resolve(settings.embedder.model, settings, progress))


def load_llm(settings: Settings, progress: Progress) -> LLM:
    """The language model that the settings name, fetched if need be.

    Raises:
        ModelError: it can't be had, trusted or loaded.
    """
    from assistant.llm.load import load  # noqa: PLC0415

    return load(settings, progress)
