"""Answers being written, apart from the tabs that watch them.

A run goes on when its tab is closed or reloaded; any tab of the same user can come back and watch it to its end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import SimpleQueue
from threading import Event, Lock, Thread
from time import monotonic, sleep

from assistant.chat import INTERNAL_ERROR
from assistant.errors import BusyError, EndingError, SequiturError, StoreError
from assistant.llm.memory_trim import trim_memory
from assistant.store.conversations import is_temporary
from assistant.store.shared import BUSY, Leases
from assistant.types import Turn, Wait

PAUSE = 0.1  # seconds between updates of a page
SETTLE = 5 * PAUSE  # after the last snapshot of an answer, until all who watch it have it

Answering = Callable[[Event], Iterator[Turn]]
PeopleAhead = Callable[[Event], int | None]
_LOG = logging.getLogger(__name__)
MAX_RUNS = 200  # answers that are written, or wait for the model, for all users; each holds a thread
MAX_UNWATCHED_SECONDS = 60.0  # seconds for which nobody watched, after which an answer stops
SWEEP_SECONDS = 5.0  # seconds between looks at which these are
CROWDED = "So many answers are being written at this moment that no other can begin; ask again in a minute."
ENDING = "Sequitur is being ended or started anew; ask again in a minute."


@dataclass(frozen=True, slots=True)
class Place:
    """Where on the page a run is shown: at the end, or where turn `of` stands, which it answers again.

    With two strategies to compare it is shown beneath that turn's reply, otherwise instead of it.
    """

    of: str = ""
    compared: tuple[str, ...] = ()


END = Place()


class ThreadPool:
    """Threads that are kept for what comes next, as many as there ever was to do at once (of turns, `MAX_RUNS`).

    What libraries keep for each thread that calls them (arenas of the C library, threads of their own) is then as much
    as for those, however many turns there are. They end with the process, whatever they are at.
    """

    def __init__(self) -> None:
        self._tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock, self._idle = Lock(), 0

    def run(self, act: Callable[[], None]) -> None:
        """Call `act`, which raises nothing, in one of them."""
        with self._lock:
            free = self._idle > 0
            self._idle -= free
        self._tasks.put(act)
        if not free:
            Thread(target=self._serve, name="turns", daemon=True).start()

    def _serve(self) -> None:
        while True:
            self._tasks.get()()
            with self._lock:
                self._idle += 1


class Run:
    """An answer, or two to compare, being written in a thread.

    `turns` holds the newest snapshot of each turn by its id, in the order in which they were begun.
    """

    def __init__(
        self, turns: Iterator[Turn], stop: Event, place: Place = END, ahead: PeopleAhead = lambda _: None
    ) -> None:
        first_turn = next(turns)
        self.turns = {first_turn.id: first_turn}
        self.place = place
        self.stop = stop
        self._turns, self._people_ahead = turns, ahead
        self._last_watched = monotonic()
        self._over = Event()

    @property
    def turn(self) -> Turn:
        """The newest snapshot of the turn that is being written, or was written last.

        While it waits for the model it says how many people are before it, which changes without it.
        """
        turn, people = next(reversed(self.turns.values())), self._people_ahead(self.stop)
        return turn if people is None else replace(turn, wait=Wait("line", total=people))

    @property
    def over(self) -> bool:
        """Whether `turn` is the last snapshot, saved and done with."""
        return self._over.is_set()

    def start(self, threads: ThreadPool, after: Callable[[], None]) -> None:
        """Go on in one of the threads; `after` is called at the end, whatever happens."""
        self._after = after
        threads.run(self._consume)

    def mark_watched(self) -> None:
        """Note that somebody watches it now."""
        self._last_watched = monotonic()

    @property
    def unwatched_seconds(self) -> float:
        """For how many seconds nobody has watched it."""
        return monotonic() - self._last_watched

    def join(self, seconds: float | None = None) -> None:
        """Wait for the end, for so many seconds at most."""
        self._over.wait(seconds)

    def _consume(self) -> None:
        try:
            for turn in self._turns:
                self._show(turn)
        except SequiturError as error:
            self._show(replace(self.turn, status="failed", step="", error=str(error)))
        except Exception:  # noqa: BLE001 - the page must be told, and the log has the details
            _LOG.exception("turn %s failed", self.turn.id)
            self._show(replace(self.turn, status="failed", step="", error=INTERNAL_ERROR))
        finally:
            trim_memory()
            try:
                self._after()
            finally:
                self._over.set()

    def _show(self, turn: Turn) -> None:
        # A new mapping: whoever reads the old one meanwhile is not disturbed.
        self.turns = {**self.turns, turn.id: turn}


class Runs:
    """All answers being written, at most one a conversation, and so many a user. Safe to use from several threads.

    One that nobody has watched for a minute stops, as if its user had stopped it: the model is there for others.
    """

    def __init__(
        self, ahead: PeopleAhead = lambda _: None, shared: Leases | None = None, max_per_user: int = 0
    ) -> None:
        """`ahead` tells of a turn that waits for the model, by what stops it, how many people are before it.

        `shared` tells of the answers that other processes write on the same database, and tells them of these.
        `max_per_user` are written for a user at a time, at all processes together; 0 = as many as they like.
        """
        self._people_ahead, self._shared, self._max_per_user = ahead, shared, max_per_user
        self._runs: dict[tuple[str, str], Run | None] = {}  # None: one that is about to begin
        self._lock, self._threads = Lock(), ThreadPool()
        self._closed, self._ending = Event(), Event()
        self._sweeper: Thread | None = None
        self._outdated = False
        if shared:
            self._watch()

    def start(self, user: str, conversation: str, answering: Answering, place: Place = END) -> Run:
        """Begin an answer and wait for its first snapshot.

        Raises:
            BusyError: one is being written in this conversation already, or as many as may be for this user or for all.
            EndingError: the program is ending.
            StoreError: a newer version of the program uses the database by now.
            SequiturError: the message can't be answered as it stands.
        """
        self._reserve(user, conversation)
        stop = Event()
        try:
            self._announce(user, conversation)
            run = Run(answering(stop), stop, place, self._people_ahead)
        except BaseException:
            self._forget(user, conversation)
            raise
        with self._lock:
            self._runs[user, conversation] = run
        run.start(self._threads, after=lambda: self._forget(user, conversation))
        return run

    def _reserve(self, user: str, conversation: str) -> None:
        with self._lock:
            if self._ending.is_set():
                raise EndingError(ENDING)
            if (user, conversation) in self._runs:
                raise BusyError(BUSY)
            self._check_count(1 + sum(owner == user for owner, _ in self._runs))
            if len(self._runs) >= MAX_RUNS:
                raise BusyError(CROWDED)
            self._runs[user, conversation] = None
            if self._sweeper is None:
                self._watch()

    def _watch(self) -> None:
        self._sweeper = Thread(target=self._sweep, name="unwatched", daemon=True)
        self._sweeper.start()

    def _announce(self, user: str, conversation: str) -> None:
        """Let other processes know. What is temporary is kept nowhere, and this process alone knows of it."""
        if self._shared and is_temporary(conversation):
            self._shared.check()
        elif self._shared:
            self._check_count(self._shared.begin(user, conversation))

    def _check_count(self, count: int) -> None:
        if 0 < self._max_per_user < count:
            subject = "1 answer is" if self._max_per_user == 1 else f"{self._max_per_user:,} answers are"
            raise BusyError(f"{subject} being written for you already; wait for one of them or stop it first.")

    @property
    def count(self) -> int:
        """How many answers are being written, or are about to be, for all users."""
        with self._lock:
            return len(self._runs)

    def of(self, user: str, conversation: str) -> Run | None:
        """What is being written in a conversation."""
        with self._lock:
            return self._runs.get((user, conversation))

    def busy(self, user: str, conversation: str) -> bool:
        """Whether something is being written in a conversation, or is about to be, by whichever process."""
        with self._lock:
            is_here = (user, conversation) in self._runs
        return is_here or bool(self._shared and self._shared.is_elsewhere(conversation))

    def stop(self, user: str, conversation: str) -> None:
        """Stop what is being written in a conversation; what there is of it is kept."""
        run = self.of(user, conversation)
        if run:
            run.stop.set()
        elif self._shared:
            self._shared.stop(user, conversation)

    def end(self, user: str, seconds: float = 5.0) -> None:
        """Stop all that is being written for a user and wait until it is saved."""
        with self._lock:
            runs = [run for (owner, _), run in self._runs.items() if run and owner == user]
        _end(runs, seconds)

    @property
    def ending(self) -> bool:
        """Whether no answer can begin any more."""
        return self._ending.is_set()

    @property
    def outdated(self) -> bool:
        """Whether a newer version of the program uses the database by now, as of `SWEEP_SECONDS` ago at most."""
        return self._outdated

    def drain(self, seconds: float) -> bool:
        """Begin nothing any more, and wait so long for what is being written; whether all of it came to its end."""
        with self._lock:
            self._ending.set()
            had_runs = bool(self._runs)
        deadline = monotonic() + seconds
        while self._runs and monotonic() < deadline:
            sleep(PAUSE)
        if had_runs:
            sleep(SETTLE)
        return not self._runs

    def close(self, seconds: float = 5.0) -> None:
        """Stop everything and wait until it is saved."""
        self._closed.set()
        with self._lock:
            runs = [run for run in self._runs.values() if run]
        _end(runs, seconds)

    def _sweep(self) -> None:
        while not self._closed.wait(SWEEP_SECONDS):
            with self._lock:
                runs = {key: run for key, run in self._runs.items() if run}
            stop_requests = self._stop_requests() if runs else set()
            for key, run in runs.items():
                if run.unwatched_seconds > MAX_UNWATCHED_SECONDS or key in stop_requests:
                    run.stop.set()
            self._look_for_newer()

    def _look_for_newer(self) -> None:
        if self._shared:
            with suppress(StoreError):  # whatever needs the database tells of it
                self._outdated = self._shared.outdated

    def _stop_requests(self) -> set[tuple[str, str]]:
        """The users and conversations in which other processes were asked to stop; they hear that this one is alive."""
        try:
            return self._shared.heartbeat() if self._shared else set()
        except StoreError:
            _LOG.warning("other processes can't hear of this one", exc_info=True)
            return set()

    def _forget(self, user: str, conversation: str) -> None:
        try:
            if self._shared and not is_temporary(conversation):
                with suppress(StoreError):  # others forget it after a while
                    self._shared.end(user, conversation)
        finally:
            with self._lock:
                self._runs.pop((user, conversation), None)


def _end(runs: Sequence[Run], seconds: float) -> None:
    for run in runs:
        run.stop.set()
    for run in runs:
        run.join(seconds)


async def watch(run: Run, is_heard: Callable[[], bool] = lambda: True) -> AsyncIterator[Turn]:
    """The snapshots of a run, at most ten a second, until it is over; the last one always comes.

    The run counts as watched while `is_heard` says that somebody hears of them.
    """
    last_turn = None
    while True:
        if is_heard():
            run.mark_watched()
        over, turn = run.over, run.turn
        if turn != last_turn:
            last_turn = turn
            yield turn
        if over:
            return
        await asyncio.sleep(PAUSE)
