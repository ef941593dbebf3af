"""`bench workers`: two processes answer people on one PostgreSQL, and one after the other is killed meanwhile.

Conversations, runs, leases and the database are the page's own; the words come from a script, so that what is measured
is what becomes of answers and not how a model writes them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from queue import Empty, Queue
from threading import Event, Lock, Thread
from time import monotonic, sleep
from typing import IO, Annotated, Any, cast

import typer
from rich.table import Table

from assistant.chat import Chat
from assistant.commands.common import out
from assistant.errors import BusyError, SettingsError
from assistant.parts import Loader
from assistant.settings import Settings
from assistant.store.conversations import Conversations
from assistant.store.database import connect, is_postgres
from assistant.store.shared import Leases
from assistant.types import Answer, Choices, Turn
from assistant.web.runs import Runs
from ptkb.store import Ptkb

WORDS = "Lentils are rich in protein and low in fat and keep for years in a dry place .".split()
STARTING = 120.0  # seconds within which a worker is up
PATIENCE = 60.0  # seconds that a person waits for an answer, and to be let in again


class _Scripted(Chat):
    """A chat whose answers are `WORDS`, one a pause; all that is kept of them is kept as ever."""

    pause = 0.0

    def _once_ready(self, user: str, turn: Turn, stop: Event) -> Iterator[Turn]:  # noqa: ARG002
        for step in ("draft", "search"):
            sleep(self.pause)
            yield replace(turn, step=step)
        for n in range(1, len(WORDS) + 1):
            if stop.wait(self.pause):
                yield replace(turn, step="", status="stopped")
                return
            turn = replace(turn, step="answer", answer=Answer(" ".join(WORDS[:n])))
            yield turn
        yield replace(turn, step="", status="done")


def work(url: str, pause: float) -> None:
    """Be a worker: take a question a line from standard input, and tell there and then what becomes of it."""
    engine = connect(url)
    chat, runs, telling = (
        _Scripted(Conversations(engine), Ptkb(engine), Loader(Settings())),
        Runs(shared=Leases(engine)),
        Lock(),
    )
    chat.pause = pause

    def tell(**what: str) -> None:
        with telling:
            sys.stdout.write(json.dumps(what) + "\n")
            sys.stdout.flush()

    def answer(user: str, conversation: str, text: str) -> None:
        try:
            run = runs.start(user, conversation, lambda stop: chat.ask(user, conversation, text, Choices(), stop))
        except BusyError as error:
            tell(user=user, busy=str(error))
            return
        run.join()
        tell(user=user, turn=run.turn.id, status=run.turn.status)

    tell(ready="yes")
    for line in sys.stdin:
        Thread(target=answer, kwargs=json.loads(line), daemon=True).start()
    runs.close()


@dataclass
class _Worker:
    """A process that answers, and whoever waits for it."""

    url: str
    pause: float
    waiting: dict[str, Queue[dict[str, str]]] = field(default_factory=dict)
    ready: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        command = [sys.executable, "-m", __name__, self.url, str(self.pause)]
        folder = Path(__file__).parents[1]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=folder, stdin=pipe, stdout=pipe, text=True, bufsize=1)
        self.questions = cast("IO[str]", self.process.stdin)
        Thread(target=self._listen, args=(cast("IO[str]", self.process.stdout),), daemon=True).start()

    def ask(self, user: str, conversation: str, text: str) -> dict[str, str] | None:
        """What became of the question; None where the process died first.

        Raises:
            Empty: it took too long.
        """
        told = self.waiting[user] = Queue()
        with suppress(OSError, ValueError):  # a process that is gone takes nothing
            self.questions.write(json.dumps({"user": user, "conversation": conversation, "text": text}) + "\n")
        end = monotonic() + PATIENCE
        while monotonic() < end:
            with suppress(Empty):
                return told.get(timeout=0.05)
            if self.process.poll() is not None and told.empty():
                return None
        raise Empty

    def kill(self) -> None:
        """As if the power had failed: it can't tell anybody."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """Let it end by itself."""
        with suppress(OSError):
            self.questions.close()
        self.process.wait(STARTING)

    def _listen(self, lines: IO[str]) -> None:
        for line in lines:
            told = json.loads(line)
            if "ready" in told:
                self.ready.set()
            elif told["user"] in self.waiting:
                self.waiting[told["user"]].put(told)


