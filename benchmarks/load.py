"""`bench load`: many people at the page at once, through its own events: errors, mix-ups, waits, threads and memory.

The model is scripted and takes a set time for each word, so that what is measured is the page, its queues and its
stores. A question carries a mark that its reply repeats: a mark of anybody else in what a person gets is a mix-up.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Annotated

import httpx
import psutil
import typer

from assistant.commands.common import talk
from assistant.commands.spread import spread
from assistant.store.database import connect
from assistant.store.users import Logins
from benchmarks.clicks import others
from benchmarks.figures import Figures
from benchmarks.light import light_settings, served
from benchmarks.visitor import RefusedError, Visitor

EVERY = 5.0  # seconds between looks at the server


@dataclass(frozen=True, slots=True)
class State:
    """The server at one moment: turns that were answered by then, threads, open files, GB (10^9 bytes) held."""

    turns: int
    threads: int
    files: int
    held: float


@dataclass
class Found:
    """What the people met with; times in seconds from the click."""

    first_sources: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    of_person: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    mixed: list[str] = field(default_factory=list)
    states: list[State] = field(default_factory=list)

    @property
    def fairness(self) -> float:
        """The longest wait, in times of the median one."""
        return max(self.waits) / median(self.waits) if self.waits else 0.0

    def held_after(self, turns: int) -> float:
        """GB held as so many turns were answered; -1 where they never were."""
        return next((state.held for state in self.states if state.turns >= turns), -1.0)


class Person(Thread):
    """Asks, waits for the reply, thinks a while, and asks again, with a fact or a look now and then.

    No two questions have one number, whoever asks them: a page that somebody comes back to keeps their facts.
    """

    _numbers = count(1)

    def __init__(self, n: int, visitor: Visitor, over: Event, found: Found, think: float) -> None:
        """`visitor` is a tab of the nth person, who is logged in."""
        super().__init__(daemon=True)
        self._visitor, self._over, self._found, self._think = visitor, over, found, think
        self._chance = random.Random(n)  # noqa: S311
        self._own = f"p{n}x"

    def run(self) -> None:
        """Until all is over."""
        asked = 0
        try:
            while not self._over.wait(self._chance.uniform(0, 2 * self._think)):
                asked += 1
                mark = f"{self._own}{next(self._numbers)}"
                self._ask(mark)
                if asked % 5 == 0:
                    self._check(self._visitor.send("facts", "store", text=f"I like oats of kind {mark}.").text)
        except (RefusedError, httpx.HTTPError) as error:
            self._found.errors.append(f"{self._own}: {error!r}")

    def _ask(self, mark: str) -> None:
        try:
            said = self._visitor.send("composer", "ask", utterance=f"How rich in protein are lentils, {mark}?")
        except RefusedError as error:
            self._found.errors.append(f"{mark}: {error}")
            return
        if f"as {mark} asked" not in said.text.replace("<span>", "").replace("</span>", ""):
            self._found.errors.append(f"{mark}: no reply")
        self._check(said.text)
        self._found.waits.append(said.seconds)
        self._found.of_person.setdefault(self._own, []).append(said.seconds)
        if said.first_source >= 0:
            self._found.first_sources.append(said.first_source)

    def _check(self, text: str) -> None:
        self._found.mixed += [f"{self._own} got {mark}" for mark in others(text, self._own)]


def address(n: int) -> str:
    """Where the nth person seems to come from: an address of this computer's own."""
    return f"127.0.{1 + n // 200}.{1 + n % 200}"


def login(n: int) -> tuple[str, str]:
    """Name and password of the nth person."""
    return f"person{n}", f"oats of person {n}"


def load_of(people: int, seconds: float, pause: float, slots: int, think: float) -> Found:
    """So many people for so long at a page whose model takes `pause` seconds a word and writes `slots` replies."""
    found, over = Found(), Event()
    with TemporaryDirectory() as folder:
        settings = light_settings(Path(folder), slots)
        engine = connect(settings.database_url)
        for n in range(people):
            Logins(engine).add(*login(n))
        engine.dispose()
        with served(settings, pause) as page:
            _warm(page.url)
            persons = [Person(n, entered(page.url, n), over, found, think) for n in range(people)]
            with _watched(psutil.Process(page.pid), found):
                for person in persons:
                    person.start()
                over.wait(seconds)
                over.set()
                for person in persons:
                    person.join(120)
    return found


def entered(url: str, n: int) -> Visitor:
    """A tab of the nth person, who is logged in."""
    visitor = Visitor(url, address(n))
    visitor.log_in(*login(n))
    return visitor


def _warm(url: str) -> None:
    """The first turn of a server learns from examples."""
    visitor = entered(url, 0)
    visitor.send("composer", "ask", utterance="How rich in protein are lentils?")
    visitor.close()


@contextmanager
def _watched(server: psutil.Process, found: Found) -> Iterator[None]:
    over = Event()

    def look() -> None:
        while True:
            held = server.memory_info().rss / 1e9
            found.states.append(State(len(found.waits), server.num_threads(), server.num_fds(), held))
            if over.wait(EVERY):
                return

    thread = Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def at(values: Sequence[float], percent: int) -> float:
    """A percentile; -1 where there are too few values."""
    return quantiles(values, n=100)[percent - 1] if len(values) > 1 else -1.0


@spread
def load(
    people: Annotated[int, typer.Option(min=1, help="People at once.")] = 20,
    minutes: Annotated[float, typer.Option(min=0.1, help="How long they ask.")] = 3.0,
    pause: Annotated[float, typer.Option(min=0, help="Seconds that the scripted model takes for a word.")] = 0.05,
    slots: Annotated[int, typer.Option(min=1, help="Replies that it writes side by side.")] = 4,
    think: Annotated[float, typer.Option(min=0, help="Mean seconds between a reply and the next question.")] = 5.0,
    *,
    figures: Figures,
) -> None:
    """Let many people ask at once; tell errors, mix-ups, first sources, waits, threads, open files and memory."""
    began = time.perf_counter()
    found = load_of(people, 60 * minutes, pause, slots, think)
    report = summary(found) | {"people": people, "minutes": (time.perf_counter() - began) / 60, "slots": slots}
    figures.tell("load", report, {"measure": report})
    for one in (*found.errors[:10], *found.mixed[:10]):
        talk.print(one, markup=False)


def summary(found: Found) -> dict[str, float | int]:
    """Every figure by its name."""
    means = [sum(waits) / len(waits) for waits in found.of_person.values()]
    return {
        "turns": len(found.waits),
        "errors": len(found.errors),
        "mix-ups": len(found.mixed),
        "first source p50 s": at(found.first_sources, 50),
        "first source p95 s": at(found.first_sources, 95),
        "wait p50 s": at(found.waits, 50),
        "wait p95 s": at(found.waits, 95),
        "longest wait / median": found.fairness,
        "longest mean of a person / median": max(means) / median(means) if means else 0.0,
        **_over_time("threads", [state.threads for state in found.states]),
        **_over_time("files", [state.files for state in found.states]),
        "held GB after 50 turns": found.held_after(50),
        "held GB after 500 turns": found.held_after(500),
        "held GB last": found.states[-1].held,
    }


def _over_time(name: str, values: Sequence[int]) -> dict[str, int]:
    """The first as the second look found it, where there was one."""
    return {f"{name} first": values[:2][-1], f"{name} most": max(values), f"{name} last": values[-1]}
