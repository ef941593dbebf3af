"""`bench faults`: what is left of what was acknowledged once the served process is killed, the disk full or a file cut.

A person's clicks go to a page in a process of its own (`light.py`); a click counts as acknowledged once its last update
is there. The process is killed at a random moment, and everything acknowledged before that must be in the stores, on
which the next process starts. What was under way may be there or not.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Annotated, Any

import httpx
import typer
from rich.table import Table
from sqlalchemy import Engine

from assistant.commands.common import out, results_folder, talk, writing
from assistant.errors import SequiturError
from assistant.library.index import list_documents
from assistant.library.shelves import library_folder, own_library
from assistant.llm.catalogue import Catalogue, Entry
from assistant.llm.sources import PinnedFile
from assistant.settings import Settings
from assistant.store.conversations import Conversations
from assistant.store.database import connect
from assistant.store.users import ME
from assistant.types import Fact, Turn
from benchmarks.light import Served, apart, light_settings, served
from benchmarks.visitor import RefusedError, Visitor
from ptkb.store import Ptkb

PAUSE = 0.01  # seconds a word of the scripted model
SPAN = 6.0  # clicks within which a kill falls, in times of the mean click
KINDS = ("answer", "version", "undo", "fact", "edit of a fact", "end of a fact", "upload", "end of a document")
WEIGHTS = (5, 2, 2, 4, 2, 1, 2, 1)
NOBODY = 65534


@dataclass
class Ledger:
    """What must be there: texts of facts, marks of questions with how many versions their reply has, documents.

    `doubtful` is what the click under way changes, either state of which is right if the process is killed meanwhile;
    `unfinished` are questions whose answer a kill broke off.
    """

    facts: set[str] = field(default_factory=set)
    replies: dict[str, int] = field(default_factory=dict)
    documents: set[str] = field(default_factory=set)
    doubtful: set[str] = field(default_factory=set)
    unfinished: set[str] = field(default_factory=set)
    marks: int = 0

    def mark(self) -> str:
        """A word that no other text has."""
        self.marks += 1
        return f"p0x{self.marks}"


@dataclass(frozen=True)
class Stores:
    """What is on the disk, read beside the served process."""

    settings: Settings

    def facts(self) -> list[Fact]:
        """The facts."""
        with self._engine() as engine:
            return Ptkb(engine).facts(ME)

    def turns(self) -> dict[str, tuple[str, Turn, int]]:
        """By the mark of a question: its conversation's id, the turn that is shown, and how many versions of it are."""
        with self._engine() as engine:
            kept = Conversations(engine)
            all_of_them = [kept.get(ME, one.id) for one in kept.list(ME)]
        return {
            mark_of(turn.utterance): (one.id, turn, len(one.versions.get(turn.id, (turn.id,))))
            for one in all_of_them
            for turn in one.turns
        }

    def documents(self) -> dict[str, str]:
        """The ids of documents by their names; read apart, since no process with Java in it can be forked."""
        return apart(lambda: {one.name: one.id for one in list_documents(own_library(ME), self.settings)})

    @contextmanager
    def _engine(self) -> Iterator[Engine]:
        """Closed before the next process is forked, which no connection outlives well."""
        engine = connect(self.settings.database_url)
        try:
            yield engine
        finally:
            engine.dispose()