@dataclass
class Found:
    """What became of it all; `waits` are the seconds from a worker's death to the answer at the other."""

    questions: int = 0
    acknowledged: int = 0
    lost: int = 0
    twice: int = 0
    running: int = 0
    interrupted: dict[str, int] = field(default_factory=dict)
    longest_wait: float = 0.0
    strangers: int = 0


@dataclass
class _Person:
    """Asks one question after the other, at the same worker as long as that lives."""

    name: str
    conversation: str
    at: int
    acknowledged: list[tuple[str, str]] = field(default_factory=list)
    interrupted: Counter[str] = field(default_factory=Counter)
    waits: list[float] = field(default_factory=list)


def measured(url: str, people: int, questions: int, kills: int, pause: float) -> Found:
    """Let people ask two workers, of which one after the other is killed and started again.

    Raises:
        SequiturError: the database can't be used.
    """
    store = Conversations(connect(url))
    workers = [_Worker(url, pause) for _ in range(2)]
    for one in workers:
        if not one.ready.wait(STARTING):
            raise SettingsError("A worker did not start; run `python -m assistant serve` to see why.")
    there = [_Person(f"person{n}", store.new(f"person{n}").id, n % 2) for n in range(people)]
    asking = [Thread(target=_ask_all, args=(one, workers, store, questions), daemon=True) for one in there]
    for thread in asking:
        thread.start()
    for n in range(kills):
        sleep(len(WORDS) * pause * 1.5)
        workers[n % 2].kill()
        workers[n % 2] = _Worker(url, pause)
        workers[n % 2].ready.wait(STARTING)
    for thread in asking:
        thread.join()
    for one in workers:
        one.close()
    return _counted(there, store, questions)


def _ask_all(person: _Person, workers: list[_Worker], store: Conversations, questions: int) -> None:
    for n in range(questions):
        died = 0.0
        while True:
            at = workers[person.at]
            told = at.ask(person.name, person.conversation, f"Question {n}?")
            if told is None:
                died = died or monotonic()
                person.interrupted[_left(person, store, n)] += 1
                person.at = 1 - person.at
            elif "busy" in told:
                sleep(0.1)
            else:
                person.acknowledged.append((told["turn"], told["status"]))
                if died:
                    person.waits.append(monotonic() - died)
                break


def _left(person: _Person, store: Conversations, n: int) -> str:
    """What a worker that died left of an answer: nothing, a stopped turn, or a whole one that it did not tell of."""
    turns = [turn for turn in store.get(person.name, person.conversation).turns if turn.utterance == f"Question {n}?"]
    return turns[-1].status if turns else "absent"


def _counted(there: list[_Person], store: Conversations, questions: int) -> Found:
    found, interrupted = Found(questions=questions * len(there)), Counter[str]()
    for person in there:
        turns = store.get(person.name, person.conversation).turns
        ids = Counter(turn.id for turn in turns)
        whole = {turn.id for turn in turns if turn.status == "done" and turn.answer == Answer(" ".join(WORDS))}
        found.acknowledged += len(person.acknowledged)
        found.lost += sum(told == "done" and turn not in whole for turn, told in person.acknowledged)
        found.twice += sum(count - 1 for count in ids.values())
        found.running += sum(turn.status == "running" for turn in turns)
        found.longest_wait = max([found.longest_wait, *person.waits])
        found.strangers += sum(one.id != person.conversation for one in store.list(person.name))
        interrupted += person.interrupted
    return replace(found, interrupted=dict(interrupted))


def workers(
    database: Annotated[str, typer.Option(help="Address of an empty PostgreSQL, as in the setting `database`.")],
    people: Annotated[int, typer.Option(min=1, help="How many ask at once.")] = 8,
    questions: Annotated[int, typer.Option(min=1, help="How many each asks.")] = 10,
    kills: Annotated[int, typer.Option(min=0, help="How often a worker is killed.")] = 3,
    pause: Annotated[float, typer.Option(min=0.001, help="Seconds that a word takes.")] = 0.1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Kill workers while they answer, and count what is lost: two processes on one PostgreSQL, scripted answers."""
    if not is_postgres(database):
        raise SettingsError("Several workers need a PostgreSQL; name one with --database postgresql://…")
    found = asdict(measured(database, people, questions, kills, pause))
    if as_json:
        out.print_json(json.dumps(found))
        return
    table = Table("", "")
    for name, value in found.items():
        table.add_row(name.replace("_", " "), _shown(value))
    out.print(table)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{count} {left}" for left, count in value.items()) or "0"
    return f"{value:.1f} s" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    work(sys.argv[1], float(sys.argv[2]))
