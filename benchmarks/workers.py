"""`bench workers`: people at one address, behind which several pages serve them from one PostgreSQL.

One page after the other is killed meanwhile. Everything is the page's own, from HTTP to the database; the words come
from a script that takes a set time for each, so that what is measured is what becomes of clicks and not how a model
writes.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Annotated

import httpx
import typer

from assistant.commands.experiment import print_summary
from assistant.errors import SettingsError
from assistant.experiment.options import AsJson
from assistant.settings import Settings
from assistant.store.database import is_postgres
from benchmarks import load
from benchmarks.clicks import Clicks, Ledger, Snapshot, Stores, find_losses, settle
from benchmarks.light import light_settings
from benchmarks.load import address, logged_in_visitor, login, make_logins, percentile
from benchmarks.proxy import Worker
from benchmarks.proxy import workers as behind_one_address
from benchmarks.visitor import RefusedError, Visitor

PAUSE = 0.05  # seconds that the scripted model takes for a word
SEATS = 32  # replies that the scripted model writes side by side for each worker: it is not what is full
PATIENCE = 240.0  # seconds for which a person tries to come back: two workers may be starting
SPAN = 2.0  # seconds within which a kill falls then
BREATH = 0.5  # seconds after which nothing of a dead worker is on its way to the database any more
LIMIT = 10.0  # seconds within which 19 of 20 replies have to be there for people to count as held
SECONDS, THINK = 20.0, 5.0  # how long they ask, and the mean pause after a reply
LEVELS = (4, 8, 16, 32, 64, 128)  # people that are tried at once


@dataclass
class KillResults:
    """What became of it all.

    `acknowledged` are clicks by kind, `interrupted` what a death left of those that it fell into, `logins_again` people
    who had to log in again, `waits` the seconds from an interruption to the next click that was acknowledged.
    """

    killed: int = 0
    acknowledged: Counter[str] = field(default_factory=Counter)
    interrupted: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    mixed: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    stuck: list[str] = field(default_factory=list)
    logins_again: int = 0
    waits: list[float] = field(default_factory=list)


class Person(Thread):
    """Clicks, and goes on wherever the proxy leads when the page is gone."""

    def __init__(self, n: int, url: str, settings: Settings, count: int, results: KillResults) -> None:
        super().__init__(daemon=True)
        self._n, self._count, self._results = n, count, results
        self._stores, self.ledger = Stores(settings, login(n)[0]), Ledger(prefix=f"p{n}x")
        self._visitor = Visitor(url, address(n))
        self._clicks = Clicks(self._visitor, self._stores, self.ledger, random.Random(n))  # noqa: S311
        self._interrupted_at = 0.0

    def run(self) -> None:
        """Until so many clicks are done, or there is no coming back."""
        try:
            come_back(self._visitor, *login(self._n))
            while self.acknowledged_count < self._count:
                self._click()
        except (RefusedError, httpx.HTTPError, TimeoutError) as error:
            self._results.stuck.append(f"{self.ledger.prefix}: {error!r}")
        self._results.acknowledged += self._clicks.acknowledged
        self._results.mixed += self._clicks.mix_ups

    @property
    def acknowledged_count(self) -> int:
        """How many clicks were acknowledged."""
        return self._clicks.acknowledged.total()

    def snapshot(self) -> Snapshot:
        """What is kept of the person now."""
        return self._stores.snapshot()

    def _click(self) -> None:
        try:
            self._clicks.click()
        except httpx.HTTPError:
            self._interrupted_at = self._interrupted_at or time.perf_counter()
            self._go_on()
        except RefusedError as error:
            self._results.refused[f"{self._clicks.under_way}: {error}"] += 1
            self._go_on()
        else:
            if self._interrupted_at:
                self._results.waits.append(time.perf_counter() - self._interrupted_at)
                self._interrupted_at = 0.0

    def _go_on(self) -> None:
        """Open the page anew, and see what became of the click."""
        self._results.logins_again += come_back(self._visitor, *login(self._n))
        time.sleep(BREATH)
        stored = self.snapshot()
        statuses = [stored.turns[mark][0].turn.status for mark in self.ledger.doubtful & stored.turns.keys()]
        self._results.interrupted[f"{self._clicks.under_way}, {statuses[0] if statuses else 'no turn'}"] += 1
        settle(self.ledger, stored, late=True)


def come_back(visitor: Visitor, name: str, password: str) -> bool:
    """Load the page anew, as a browser does; whether that took another log-in.

    Raises:
        TimeoutError: nobody answers.
    """
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            if visitor.reload():
                return False
            visitor.log_in(name, password)
        except (httpx.HTTPError, RefusedError):
            time.sleep(BREATH)
        else:
            return True
    raise TimeoutError("Nobody answers any more.")


def measure_kills(
    database: str, folder: Path, count: int, people: int, clicks: int, kills: int, clock: float = 0.0
) -> KillResults:
    """Let people click at so many workers, of which one after the other is killed and started again.

    The clock of the last one is `clock` seconds ahead.

    Raises:
        SequiturError: the database can't be used, or HAProxy is not there.
    """
    results, settings_at = KillResults(), _settings_at(database, folder)
    if make_logins(settings_at(0).database_url, people) < people:
        raise SettingsError("This database is not empty; name another one, which you then may delete.")
    with behind_one_address(count, settings_at, PAUSE, clock) as (url, running_workers):
        persons = [Person(n, url, settings_at(0), clicks, results) for n in range(people)]
        for person in persons:
            person.start()
        _kill_in_turn(running_workers, persons, kills, results)
        for person in persons:
            person.join()
        for person in persons:
            results.lost += find_losses(person.ledger, person.snapshot())
    return results


def _kill_in_turn(
    running_workers: Sequence[Worker], persons: Sequence[Person], kills: int, results: KillResults
) -> None:
    """Each time after half of the people have gone on, at a random moment of the next click."""
    rng, done_count = random.Random(kills), 0  # noqa: S311
    for n in range(kills):
        deadline = time.monotonic() + PATIENCE
        while (
            sum(person.acknowledged_count for person in persons) < done_count + len(persons) / 2
            and time.monotonic() < deadline
        ):
            time.sleep(BREATH / 10)
        time.sleep(rng.uniform(0, SPAN))
        if not any(person.is_alive() for person in persons):
            return
        done_count = sum(person.acknowledged_count for person in persons)
        running_workers[n % len(running_workers)].kill()
        results.killed += 1
        running_workers[n % len(running_workers)].start()


def _settings_at(database: str, folder: Path) -> partial[Settings]:
    return partial(_settings, database, folder)


def _settings(database: str, folder: Path, port: int) -> Settings:
    return light_settings(folder, SEATS, database, port)


# --- people at once -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Level:
    """So many people at so many workers: replies a second, the seconds that a reply took, and what went wrong."""

    workers: int
    people: int
    replies_a_second: float
    median: float
    p95: float
    errors: tuple[str, ...]
    mixed: tuple[str, ...]

    @property
    def held(self) -> bool:
        """Whether 19 of 20 replies were there in time, and all of them right."""
        return 0 <= self.p95 <= LIMIT and not self.errors and not self.mixed


def levels(database: str, folder: Path, counts: Sequence[int]) -> list[Level]:
    """For each number of workers more and more people at once, until they are not held any more."""
    settings_at, measured_levels = _settings_at(database, folder), list[Level]()
    visitors = list[Visitor]()
    for count in counts:
        with behind_one_address(count, settings_at, PAUSE) as (url, _):
            for people in LEVELS:
                make_logins(settings_at(0).database_url, people)
                _enter(visitors, url, people)
                measured_levels.append(_level(count, visitors[:people]))
                if not measured_levels[-1].held:
                    break
    return measured_levels


def _enter(visitors: list[Visitor], url: str, people: int) -> None:
    """Bring so many people to an address; who has logged in before needs not do so again, at whatever worker."""
    for visitor in visitors:
        visitor.move(url)
    visitors.extend(logged_in_visitor(url, n) for n in range(len(visitors), people))


def _level(count: int, visitors: Sequence[Visitor]) -> Level:
    results, stop = load.LoadResults(), Event()
    persons = [load.Person(n, visitor, stop, results, THINK) for n, visitor in enumerate(visitors)]
    start = time.perf_counter()
    for person in persons:
        person.start()
    stop.wait(SECONDS)
    stop.set()
    for person in persons:
        person.join()
    reply_rate = len(results.waits) / (time.perf_counter() - start)
    waits = results.waits
    return Level(
        count,
        len(persons),
        reply_rate,
        percentile(waits, 50),
        percentile(waits, 95),
        tuple(results.errors),
        tuple(results.mix_ups),
    )


# --- the command --------------------------------------------------------------------------------------------------


def workers(  # noqa: PLR0913 - one parameter an option
    database: Annotated[str, typer.Option(help="Address of an empty PostgreSQL, as in the setting `database`.")],
    count: Annotated[int, typer.Option("--workers", min=1, help="Workers of which one after the other is killed.")] = 2,
    people: Annotated[int, typer.Option(min=1, help="How many click at once.")] = 8,
    clicks: Annotated[int, typer.Option(min=0, help="Clicks of each that have to be acknowledged.")] = 20,
    kills: Annotated[int, typer.Option(min=0, help="How often a worker is killed.")] = 10,
    clock: Annotated[float, typer.Option(help="Seconds by which the clock of the last of them is ahead.")] = 0.0,
    held: Annotated[
        list[int] | None, typer.Option(help="Also tell how many people at once so many workers hold; repeatable.")
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Kill workers behind a proxy while people click, and count what is lost; tell how many people workers hold."""
    if not is_postgres(database):
        raise SettingsError("Several workers need a PostgreSQL; name one with --database postgresql://…")
    with TemporaryDirectory() as folder:
        results = measure_kills(database, Path(folder), count, people, clicks, kills, clock)
        measured_levels = levels(database, Path(folder), held or ())
    level_rows = [{**asdict(level), "held": level.held} for level in measured_levels]
    summary = {**vars(results), "waits": len(results.waits), "longest wait": max(results.waits, default=0.0)}
    print_summary({"killed": vars(results), "held": level_rows}, as_json, {"killed": summary, "held": level_rows})