class Clicks:
    """What a person does, one click after the other, and what they may count on afterwards."""

    def __init__(self, visitor: Visitor, stores: Stores, ledger: Ledger, chance: random.Random) -> None:
        self._visitor, self._stores, self._ledger, self._chance = visitor, stores, ledger, chance
        self.under_way, self.done = "", Counter[str]()

    def go_on(self) -> None:
        """Click until the server is gone.

        Raises:
            httpx.HTTPError: that it is.
            RefusedError: it refused a click.
        """
        acts = dict(zip(KINDS, self._acts(), strict=True))
        while True:
            [self.under_way] = self._chance.choices(KINDS, WEIGHTS)
            acts[self.under_way]()
            self.done[self.under_way] += bool(self._ledger.doubtful)  # where there is nothing to change, nothing was
            self._ledger.doubtful.clear()

    def _acts(self) -> Iterator[Callable[[], None]]:
        yield from (self._ask, self._again, self._undo, self._tell, self._edit, self._forget, self._bring, self._drop)

    def _ask(self) -> None:
        mark = self._ledger.mark()
        self._ledger.doubtful.add(mark)
        self._visitor.send("composer", "ask", utterance=f"How rich in protein are lentils, {mark}?")
        self._ledger.replies[mark] = 1

    def _again(self) -> None:
        for mark, (conversation, turn, _) in self._picked():
            self._ledger.doubtful.add(mark)
            self._visitor.send("transcript", "again", conversation=conversation, turn=turn.id)
            self._ledger.replies[mark] += 1

    def _undo(self) -> None:
        for mark, (conversation, turn, _) in self._picked():
            self._ledger.doubtful.add(mark)
            self._visitor.send("transcript", "undo", conversation=conversation, turn=turn.id)
            del self._ledger.replies[mark]

    def _tell(self) -> None:
        text = f"I like oats of kind {self._ledger.mark()}."
        self._ledger.doubtful.add(text)
        self._visitor.send("facts", "store", text=text)
        self._ledger.facts.add(text)

    def _edit(self) -> None:
        for fact in self._fact():
            text = f"I like rice of kind {self._ledger.mark()}."
            self._ledger.doubtful |= {fact.text, text}
            self._visitor.send("facts", "edit", fact=fact.id, text=text)
            self._ledger.facts ^= {fact.text, text}

    def _forget(self) -> None:
        for fact in self._fact():
            self._ledger.doubtful.add(fact.text)
            self._visitor.send("facts", "drop", fact=fact.id)
            self._ledger.facts.discard(fact.text)

    def _bring(self) -> None:
        name = f"{self._ledger.mark()}.txt"
        self._ledger.doubtful.add(name)
        self._visitor.upload(name, f"The key {name[:-4]} hangs behind the green door.".encode())
        self._ledger.documents.add(name)

    def _drop(self) -> None:
        there = self._stores.documents()
        for name in self._chance.sample(sorted(self._ledger.documents & set(there)), 1 if there else 0):
            self._ledger.doubtful.add(name)
            self._visitor.send("documents", "drop", document=there[name])
            self._ledger.documents.discard(name)

    def _picked(self) -> list[tuple[str, tuple[str, Turn, int]]]:
        turns = self._stores.turns()
        known = sorted(self._ledger.replies.keys() & turns.keys())
        return [(mark, turns[mark]) for mark in known and self._chance.sample(known, 1)]

    def _fact(self) -> list[Fact]:
        known = [fact for fact in self._stores.facts() if fact.text in self._ledger.facts]
        return known and self._chance.sample(known, 1)


def mark_of(utterance: str) -> str:
    """The mark of a question that `Clicks` asked."""
    return utterance.removesuffix("?").rpartition(" ")[2]


def lost(ledger: Ledger, stores: Stores) -> list[str]:
    """What was acknowledged and is not as it was, and what came back that had been taken away."""
    facts, documents, turns = {fact.text for fact in stores.facts()}, set(stores.documents()), stores.turns()
    unsure = ledger.doubtful | ledger.unfinished
    wrong = [f"fact: {text}" for text in (facts ^ ledger.facts) - unsure]
    wrong += [f"document: {name}" for name in (documents ^ ledger.documents) - unsure]
    wrong += [f"reply: {mark}" for mark in (turns.keys() ^ ledger.replies.keys()) - unsure]
    for mark in (turns.keys() & ledger.replies.keys()) - unsure:
        _, turn, versions = turns[mark]
        if turn.status != "done" or not turn.answer or versions != ledger.replies[mark]:
            wrong.append(f"reply: {mark} is {turn.status}, {versions} of {ledger.replies[mark]} versions")
    return wrong


def settle(ledger: Ledger, stores: Stores) -> None:
    """Take what was under way as the process was killed for what came of it."""
    facts, documents, turns = {fact.text for fact in stores.facts()}, set(stores.documents()), stores.turns()
    for one in ledger.doubtful:
        for kept, there in ((ledger.facts, facts), (ledger.documents, documents)):
            (kept.add if one in there else kept.discard)(one)
        ledger.replies.pop(one, None)
        if one in turns:
            ledger.unfinished.add(one)
    ledger.doubtful.clear()


@dataclass
class Kills:
    """What came of the kills: what each fell into, clicks acknowledged by kind, what was lost, starts that failed."""

    kills: int = 0
    during: Counter[str] = field(default_factory=Counter)
    acknowledged: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    not_started: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    seconds: float = 0.0


def kills(folder: Path, count: int, seed: int, each: Callable[[Kills], None] = lambda _: None) -> Kills:
    """Start the page, click, kill it at a random moment, look; so many times on one data folder."""
    settings, chance, found, ledger = light_settings(folder), random.Random(seed), Kills(), Ledger()  # noqa: S311
    stores, began = Stores(settings), time.perf_counter()
    pace = 1.0
    for _ in range(count):
        try:
            with served(settings, PAUSE) as page:
                pace = _killed(page, Stores(settings), ledger, chance, found, pace)
        except SequiturError as error:
            found.not_started.append(str(error))
        found.lost += lost(ledger, stores)
        settle(ledger, stores)
        found.kills += 1
        found.seconds = time.perf_counter() - began
        each(found)
    return found


