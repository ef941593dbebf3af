"""`bench load`: many people at the page at once, through its own events: errors, mix-ups, waits, threads and memory.

Without `--model` the model is scripted and takes a set time for each word, so that what is measured is the page, its
queues and its stores. With it `python -m assistant serve` answers as people have it: library, judges and that model. A
question carries a mark: a mark of anybody else in what a person gets is a mix-up.
"""

from __future__ import annotations

import os
import random
import re
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from subprocess import PIPE, Popen
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Annotated

import httpx
import psutil
import typer

from assistant.commands.common import error_console, print_text
from assistant.errors import ModelError
from assistant.settings import PREFIX
from assistant.store.database import connect
from assistant.store.users import Logins
from benchmarks.clicks import foreign_marks
from benchmarks.figures import Figures
from benchmarks.light import light_settings, served
from benchmarks.peak import held_bytes
from benchmarks.turn import QUESTIONS
from benchmarks.visitor import RefusedError, Visitor

EVERY = 5.0  # seconds between looks at the server
PATIENCE = 900.0  # seconds within which a page is ready, and the last replies are there
_ADDRESS = re.compile(r"https?://[^\s/]+")


@dataclass(frozen=True, slots=True)
class State:
    """The server at one moment: turns that were answered by then, threads, open files, GB (10^9 bytes) held."""

    turns: int
    threads: int
    files: int
    held: float


@dataclass
class LoadResults:
    """What the people met with; times in seconds from the click.

    The first questions of all come within seconds of each other, as few people's do: their first sources are `rush`.
    """

    rush: list[float] = field(default_factory=list)
    later: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    waits_by_person: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    mix_ups: list[str] = field(default_factory=list)
    states: list[State] = field(default_factory=list)

    @property
    def first_sources(self) -> list[float]:
        """When the first source of each question was there that had any."""
        return [*self.rush, *self.later]

    @property
    def fairness(self) -> float:
        """The longest wait, in times of the median one."""
        return max(self.waits) / median(self.waits) if self.waits else 0.0

    def held_after(self, turns: int) -> float:
        """GB held as so many turns were answered; -1 where they never were."""
        return next((state.held for state in self.states if state.turns >= turns), -1.0)


@dataclass(frozen=True, slots=True)
class Talk:
    """What people ask, and what is in a page that has answered it; a mark goes in the place of {}."""

    questions: Sequence[str]
    answered: str

    def question(self, mark: str, n: int) -> str:
        """The nth question of a person."""
        return self.questions[n % len(self.questions)].format(mark)

    def is_answered(self, text: str, mark: str) -> bool:
        """Whether a reply to the question of this mark is in a page."""
        return self.answered.format(mark) in text.replace("<span>", "").replace("</span>", "")


SCRIPTED = Talk(("How rich in protein are lentils, {}?",), "as {} asked")
REAL = Talk(tuple(f"{question} ({{}})" for question, history in QUESTIONS if not history), "turn done")


class Person(Thread):
    """Asks, waits for the reply, thinks a while, and asks again, with a fact or a look now and then.

    No two questions have one number, whoever asks them: a page that somebody comes back to keeps their facts.
    """

    _numbers = count(1)

    def __init__(
        self, n: int, visitor: Visitor, stop: Event, results: LoadResults, think: float, talk: Talk = SCRIPTED
    ) -> None:
        """`visitor` is a tab of the nth person, who is logged in."""
        super().__init__(daemon=True)
        self._visitor, self._stop_event, self._results, self._think, self._talk = visitor, stop, results, think, talk
        self._rng = random.Random(n)  # noqa: S311
        self._n, self._prefix = n, f"p{n}x"

    def run(self) -> None:
        """Until all is over."""
        question_count = 0
        try:
            while not self._stop_event.wait(self._rng.uniform(0, 2 * self._think)):
                question_count += 1
                mark = f"{self._prefix}{next(self._numbers)}"
                self._ask(mark, self._n + question_count)
                if question_count % 5 == 0:
                    self._check(self._visitor.send("facts", "store", text=f"I like oats of kind {mark}.").text)
        except (RefusedError, httpx.HTTPError) as error:
            self._results.errors.append(f"{self._prefix}: {error!r}")

    def _ask(self, mark: str, n: int) -> None:
        try:
            reply = self._visitor.send("composer", "ask", utterance=self._talk.question(mark, n))
        except RefusedError as error:
            self._results.errors.append(f"{mark}: {error}")
            return
        if not self._talk.is_answered(reply.text, mark):
            self._results.errors.append(f"{mark}: no reply")
        self._check(reply.text)
        self._results.waits.append(reply.seconds)
        if reply.first_source >= 0:
            (self._results.later if self._prefix in self._results.waits_by_person else self._results.rush).append(
                reply.first_source
            )
        self._results.waits_by_person.setdefault(self._prefix, []).append(reply.seconds)

    def _check(self, text: str) -> None:
        self._results.mix_ups += [f"{self._prefix} got {mark}" for mark in foreign_marks(text, self._prefix)]


