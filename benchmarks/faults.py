"""`bench faults`: what is left of what was acknowledged once the served process is killed, the disk full or a file cut.

A person's clicks go to a page in a process of its own (`light.py`); a click counts as acknowledged once its last update
is there. The process is killed at a random moment, and everything acknowledged before that must be in the stores, on
which the next process starts. What was under way may be there or not.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread, Timer
from typing import Annotated

import httpx
import typer

from assistant.commands.common import talk
from assistant.commands.spread import spread
from assistant.errors import SequiturError
from assistant.library.shelves import library_folder, own_library
from assistant.llm.catalogue import Catalogue, Entry
from assistant.llm.sources import PinnedFile
from assistant.settings import Settings
from assistant.store.database import is_postgres
from assistant.store.users import ME
from assistant.upkeep.accounts import Accounts
from benchmarks.clicks import Clicks, Ledger, Stores, accept, lost, settle
from benchmarks.figures import Figures
from benchmarks.light import Served, light_settings, served
from benchmarks.visitor import RefusedError, Visitor

PAUSE = 0.01  # seconds a word of the scripted model
SPAN = 6.0  # clicks within which a kill falls, in times of the mean click
BATCH = 50  # kills on one account, which is deleted then, so that a look at all of it stays short
NOBODY = 65534
DISK, ROOM = 16 * 2**20, 2**19  # bytes of a small disk, and those that are left on it
HOUR, DAY = 3600, 86400
JUMPS, CLICKS = (0, HOUR, -DAY, 400 * DAY, -7300 * DAY, HOUR), 8  # seconds that the clock is set to, and clicks at each
GLANCE = 0.05  # seconds between looks at what it is to be set to


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


def kills(settings: Settings, count: int, seed: int, each: Callable[[Kills], None] = lambda _: None) -> Kills:
    """Start the page, click, kill it at a random moment, look; so many times on the same stores."""
    chance, found, ledger = random.Random(seed), Kills(), Ledger()  # noqa: S311
    stores, began, pace = Stores(settings), time.perf_counter(), 1.0
    for n in range(count):
        try:
            with served(settings, PAUSE) as page:
                clicks = Clicks(Visitor(page.url), stores, ledger, chance)
                pace = _killed(page, clicks, found, chance.uniform(0, SPAN) * pace) or 2 * pace
        except SequiturError as error:
            found.not_started.append(str(error))
        seen = stores.seen()
        wrong = lost(ledger, seen)
        settle(ledger, seen)
        if wrong:
            accept(ledger, seen)
        found.lost += wrong
        if n % BATCH == BATCH - 1:
            Accounts(settings, stores.engine).delete(ME)
            ledger.forget()
            found.lost += lost(ledger, stores.seen())
        found.kills += 1
        found.seconds = time.perf_counter() - began
        each(found)
    return found


def _killed(page: Served, clicks: Clicks, found: Kills, moment: float) -> float:
    """Click until the kill, `moment` seconds after the first click; returns the mean seconds of a click, or 0."""
    clicks.visitor.number("composer", "ask")
    began, timer = time.perf_counter(), Timer(moment, page.kill)
    timer.start()
    try:
        while True:
            clicks.click()
    except httpx.HTTPError:
        pass
    except RefusedError as error:
        found.refused.append(f"{clicks.under_way}: {error}")
    page.kill()
    timer.join()
    page.wait()
    found.during[clicks.under_way] += 1
    found.acknowledged += clicks.done
    found.lost += clicks.mixed
    clicks.visitor.close()
    done = clicks.done.total()
    return (time.perf_counter() - began) / done if done else 0.0


# --- disks and files ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Case:
    """A fault, what came of it, and whether nothing acknowledged was lost and every refusal said what to do."""

    name: str
    said: str
    right: bool


def _no_more_than(size: int) -> None:
    import resource  # noqa: PLC0415 - Windows has none

    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@contextmanager
def _small_disk(folder: Path) -> Iterator[bool]:
    """A disk of its own for a folder, of `DISK` bytes; whether there could be one, which takes root and Linux."""
    folder.mkdir(parents=True)
    made = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)]
    small = shutil.which("mount") is not None and not subprocess.run(made, check=False, capture_output=True).returncode
    try:
        yield small
    finally:
        if small:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)  # what looked at it may have it open yet


def full_disk(folder: Path) -> Case:
    """A disk with room for some hundred facts; where none can be had, no file may grow beyond 1 MB (RLIMIT_FSIZE)."""
    with _small_disk(folder) as small:
        settings, ledger = light_settings(folder), Ledger()
        limited = None if small else partial(_no_more_than, 2**20)
        with served(settings, before=limited) as page:
            visitor = Visitor(page.url)
            if small:
                _fill(folder / "filler")
            refused = [_facts_until_refused(visitor, ledger)]
            refused += [_refusal(act) for act in _acts_on_a_full_disk(visitor, ledger)]
            if small:
                (folder / "filler").unlink()
                visitor.send("facts", "store", text="I like room.")
                ledger.facts.add("I like room.")
            visitor.close()
        wrong = lost(ledger, Stores(settings).seen())
    name = f"full disk of {DISK >> 20} MB" if small else "full disk (files of 1 MB at most)"
    told = [f"{what}: {said or 'done'}" for what, said in zip(("fact", "answer", "document"), refused, strict=True)]
    told.append("once there is room a fact is kept" if small else "")
    right = not wrong and bool(refused[0]) and all("disk" in said or "space" in said for said in refused if said)
    return Case(name, "; ".join((f"{len(ledger.facts)} facts kept", *filter(None, told), *wrong)), right)


def _fill(file: Path) -> None:
    """Leave little room on a disk."""
    with file.open("wb", buffering=0) as handle, suppress(OSError):
        while True:
            handle.write(bytes(2**14))
    os.truncate(file, file.stat().st_size - ROOM)


def _facts_until_refused(visitor: Visitor, ledger: Ledger) -> str:
    """What was said of the first fact that there was no room for."""
    for n in range(4000):
        text = f"I like {'oats ' * 90}{n}."
        if said := _refusal(partial(visitor.send, "facts", "store", text=text)):
            ledger.doubtful.add(text)
            return said
        ledger.facts.add(text)
    return ""


def _acts_on_a_full_disk(visitor: Visitor, ledger: Ledger) -> Iterator[Callable[[], object]]:
    ledger.doubtful |= {"p0x1", "p0x2.txt"}
    yield partial(visitor.send, "composer", "ask", utterance="How rich in protein are lentils, p0x1?")
    yield partial(visitor.upload, "p0x2.txt", b"The key hangs behind the green door. " * 2000)


def _refusal(act: Callable[[], object]) -> str:
    """Why a click was refused, "" where it was not."""
    try:
        act()
    except RefusedError as error:
        return unescape(str(error))
    return ""


def clock(folder: Path, seed: int) -> Case:
    """The clock of the served process is set forward and back while it runs, and while it is down."""
    folder.mkdir(parents=True)
    offset, settings = folder / "offset", light_settings(folder / "data")
    stores, ledger, found = Stores(settings), Ledger(), Kills()
    for jumps in (JUMPS[:3], JUMPS[3:]):
        offset.write_text(str(jumps[0]))
        with served(settings, PAUSE, partial(_clock_by, offset)) as page:
            clicks = Clicks(Visitor(page.url), stores, ledger, random.Random(seed))  # noqa: S311
            for jump in jumps:
                offset.write_text(str(jump))
                time.sleep(4 * GLANCE)
                found.refused += filter(None, (_refusal(clicks.click) for _ in range(CLICKS)))
            found.acknowledged += clicks.done
            clicks.visitor.close()
    found.lost = lost(ledger, stores.seen())
    said = f"{', '.join(f'{jump:+,} s' for jump in JUMPS)}: {found.acknowledged.total()} clicks acknowledged"
    said += f", {len(found.lost)} lost"
    refusals = f", {len(found.refused)} refused: {' | '.join(found.refused[:3])}" if found.refused else ""
    return Case("clock that is set", said + refusals, not found.lost and not found.refused)


def _clock_by(offset: Path) -> None:
    """From now on this process's clock is off by as many seconds as the file says; what counts time goes on evenly."""
    import time_machine  # noqa: PLC0415 - for tests

    text = offset.read_text()
    travelling = time_machine.travel(time.time() + float(text), tick=True).start()

    def follow(text: str) -> None:
        while True:
            if (fresh := offset.read_text()) and fresh != text:
                travelling.move_to(time_machine.escape_hatch.time.time() + float(fresh))
                text = fresh
            time.sleep(GLANCE)

    Thread(target=follow, args=(text,), daemon=True).start()


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


