"""The running language model: lends it to turns, and replaces it by another while turns go on."""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from threading import Event, Lock, Thread
from typing import Protocol, runtime_checkable

from assistant.errors import ModelError
from assistant.llm import load as loading
from assistant.llm.background_download import BackgroundDownload
from assistant.llm.catalogue import Catalogue
from assistant.llm.idle_speed_test import IdleSpeedTest
from assistant.llm.known_models import KnownModel, KnownModels
from assistant.llm.rating import Rating, better_model, model_ratings
from assistant.llm.reply_speed import ReplySpeed, TimedLLM
from assistant.llm.sources import hub_trouble
from assistant.llm.turn_queue import QueuedLLM, Resting, TurnQueue
from assistant.protocols import LLM, Engine, Progress
from assistant.settings import Settings
from assistant.types import Wait

_LOG = logging.getLogger(__name__)
# Seconds within which a stopped download has to end.
_PATIENCE = 10.0
LOADING = "Sequitur is still loading; try again in a moment."

Load = Callable[[Settings, Progress, loading.Tell], Engine]


@runtime_checkable
class _Salting(Protocol):
    """An engine whose server caches the beginnings of prompts."""

    def salted(self, salt: str) -> LLM:
        """The engine for prompts that share this cache only with prompts of the same salt."""
        ...


@runtime_checkable
class _Meeting(Protocol):
    """An engine whose server has to be asked what it can do before the first request."""

    def is_met(self, seconds: float) -> bool:
        """Wait for at most so many seconds; whether that has ended by then."""
        ...


@dataclass(frozen=True, slots=True)
class Change:
    """A model that is being loaded: the fraction in [0, 1] that is done, None if not known, or why loading failed."""

    known: KnownModel
    fraction: float | None = None
    error: str = ""

    @property
    def is_going_on(self) -> bool:
        """Whether it is being loaded."""
        return not self.error


@dataclass(eq=False, slots=True)
class Running:
    """The model that answers, its engine, and the number of `turns` that are using it."""

    known: KnownModel
    engine: Engine
    speed: ReplySpeed = field(default_factory=ReplySpeed)
    turns: int = 0
    replaced: bool = False

    @property
    def name(self) -> str:
        """The engine's name, which is stored with each reply."""
        return self.engine.name