def address(n: int) -> str:
    """Where the nth person seems to come from: an address of this computer's own."""
    return f"127.0.{1 + n // 200}.{1 + n % 200}"


def login(n: int) -> tuple[str, str]:
    """Name and password of the nth person."""
    return f"person{n}", f"oats of person {n}"


def load_of(people: int, seconds: float, think: float, page: Page) -> LoadResults:
    """So many people for so long at a page."""
    results, stop = LoadResults(), Event()
    _warm(page.url, page.talk)
    persons = [Person(n, logged_in_visitor(page.url, n), stop, results, think, page.talk) for n in range(people)]
    with _watched(psutil.Process(page.pid), results):
        for person in persons:
            person.start()
        stop.wait(seconds)
        stop.set()
        for person in persons:
            person.join(PATIENCE)
    return results


@dataclass(frozen=True, slots=True)
class Page:
    """A page that is up, and what is to be asked there."""

    url: str
    pid: int
    talk: Talk


@contextmanager
def scripted(people: int, pause: float, slots: int) -> Iterator[Page]:
    """A page for so many people, whose model takes `pause` seconds a word and writes `slots` replies side by side."""
    with TemporaryDirectory() as folder:
        settings = light_settings(Path(folder), slots)
        make_logins(settings.database_url, people)
        with served(settings, pause) as page:
            yield Page(page.url, page.pid, SCRIPTED)


@contextmanager
def real(people: int, model: str, slots: int) -> Iterator[Page]:
    """The page as people start it, with this model; models and library are those that are here, all else is its own.

    Raises:
        ModelError: it did not start, or was not ready in time.
    """
    with TemporaryDirectory() as folder:
        database = f"sqlite:///{Path(folder) / 'load.sqlite3'}"
        make_logins(database, people)
        environment = {f"{PREFIX}DATABASE": database, f"{PREFIX}LLM__MODEL": model, f"{PREFIX}LLM__SLOTS": str(slots)}
        command = [sys.executable, "-m", "assistant", "serve", "--port", "0"]
        with Popen(command, env={**os.environ, **environment}, stderr=PIPE, text=True) as process:
            try:
                yield Page(_ready_at(process), process.pid, REAL)
            finally:
                process.kill()


def make_logins(database: str, people: int) -> int:
    """A login for each person who has none. Returns how many were made."""
    engine = connect(database)
    logins = Logins(engine)
    existing_names = logins.names()
    new_logins = [login(n) for n in range(people) if login(n)[0] not in existing_names]
    for credentials in new_logins:
        logins.add(*credentials)
    engine.dispose()
    return len(new_logins)