def _killed(page: Served, stores: Stores, ledger: Ledger, chance: random.Random, found: Kills, pace: float) -> float:
    """Click until the kill; returns the mean seconds of a click, as far as that is known."""
    visitor = Visitor(page.url)
    clicks, began = Clicks(visitor, stores, ledger, chance), time.perf_counter()
    visitor.number("composer", "ask")
    timer = Timer(chance.uniform(0, SPAN * pace), page.kill)
    timer.start()
    try:
        clicks.go_on()
    except httpx.HTTPError:
        pass
    except RefusedError as error:
        found.refused.append(f"{clicks.under_way}: {error}")
    page.kill()
    timer.join()
    page.wait()
    found.during[clicks.under_way] += 1
    found.acknowledged += clicks.done
    visitor.close()
    done = clicks.done.total()
    return (time.perf_counter() - began) / done if done else 2 * pace  # nothing was done: it is slower than was thought


# --- disks and files ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Case:
    """A fault, what came of it, and whether nothing acknowledged was lost and every refusal said what to do."""

    name: str
    said: str
    right: bool


def _no_more_than(size: int) -> Callable[[], None]:
    def limit() -> None:
        import resource  # noqa: PLC0415 - Windows has none

        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


def full_disk(folder: Path, seed: int) -> Case:
    """No file may grow beyond 1 MB (RLIMIT_FSIZE), which writes meet as they meet a full disk."""
    settings, ledger, refused = light_settings(folder), Ledger(), list[str]()
    with served(settings, before=_no_more_than(2**20)) as page:
        visitor, long = Visitor(page.url), "oats " * 90
        for n in range(4000):
            text = f"I like {long}{n}."
            try:
                visitor.send("facts", "store", text=text)
                ledger.facts.add(text)
            except RefusedError as error:
                refused.append(unescape(str(error)))
                ledger.doubtful.add(text)
            if len(refused) >= 5 or (refused and n > seed % 7 + 3000):
                break
        visitor.close()
    wrong = lost(ledger, Stores(settings))
    said = f"{len(ledger.facts)} facts acknowledged, then {len(refused)} refused: {refused[0] if refused else ''}"
    return Case("full disk (files of 1 MB at most)", said, bool(refused) and not wrong and "disk" in refused[0])