@spread
def faults(
    count: Annotated[int, typer.Option("--kills", min=0, help="Kills of the served process.")] = 1000,
    cut: Annotated[int, typer.Option("--cuts", min=0, help="Cuts of the database, and of an index.")] = 20,
    seed: Annotated[int, typer.Option(help="Decides clicks, moments and places.")] = 0,
    only: Annotated[str, typer.Option(help="kills, cases or cuts.", show_default="all")] = "",
    database: Annotated[
        str, typer.Option(help="Address of an empty PostgreSQL for the kills.", show_default="a file of SQLite")
    ] = "",
    *,
    figures: Figures,
) -> None:
    """Kill the served page at random moments, fill its disk, cut its files; tell what acknowledged things were lost."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        settings = light_settings(folder / "kills", database=database)
        found = kills(settings, count if only in {"", "kills"} else 0, seed, _tell)
        cases = list(_cases(folder, seed)) if only in {"", "cases"} else []
        cases += cuts(folder / "cuts", cut, seed) if only in {"", "cuts"} else []
    on = "postgresql" if database and is_postgres(database) else "sqlite"
    report = {
        "seed": seed,
        "database": on,
        "kills": vars(found),
        "cases": [[one.name, one.said, one.right] for one in cases],
    }
    ended = Case(f"{found.kills} kills", _line(found), not (found.lost or found.not_started))
    told = {one.name: {"what came of it": one.said, "right": one.right} for one in (ended, *cases)}
    figures.tell("faults", report, {"fault": told})


def _cases(folder: Path, seed: int) -> Iterator[Case]:
    yield full_disk(folder / "full")
    yield clock(folder / "clock", seed)
    yield read_only(folder / "read-only")
    yield tampered_model(folder / "model")


def _line(found: Kills) -> str:
    return (
        f"{found.acknowledged.total()} clicks acknowledged, {len(found.lost)} lost, {len(found.not_started)} starts "
        f"failed, {len(found.refused)} clicks refused, {found.seconds / max(found.kills, 1):.1f} s a kill"
    )


def _tell(found: Kills) -> None:
    if found.kills % 10 == 0 or found.lost or found.not_started:
        newest = " | ".join((*found.lost[-1:], *found.not_started[-1:], *found.refused[-1:]))
        talk.print(f"{found.kills:5} kills: {_line(found)} {newest}".rstrip(), style="dim", markup=False)