class Models:
    """Owns the engine in use. Safe to use from several threads.

    Another model is loaded while the running one goes on answering. Turns that start afterwards use the new one, and
    the old one is unloaded once its last turn is over. If loading fails, nothing changes.
    """

    def __init__(self, settings: Settings, load: Load | None = None) -> None:
        """`load` loads engines; by default that is `load_by_any_engine`."""
        self.known = KnownModels(settings)
        self.fetching = BackgroundDownload(settings)
        self.line = TurnQueue(settings.llm.slots, self._rest)
        self._settings, self._load = settings, load or loading.load_by_any_engine
        self._running: Running | None = None
        self._chosen = self.known.chosen()
        self._change: Change | None = None
        self._lock, self._switch_ended = Lock(), Event()
        self._closed = False
        self._awaited_id = ""
        self._fetcher: Thread | None = None
        self._secret = secrets.token_bytes(16)
        self._speed_test = IdleSpeedTest(settings, self._is_idle)
        self._notice = ""
        self._offer: Rating | None = None

    @property
    def notice(self) -> str:
        """Why another model or engine runs than was asked for, or ""."""
        return self._notice

    @property
    def offer(self) -> Rating | None:
        """The model of the hub that is best for this computer, if a smaller one runs; else None.

        It is None until `measure` has found the speed of the running model, and if the hub can't be reached.
        """
        return self._offer

    @property
    def mark(self) -> str:
        """A text that changes whenever another model runs, is offered, fetched or loaded; it reveals nothing else.

        Progress doesn't change it.
        """
        running, change, download, offer = self._running, self._change, self.fetching.state, self._offer
        state = (
            running and (running.known.id, running.name, running.engine.backend),
            change and (change.known.id, change.error),
            (download.name, download.under_way, download.error),
            offer and offer.entry.name,
        )
        return str(hash(state))  # hashes of texts differ from process to process

    @property
    def running(self) -> Running | None:
        """The model that answers the next turn, None before one is loaded."""
        return self._running

    @property
    def change(self) -> Change | None:
        """The model that is being loaded, or whose loading failed; None after a success."""
        return self._change

    @property
    def is_changing(self) -> bool:
        """Whether another model is being fetched or loaded."""
        return bool(self._awaited_id) or bool(self._change and self._change.is_going_on)

    def open(self, model: KnownModel, progress: Progress) -> None:
        """Load the model to start with, or another one instead, for which `notice` then gives the reason.

        Raises:
            ModelError: none can be loaded.
        """
        engine = loading.load_or_fall_back(self.known.settings(model), progress, self._tell)
        self.take_up(self.known.answering(engine.name, model), engine)

    def take_up(self, model: KnownModel, engine: Engine) -> None:
        """Let this engine answer the next turns; the one before is unloaded once its last turn is over."""
        new_running = Running(model, engine)
        with self._lock:
            previous, self._running, self._change, self._offer = self._running, new_running, None, None
            idle_running = new_running if self._closed else _idle(previous)
        if idle_running:
            idle_running.engine.close()

    def switch(self, id_: str) -> None:
        """Begin to load a known model, which then answers the next turns, also after the next start of the program.

        A model of the catalogue that isn't on this disk is fetched first; `fetching` shows that, and can stop it.

        Raises:
            ModelError: there is no such model, or another one is being fetched or loaded.
        """
        model = self.known.find(id_)
        if self._is_missing(model):
            self._fetch(model)
        else:
            self._begin(model)

    def follow(self) -> None:
        """Begin to load the model that another process on this data folder has switched to since the last call, if any.

        A model that can't be loaded here is not tried again until the next switch.
        """
        with self._lock:
            chosen_id = self.known.chosen()
            if chosen_id == self._chosen or self._running is None or self.is_changing:
                return
            self._chosen = chosen_id
        with suppress(ModelError):  # it is not known any more
            model = self.known.find(chosen_id)
            if not self._is_missing(model):
                self._begin(model, remember=False)

    def _fetch(self, model: KnownModel) -> None:
        self._check_idle()
        if self._fetcher and not self.fetching.state.under_way:
            self._fetcher.join(_PATIENCE)  # one that was stopped comes to its end
        self.fetching.start(model.id)
        if not self._awaited_id:
            self._change, self._awaited_id = None, model.id
            self._fetcher = Thread(target=self._once_fetched, args=(model,), name="model to come", daemon=True)
            self._fetcher.start()

    def _begin(self, model: KnownModel, *, remember: bool = True) -> None:
        self._check_idle()
        with self._lock:
            if self._running and self._running.known == model:
                self._change = None
                self._switch_ended.set()
                return
            self._change, self._switch_ended = Change(model), Event()
        Thread(
            target=self._switch, args=(model, self._switch_ended, remember), name="model loader", daemon=True
        ).start()

    def _check_idle(self) -> None:
        change = self._change
        if change and change.is_going_on:
            raise ModelError(f"{change.known.title} is being loaded; wait until that is done.")

    def _is_missing(self, model: KnownModel) -> bool:
        entry = None if model.is_served else Catalogue.load().listed_entry(model.id)
        return entry is not None and not Catalogue.load().is_here(entry.name, self._settings)

    def _once_fetched(self, model: KnownModel) -> None:
        self.fetching.wait()
        state = self.fetching.state
        try:
            if state.name == model.id and state.error:
                self._failed(model, state.error)
            elif state.name == model.id and state.finished and not self._closed:
                self._begin(model)
        except ModelError as error:
            self._failed(model, str(error))
        finally:
            self._awaited_id = ""

    def loaded(self, seconds: float, id_: str = "") -> bool:
        """Wait for at most so many seconds; whether loading this model, or meeting the server of it, has ended by then.

        If none is named, the running one is meant.
        """
        if id_ and not self._switch_ended.wait(seconds):
            return False
        engine = self._running and self._running.engine
        return engine.is_met(seconds) if isinstance(engine, _Meeting) else True

    def waiting(self) -> Wait:
        """What is being loaded, or whose server is being met, and how many percent of it."""
        change = self._change if self._change and self._change.is_going_on else None
        if not change or change.fraction is None:
            model = change.known if change else self._running and self._running.known
            return Wait("loading", model.title if model else "")
        return Wait("loading", change.known.title, int(100 * change.fraction), 100)

    @contextmanager
    def lent(self, user: str, id_: str = "") -> Iterator[QueuedLLM]:
        """The engine for a turn of this user, which keeps it to its end; `id_` names the model that is required.

        At most as many turns as there are slots use it at a time; others wait in `line` at their first request.

        Raises:
            ModelError: no model is loaded, or not the required one.
        """
        self._speed_test.stop()
        running = self._borrowed(id_)
        try:
            engine: LLM = running.engine
            if isinstance(engine, _Salting):
                engine = engine.salted(self._salt(user))
            with closing(QueuedLLM(TimedLLM(engine, running.speed), self.line, user)) as queued_llm:
                yield queued_llm
        finally:
            self._give_back(running)

    def _rest(self, seconds: float) -> None:
        """Let the engine rest, if it can."""
        running = self._running
        if running and isinstance(running.engine, Resting):
            running.engine.rest(seconds)

    def measure(self) -> None:
        """Measure the speed of the running model in the background, unless it is stored already, or a server runs it.

        Questions come first: it is measured when nobody is being answered. Afterwards `offer` may name a better model.
        """
        running = self._running
        if running and not running.known.is_served:
            settings = self.known.settings(running.known)
            self._speed_test.start(running.engine, settings, lambda: self._rate(running))

    def _rate(self, running: Running) -> None:
        """Set `offer` to a better model that would have to be fetched, if there is one."""
        best = better_model(model_ratings(self._settings, running.name), running.name)
        if best and not best.here and self._settings.hub and not hub_trouble():
            with self._lock:
                self._offer = best if self._running is running else self._offer

    def _is_idle(self, engine: Engine) -> bool | None:
        """Whether no turn uses this engine; None once another one has replaced it, or everything is closed."""
        with self._lock:
            if self._closed or self._running is None or self._running.engine is not engine:
                return None
            return not self._running.turns

    def close(self) -> None:
        """Unload the running model; calls under way fail. A model that is being loaded is unloaded once it is ready.

        The part of a model that has been fetched is kept for the next time.
        """
        self.fetching.stop()
        self._speed_test.stop()
        with self._lock:
            self._closed, running = True, self._running
        if running:
            running.engine.close()

    def _switch(self, model: KnownModel, settled: Event, remember: bool) -> None:
        notices = list[str]()
        try:
            engine = self._load(self.known.settings(model), self._progress, notices.append)
        except ModelError as error:
            self._failed(model, str(error))
        except Exception as error:  # noqa: BLE001 - the running model goes on, and the log has the details
            _LOG.exception("loading %s failed", model.id)
            self._failed(model, f"{model.title} could not be loaded ({error}); the log has the details.")
        else:
            self._notice = " ".join(notices)
            self.take_up(model, engine)
            if remember:
                self._remember(model)
            self.measure()
        finally:
            settled.set()

    def _remember(self, model: KnownModel) -> None:
        """Let this model also answer after the next start, and in other processes."""
        with suppress(ModelError):  # it answers here all the same
            self.known.choose(model.id)
            with self._lock:
                self._chosen = model.id

    def _borrowed(self, id_: str) -> Running:
        with self._lock:
            running = self._running
            if running is None:
                raise ModelError(LOADING)
            if id_ and running.known.id != id_:
                raise ModelError(self._absence_reason(id_))
            running.turns += 1
            return running

    def _give_back(self, running: Running) -> None:
        with self._lock:
            running.turns -= 1
            is_unused = running.replaced and not running.turns
        if is_unused:
            running.engine.close()

    def _absence_reason(self, id_: str) -> str:
        change = self._change
        if change and change.known.id == id_ and change.error:
            return change.error
        return "The model that was to answer is not in use any more; choose it again."

    def _failed(self, model: KnownModel, reason: str) -> None:
        with self._lock:
            continuation = f" {self._running.name} goes on answering." if self._running else ""
            self._change = Change(model, error=f"{reason}{continuation}")

    def _progress(self, done: int, total: int) -> None:
        with self._lock:
            if self._change and total:
                self._change = replace(self._change, fraction=done / total)

    def _salt(self, user: str) -> str:
        """A text that separates this user's prompts from others' without naming the user; it changes at each start."""
        return hashlib.blake2b(user.encode(), key=self._secret, digest_size=16).hexdigest()

    def _tell(self, notice: str) -> None:
        self._notice = notice


def _idle(previous: Running | None) -> Running | None:
    """The replaced model, if no turn uses it any more."""
    if previous is None:
        return None
    previous.replaced = True
    return None if previous.turns else previous
