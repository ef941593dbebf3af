"""The language model in use: what runs now, what is being loaded to take its place, and who still has it in hand."""

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
from assistant.llm.rating import Rating, offered, rated
from assistant.llm.reply_speed import ReplySpeed, TimedLLM
from assistant.llm.sources import hub_trouble
from assistant.llm.turn_queue import QueuedLLM, TurnQueue
from assistant.protocols import LLM, Engine, Progress
from assistant.settings import Settings
from assistant.types import Wait

_LOG = logging.getLogger(__name__)
# Seconds that a fetch which was stopped may take to end.
_PATIENCE = 10.0
LOADING = "Sequitur is still loading; try again in a moment."

Load = Callable[[Settings, Progress, loading.Tell], Engine]


@runtime_checkable
class _Salting(Protocol):
    """An engine whose server keeps what prompts begin with."""

    def salted(self, salt: str) -> LLM:
        """The engine for prompts that share it with those of an equal salt alone."""
        ...


@dataclass(frozen=True, slots=True)
class Change:
    """A model that is being loaded, how far that is in [0, 1] where it is known, or why it can't be used."""

    known: KnownModel
    fraction: float | None = None
    error: str = ""

    @property
    def is_going_on(self) -> bool:
        """Whether it is being loaded."""
        return not self.error


@dataclass(eq=False, slots=True)
class Running:
    """A model that answers, and its engine; `turns` have it in hand."""

    known: KnownModel
    engine: Engine
    speed: ReplySpeed = field(default_factory=ReplySpeed)
    turns: int = 0
    replaced: bool = False

    @property
    def name(self) -> str:
        """What the engine calls itself, which is kept with each reply."""
        return self.engine.name