def _as_nobody() -> None:
    """Root may write everywhere; only root may give that up."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def read_only(folder: Path) -> Case:
    """A data folder that may be read and not written."""
    settings = light_settings(folder)
    with served(settings) as page:
        visitor = Visitor(page.url)
        visitor.send("facts", "store", text="I like oats.")
        visitor.close()
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    said, right = "", True
    try:
        with served(settings, before=_as_nobody) as page:
            visitor = Visitor(page.url)
            with suppress(RefusedError):
                visitor.send("facts", "store", text="I like rice.")
                right = False
            said = "starts; a new fact is refused"
    except SequiturError as error:
        said = f"does not start: {error}"
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    kept = [fact.text for fact in Stores(settings).facts()]
    return Case("read-only data folder", said, right and kept == ["I like oats."])


def tampered_model(folder: Path) -> Case:
    """A model whose file was changed, with its old size and time: it must not be taken for the one that was pinned."""
    from hashlib import sha256  # noqa: PLC0415

    whole, settings = b"weights " * 1000, light_settings(folder)
    pinned = PinnedFile(path="m.gguf", size=len(whole), sha256=sha256(whole).hexdigest())
    catalogue = Catalogue([Entry(name="m", kind="gguf", about="", files=(pinned,))])
    path = catalogue.entry("m").path(settings)
    path.parent.mkdir(parents=True)
    path.write_bytes(whole)
    catalogue.resolve("m", settings)
    stat = path.stat()
    path.write_bytes(b"W" + whole[1:])
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    try:
        catalogue.resolve("m", settings)
    except SequiturError as error:
        return Case("tampered model, old size and time", f"refused: {error}", right=True)
    return Case("tampered model, old size and time", "taken for the pinned one", right=False)


def cuts(folder: Path, count: int, seed: int) -> list[Case]:
    """The database, then the index, cut at random places: the page starts, or says what to do."""
    base, chance = folder / "whole", random.Random(seed)  # noqa: S311
    settings = light_settings(base)
    with served(settings) as page:
        visitor = Visitor(page.url)
        for n in range(30):
            visitor.send("facts", "store", text=f"I like oats of kind {n}.")
        visitor.upload("a.txt", b"The key hangs behind the green door. " * 50)
        visitor.close()
    with closing(sqlite3.connect(_database(settings))) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return [_cut_all(base, folder, name, count, chance) for name in ("database", "index")]


def _database(settings: Settings) -> Path:
    return Path(settings.database_url.removeprefix("sqlite:///"))


def _cut_all(base: Path, folder: Path, name: str, count: int, chance: random.Random) -> Case:
    outcomes, unclear = Counter[str](), list[str]()
    for n in range(count):
        copy = folder / f"{name} {n}"
        shutil.copytree(base, copy)
        settings = light_settings(copy)
        _cut(settings, name, chance)
        outcome, said = _after_cut(settings, name)
        outcomes[outcome] += 1
        if outcome == "unclear":
            unclear.append(said)
        shutil.rmtree(copy)
    told = "; ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    return Case(f"{name} cut at {count} random places", f"{told} {' | '.join(unclear[:3])}".strip(), not unclear)


def _cut(settings: Settings, name: str, chance: random.Random) -> None:
    folder = library_folder(own_library(ME), settings)
    files = [_database(settings)] if name == "database" else sorted(one for one in folder.rglob("*") if one.is_file())
    file = chance.choice([one for one in files if one.stat().st_size > 1])
    with file.open("rb+") as handle:
        handle.truncate(chance.randrange(file.stat().st_size))


def _after_cut(settings: Settings, name: str) -> tuple[str, str]:
    """How a start on what is left of it went, and what was said."""
    try:
        with served(settings) as page:
            visitor = Visitor(page.url)
            try:
                if name == "database":
                    visitor.send("facts", "store", text="I like a new kind of oats.")
                else:
                    visitor.upload("b.txt", b"The lamp stands on the table.")
                    if "b.txt" not in Stores(settings).documents():
                        return "unclear", "b.txt was not added"
            except RefusedError as error:
                return ("told on the page" if "damaged" in str(error) or "be read" in str(error) else "unclear"), str(
                    error
                )
            finally:
                visitor.close()
            return "works", ""
    except SequiturError as error:
        return ("told at the start" if "It ended" not in str(error) else "unclear"), str(error)


# --- the command --------------------------------------------------------------------------------------------------


def faults(
    count: Annotated[int, typer.Option("--kills", min=0, help="Kills of the served process.")] = 1000,
    cut: Annotated[int, typer.Option("--cuts", min=0, help="Cuts of the database, and of an index.")] = 20,
    seed: Annotated[int, typer.Option(help="Decides clicks, moments and places.")] = 0,
    only: Annotated[str, typer.Option(help="kills, cases or cuts.", show_default="all")] = "",
    into: Annotated[Path | None, typer.Option("--out", help="A folder for faults.json.", show_default=False)] = None,
) -> None:
    """Kill the served page at random moments, fill its disk, cut its files; tell what acknowledged things were lost."""
    results_folder(into)
    with TemporaryDirectory() as name:
        folder = Path(name)
        found = kills(folder / "kills", count if only in {"", "kills"} else 0, seed, _tell)
        cases = list(_cases(folder, seed)) if only in {"", "cases"} else []
        cases += cuts(folder / "cuts", cut, seed) if only in {"", "cuts"} else []
    report = {"seed": seed, "kills": _as_json(found), "cases": [[one.name, one.said, one.right] for one in cases]}
    table = Table("fault", "what came of it", "right")
    table.add_row(f"{found.kills} kills", _line(found), "yes" if not (found.lost or found.not_started) else "no")
    for case in cases:
        table.add_row(case.name, case.said, "yes" if case.right else "no")
    out.print(table)
    if into:
        with writing(into):
            (into / "faults.json").write_text(json.dumps(report, indent=1), encoding="utf-8")


def _cases(folder: Path, seed: int) -> Iterator[Case]:
    yield full_disk(folder / "full", seed)
    yield read_only(folder / "read-only")
    yield tampered_model(folder / "model")


def _line(found: Kills) -> str:
    return (
        f"{found.acknowledged.total()} clicks acknowledged, {len(found.lost)} lost, {len(found.not_started)} starts "
        f"failed, {len(found.refused)} clicks refused, {found.seconds / max(found.kills, 1):.1f} s a kill"
    )


def _as_json(found: Kills) -> Mapping[str, Any]:
    return {**vars(found), "during": dict(found.during), "acknowledged": dict(found.acknowledged)}


def _tell(found: Kills) -> None:
    if found.kills % 10 == 0 or found.lost or found.not_started:
        talk.print(f"{found.kills:5} kills: {_line(found)}", style="dim", markup=False)
