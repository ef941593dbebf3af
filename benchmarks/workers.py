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

from assistant.commands.experiment import show
from assistant.errors import SettingsError
from assistant.experiment.options import AsJson
from assistant.settings import Settings
from assistant.store.database import is_postgres
from benchmarks import load
from benchmarks.clicks import Clicks, Ledger, Seen, Stores, lost, settle
from benchmarks.light import light_settings
from benchmarks.load import address, at, entered, login, make_logins
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
class Found:
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

    def __init__(self, n: int, url: str, settings: Settings, count: int, found: Found) -> None:
        super().__init__(daemon=True)
        self._n, self._count, self._found = n, count, found
        self._stores, self.ledger = Stores(settings, login(n)[0]), Ledger(own=f"p{n}x")
        self._visitor = Visitor(url, address(n))
        self._clicks = Clicks(self._visitor, self._stores, self.ledger, random.Random(n))  # noqa: S311
        self._since = 0.0

    def run(self) -> None:
        """Until so many clicks are done, or there is no coming back."""
        try:
            come_back(self._visitor, *login(self._n))
            while self.done < self._count:
                self._click()
        except (RefusedError, httpx.HTTPError, TimeoutError) as error:
            self._found.stuck.append(f"{self.ledger.own}: {error!r}")
        self._found.acknowledged += self._clicks.done
        self._found.mixed += self._clicks.mixed

    @property
    def done(self) -> int:
        """How many clicks were acknowledged."""
        return self._clicks.done.total()

    def seen(self) -> Seen:
        """What is kept of the person now."""
        return self._stores.seen()

    def _click(self) -> None:
        try:
            self._clicks.click()
        except httpx.HTTPError:
            self._since = self._since or time.perf_counter()
            self._go_on()
        except RefusedError as error:
            self._found.refused[f"{self._clicks.under_way}: {error}"] += 1
            self._go_on()
        else:
            if self._since:
                self._found.waits.append(time.perf_counter() - self._since)
                self._since = 0.0

    def _go_on(self) -> None:
        """Open the page anew, and see what became of the click."""
        self._found.logins_again += come_back(self._visitor, *login(self._n))
        time.sleep(BREATH)
        seen = self.seen()
        left = [seen.turns[mark][0].turn.status for mark in self.ledger.doubtful & seen.turns.keys()]
        self._found.interrupted[f"{self._clicks.under_way}, {left[0] if left else 'no turn'}"] += 1
        settle(self.ledger, seen, late=True)


def come_back(visitor: Visitor, name: str, password: str) -> bool:
    """Load the page anew, as a browser does; whether that took another log-in.

    Raises:
        TimeoutError: nobody answers.
    """
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            if visitor.reload():
                return False
            visitor.log_in(name, password)
        except (httpx.HTTPError, RefusedError):
            time.sleep(BREATH)
        else:
            return True
    raise TimeoutError("Nobody answers any more.")


def measured(
    database: str, folder: Path, count: int, people: int, clicks: int, kills: int, clock: float = 0.0
) -> Found:
    """Let people click at so many workers, of which one after the other is killed and started again.

    The clock of the last one is `clock` seconds ahead.

    Raises:
        SequiturError: the database can't be used, or HAProxy is not there.
    """
    found, settings_at = Found(), _settings_at(database, folder)
    if make_logins(settings_at(0).database_url, people) < people:
        raise SettingsError("This database is not empty; name another one, which you then may delete.")
    with behind_one_address(count, settings_at, PAUSE, clock) as (url, running):
        persons = [Person(n, url, settings_at(0), clicks, found) for n in range(people)]
        for person in persons:
            person.start()
        _kill_in_turn(running, persons, kills, found)
        for person in persons:
            person.join()
        for person in persons:
            found.lost += lost(person.ledger, person.seen())
    return found


def _kill_in_turn(running: Sequence[Worker], persons: Sequence[Person], kills: int, found: Found) -> None:
    """Each time after half of the people have gone on, at a random moment of the next click."""
    chance, done = random.Random(kills), 0  # noqa: S311
    for n in range(kills):
        end = time.monotonic() + PATIENCE
        while sum(person.done for person in persons) < done + len(persons) / 2 and time.monotonic() < end:
            time.sleep(BREATH / 10)
        time.sleep(chance.uniform(0, SPAN))
        if not any(person.is_alive() for person in persons):
            return
        done = sum(person.done for person in persons)
        running[n % len(running)].kill()
        found.killed += 1
        running[n % len(running)].start()


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
    settings_at, tried = _settings_at(database, folder), list[Level]()
    visitors = list[Visitor]()
    for count in counts:
        with behind_one_address(count, settings_at, PAUSE) as (url, _):
            for people in LEVELS:
                make_logins(settings_at(0).database_url, people)
                _enter(visitors, url, people)
                tried.append(_level(count, visitors[:people]))
                if not tried[-1].held:
                    break
    return tried


def _enter(visitors: list[Visitor], url: str, people: int) -> None:
    """Bring so many people to an address; who has logged in before needs not do so again, at whatever worker."""
    for visitor in visitors:
        visitor.move(url)
    visitors.extend(entered(url, n) for n in range(len(visitors), people))


def _level(count: int, visitors: Sequence[Visitor]) -> Level:
    found, over = load.Found(), Event()
    persons = [load.Person(n, visitor, over, found, THINK) for n, visitor in enumerate(visitors)]
    began = time.perf_counter()
    for person in persons:
        person.start()
    over.wait(SECONDS)
    over.set()
    for person in persons:
        person.join()
    a_second = len(found.waits) / (time.perf_counter() - began)
    waits = found.waits
    return Level(count, len(persons), a_second, at(waits, 50), at(waits, 95), tuple(found.errors), tuple(found.mixed))


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
        found = measured(database, Path(folder), count, people, clicks, kills, clock)
        tried = levels(database, Path(folder), held or ())
    held_by = [{**asdict(one), "held": one.held} for one in tried]
    told = {**vars(found), "waits": len(found.waits), "longest wait": max(found.waits, default=0.0)}
    show({"killed": vars(found), "held": held_by}, as_json, {"killed": told, "held": held_by})