class Models:
    """The one holder of the engine in use. Safe to use from several threads.

    Another model is loaded beside the one that runs, which answers meanwhile; the next turn has the new one, and the
    old one is unloaded when the last turn that has it in hand is over. One that can't be loaded changes nothing.
    """

    def __init__(self, settings: Settings, load: Load | None = None) -> None:
        """`load` makes engines, by default as `load_by_any_engine` does."""
        self.known = KnownModels(settings)
        self.fetching = BackgroundDownload(settings)
        self.line = TurnQueue(settings.llm.slots)
        self._settings, self._load = settings, load or loading.load_by_any_engine
        self._running: Running | None = None
        self._chosen = self.known.chosen()
        self._change: Change | None = None
        self._lock, self._settled = Lock(), Event()
        self._closed = False
        self._awaited = ""
        self._fetcher: Thread | None = None
        self._secret = secrets.token_bytes(16)
        self._gauge = IdleSpeedTest(settings, self._is_idle)
        self._notice = ""
        self._offer: Rating | None = None

    @property
    def notice(self) -> str:
        """Why another model or engine runs than was asked for, or ""."""
        return self._notice

    @property
    def offer(self) -> Rating | None:
        """A model of the hub that would be the best for this computer, beside a smaller one that runs.

        None before the speed of what runs is known, which `measure` finds out, and where the hub can't be reached.
        """
        return self._offer

    @property
    def mark(self) -> str:
        """Another text as soon as something else runs, is offered, fetched or loaded; it tells nothing of what.

        How far something is makes no difference.
        """
        running, change, fetched, offer = self._running, self._change, self.fetching.state, self._offer
        told = (
            running and (running.known.id, running.name, running.engine.backend),
            change and (change.known.id, change.error),
            (fetched.name, fetched.under_way, fetched.error),
            offer and offer.entry.name,
        )
        return str(hash(told))  # texts are hashed otherwise in each process

    @property
    def running(self) -> Running | None:
        """What answers the next turn, None before anything is loaded."""
        return self._running

    @property
    def change(self) -> Change | None:
        """What is being loaded to take its place, or could not be; None where the last one was."""
        return self._change

    @property
    def is_changing(self) -> bool:
        """Whether another model is being fetched or loaded to take its place."""
        return bool(self._awaited) or bool(self._change and self._change.is_going_on)

    def open(self, starting: KnownModel, progress: Progress) -> None:
        """Load the model to start with, or what runs instead of it, which `notice` then tells of.

        Raises:
            ModelError: none can be had.
        """
        engine = loading.load_or_fall_back(self.known.settings(starting), progress, self._tell)
        self.take_up(self.known.answering(engine.name, starting), engine)

    def take_up(self, known: KnownModel, engine: Engine) -> None:
        """Let this engine answer the next turns; what ran before is unloaded once no turn has it in hand."""
        fresh = Running(known, engine)
        with self._lock:
            old, self._running, self._change, self._offer = self._running, fresh, None, None
            ends = fresh if self._closed else _idle(old)
        if ends:
            ends.engine.close()

    def switch(self, id_: str) -> None:
        """Begin to load a known model, which the next turns are then answered by, also after the next start.

        One of the catalogue that isn't here is fetched first, as `fetching` tells, and may be stopped there.

        Raises:
            ModelError: there is no such model, or another one is being fetched or loaded.
        """
        known = self.known.find(id_)
        if self._is_missing(known):
            self._fetch(known)
        else:
            self._begin(known)

    def follow(self) -> None:
        """Begin to load what another process on this data folder has switched to since the last look, if anything.

        One that can't be loaded here is not tried again before the next switch.
        """
        with self._lock:
            chosen = self.known.chosen()
            if chosen == self._chosen or self._running is None or self.is_changing:
                return
            self._chosen = chosen
        with suppress(ModelError):  # it is not known any more
            known = self.known.find(chosen)
            if not self._is_missing(known):
                self._begin(known, keep=False)

    def _fetch(self, known: KnownModel) -> None:
        self._check_idle()
        if self._fetcher and not self.fetching.state.under_way:
            self._fetcher.join(_PATIENCE)  # one that was stopped comes to its end
        self.fetching.start(known.id)
        if not self._awaited:
            self._change, self._awaited = None, known.id
            self._fetcher = Thread(target=self._once_fetched, args=(known,), name="model to come", daemon=True)
            self._fetcher.start()

    def _begin(self, known: KnownModel, *, keep: bool = True) -> None:
        self._check_idle()
        with self._lock:
            if self._running and self._running.known == known:
                self._change = None
                self._settled.set()
                return
            self._change, self._settled = Change(known), Event()
        Thread(target=self._switch, args=(known, self._settled, keep), name="model loader", daemon=True).start()

    def _check_idle(self) -> None:
        change = self._change
        if change and change.is_going_on:
            raise ModelError(f"{change.known.title} is being loaded; wait until that is done.")

    def _is_missing(self, known: KnownModel) -> bool:
        listed = None if known.is_served else Catalogue.load().known(known.id)
        return listed is not None and not Catalogue.load().is_here(listed.name, self._settings)

    def _once_fetched(self, known: KnownModel) -> None:
        self.fetching.wait()
        state = self.fetching.state
        try:
            if state.name == known.id and state.error:
                self._failed(known, state.error)
            elif state.name == known.id and state.finished and not self._closed:
                self._begin(known)
        except ModelError as error:
            self._failed(known, str(error))
        finally:
            self._awaited = ""

    def loaded(self, seconds: float, id_: str = "") -> bool:
        """Whether this model is there, or can't be had, within so many seconds; any model where none is named."""
        return not id_ or self._settled.wait(seconds)

    def waiting(self) -> Wait:
        """What is being loaded, and how far that is in percent."""
        change = self._change
        if not change or change.fraction is None:
            return Wait("loading", change.known.title if change else "")
        return Wait("loading", change.known.title, int(100 * change.fraction), 100)

    @contextmanager
    def lent(self, user: str, id_: str = "") -> Iterator[LLM]:
        """The engine for a turn of this user, which keeps it to its end; `id_` names the model that it must be.

        As many turns as there are slots use it at a time; the first request of any other waits in `line`.

        Raises:
            ModelError: none is loaded, or it is another one.
        """
        self._gauge.stop()
        running = self._taken(id_)
        try:
            engine: LLM = running.engine
            if isinstance(engine, _Salting):
                engine = engine.salted(self._salt(user))
            with closing(QueuedLLM(TimedLLM(engine, running.speed), self.line, user)) as seated:
                yield seated
        finally:
            self._returned(running)

    def measure(self) -> None:
        """Measure in the background how fast the model is that runs, unless that is kept already, or a server runs it.

        Whoever asks a question comes first: it is measured once nobody is being answered. What is then to be offered
        beside it stands in `offer`.
        """
        running = self._running
        if running and not running.known.is_served:
            settings = self.known.settings(running.known)
            self._gauge.start(running.engine, settings, lambda: self._rate(running))

    def _rate(self, running: Running) -> None:
        """Find what is to be offered beside the model that runs: one that would have to be fetched."""
        best = offered(rated(self._settings, running.name), running.name)
        if best and not best.here and self._settings.hub and not hub_trouble():
            with self._lock:
                self._offer = best if self._running is running else self._offer

    def _is_idle(self, engine: Engine) -> bool | None:
        """Whether no turn has this engine in hand; None once another one has taken its place, or all is over."""
        with self._lock:
            if self._closed or self._running is None or self._running.engine is not engine:
                return None
            return not self._running.turns

    def close(self) -> None:
        """Unload what runs; calls under way fail. What is being loaded is unloaded as soon as it is there.

        What has come of a model that is being fetched is kept for the next time.
        """
        self.fetching.stop()
        self._gauge.stop()
        with self._lock:
            self._closed, running = True, self._running
        if running:
            running.engine.close()

    def _switch(self, known: KnownModel, settled: Event, keep: bool) -> None:
        notices = list[str]()
        try:
            engine = self._load(self.known.settings(known), self._progress, notices.append)
        except ModelError as error:
            self._failed(known, str(error))
        except Exception as error:  # noqa: BLE001 - what runs goes on, and the log has the details
            _LOG.exception("loading %s failed", known.id)
            self._failed(known, f"{known.title} could not be loaded ({error}); the log has the details.")
        else:
            self._notice = " ".join(notices)
            self.take_up(known, engine)
            if keep:
                self._keep(known)
            self.measure()
        finally:
            settled.set()

    def _keep(self, known: KnownModel) -> None:
        """Let it answer after the next start, too, and at other processes."""
        with suppress(ModelError):  # it answers here all the same
            self.known.choose(known.id)
            with self._lock:
                self._chosen = known.id

    def _taken(self, id_: str) -> Running:
        with self._lock:
            running = self._running
            if running is None:
                raise ModelError(LOADING)
            if id_ and running.known.id != id_:
                raise ModelError(self._why_not(id_))
            running.turns += 1
            return running

    def _returned(self, running: Running) -> None:
        with self._lock:
            running.turns -= 1
            ends = running.replaced and not running.turns
        if ends:
            running.engine.close()

    def _why_not(self, id_: str) -> str:
        change = self._change
        if change and change.known.id == id_ and change.error:
            return change.error
        return "The model that was to answer is not in use any more; choose it again."

    def _failed(self, known: KnownModel, why: str) -> None:
        with self._lock:
            goes_on = f" {self._running.name} goes on answering." if self._running else ""
            self._change = Change(known, error=f"{why}{goes_on}")

    def _progress(self, done: int, total: int) -> None:
        with self._lock:
            if self._change and total:
                self._change = replace(self._change, fraction=done / total)

    def _salt(self, user: str) -> str:
        """What tells this user's prompts from others', and nobody's name; another one after the next start."""
        return hashlib.blake2b(user.encode(), key=self._secret, digest_size=16).hexdigest()

    def _tell(self, notice: str) -> None:
        self._notice = notice


def _idle(old: Running | None) -> Running | None:
    """What was replaced, where no turn has it in hand any more."""
    if old is None:
        return None
    old.replaced = True
    return None if old.turns else old