def _ready_at(process: Popen[str]) -> str:
    """Where the page is, once it answers questions; what it says meanwhile is told where it never does."""
    stderr: Iterable[str] = process.stderr or ()
    line = next(iter(stderr), "")
    if not (address_match := _ADDRESS.search(line)):
        raise ModelError(f"The page did not start: {line.strip()}")
    last_lines = deque[str](maxlen=3)
    Thread(target=lambda: last_lines.extend(stderr), daemon=True).start()
    deadline, state = time.monotonic() + PATIENCE, "loading"
    while state == "loading" and time.monotonic() < deadline:
        time.sleep(1)
        state = httpx.get(f"{address_match[0]}/readyz").text
    if state != "ready":
        raise ModelError(f"The page did not get ready ({state}): {' '.join(''.join(last_lines).split())}")
    return address_match[0]


def logged_in_visitor(url: str, n: int) -> Visitor:
    """A tab of the nth person, who is logged in and has the page open."""
    visitor = Visitor(url, address(n))
    visitor.log_in(*login(n))
    visitor.open()
    return visitor


def _warm(url: str, talk: Talk) -> None:
    """The first turn of a server learns from examples."""
    visitor = logged_in_visitor(url, 0)
    visitor.send("composer", "ask", utterance=talk.question("p0x0", 0))
    visitor.close()


@contextmanager
def _watched(server: psutil.Process, results: LoadResults) -> Iterator[None]:
    stop = Event()

    def look() -> None:
        while True:
            gigabytes = held_bytes(server) / 1e9
            results.states.append(State(len(results.waits), server.num_threads(), server.num_fds(), gigabytes))
            if stop.wait(EVERY):
                return

    thread = Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def percentile(values: Sequence[float], percent: int) -> float:
    """A percentile; -1 where there are too few values."""
    return quantiles(values, n=100, method="inclusive")[percent - 1] if len(values) > 1 else -1.0


def load(
    people: Annotated[int, typer.Option(min=1, help="People at once.")] = 20,
    minutes: Annotated[float, typer.Option(min=0.1, help="How long they ask.")] = 3.0,
    model: Annotated[
        str, typer.Option(help="A model that answers on the page as people have it.", show_default="a scripted one")
    ] = "",
    pause: Annotated[float, typer.Option(min=0, help="Seconds that the scripted model takes for a word.")] = 0.05,
    slots: Annotated[int, typer.Option(min=1, help="Replies that it writes side by side.")] = 4,
    think: Annotated[float, typer.Option(min=0, help="Mean seconds between a reply and the next question.")] = 5.0,
    *,
    figures: Figures,
) -> None:
    """Let many people ask at once; tell errors, mix-ups, first sources, waits, threads, open files and memory."""
    start = time.perf_counter()
    with real(people, model, slots) if model else scripted(people, pause, slots) as page:
        results = load_of(people, 60 * minutes, think, page)
    report = summary(results) | {"people": people, "minutes": (time.perf_counter() - start) / 60, "slots": slots}
    figures.tell("load", report, {"measure": report})
    for message in (*results.errors[:10], *results.mix_ups[:10]):
        print_text(message, error_console)


def summary(results: LoadResults) -> dict[str, float | int]:
    """Every figure by its name."""
    means = [sum(waits) / len(waits) for waits in results.waits_by_person.values()]
    return {
        "turns": len(results.waits),
        "errors": len(results.errors),
        "mix-ups": len(results.mix_ups),
        "first source p50 s": percentile(results.first_sources, 50),
        "first source p95 s": percentile(results.first_sources, 95),
        "first source p95 s, first questions": percentile(results.rush, 95),
        "first source p95 s, later questions": percentile(results.later, 95),
        "wait p50 s": percentile(results.waits, 50),
        "wait p95 s": percentile(results.waits, 95),
        "longest wait / median": results.fairness,
        "longest mean of a person / median": max(means) / median(means) if means else 0.0,
        **_over_time("threads", [state.threads for state in results.states]),
        **_over_time("files", [state.files for state in results.states]),
        "held GB after 50 turns": results.held_after(50),
        "held GB after 500 turns": results.held_after(500),
        "held GB last": results.states[-1].held,
    }


def _over_time(name: str, values: Sequence[int]) -> dict[str, int]:
    """The first as the second look found it, where there was one."""
    return {f"{name} first": values[:2][-1], f"{name} most": max(values), f"{name} last": values[-1]}
