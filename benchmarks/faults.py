"""`bench faults`: what is left of what was acknowledged once the served process is killed, the disk full or a file cut.

A person's clicks go to a page in a process of its own (`light.py`); a click counts as acknowledged once its last update
is there. The process is killed at a random moment, and everything acknowledged before that must be in the stores, on
which the next process starts. What was under way may be there or not.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Annotated

import httpx
import typer

from assistant.commands.common import talk
from assistant.errors import SequiturError
from assistant.settings import Settings
from assistant.store.database import is_postgres
from assistant.store.users import ME
from assistant.upkeep.accounts import Accounts
from benchmarks.clicks import Clicks, Ledger, Stores, accept, lost, settle
from benchmarks.cuts import cuts
from benchmarks.disks import PAUSE, Case, disks
from benchmarks.figures import Figures
from benchmarks.interrupted import backups, makings
from benchmarks.light import Served, light_settings, served
from benchmarks.visitor import RefusedError, Visitor

SPAN = 6.0  # clicks within which a kill falls, in times of the mean click
BATCH = 50  # kills on one account, which is deleted then, so that a look at all of it stays short
MAKINGS, BACKUPS = 12, 6  # kills of each kind of making, and backups that are taken


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


# --- the command --------------------------------------------------------------------------------------------------


def faults(
    count: Annotated[int, typer.Option("--kills", min=0, help="Kills of the served process.")] = 1000,
    cut: Annotated[int, typer.Option("--cuts", min=0, help="Cuts of the database, and of an index.")] = 20,
    seed: Annotated[int, typer.Option(help="Decides clicks, moments and places.")] = 0,
    only: Annotated[str, typer.Option(help="kills, cases, cuts, makings or backups.", show_default="all")] = "",
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
        groups = _groups(folder, cut, seed).items()
        cases = [_told(one) for name, make in groups if only in {"", name} for one in make()]
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


def _groups(folder: Path, cut: int, seed: int) -> dict[str, Callable[[], Iterable[Case]]]:
    return {
        "cases": lambda: disks(folder / "disks", seed),
        "cuts": lambda: cuts(folder / "cuts", cut, seed),
        "makings": lambda: makings(folder / "makings", MAKINGS, seed),
        "backups": lambda: [backups(folder / "backups", BACKUPS, seed)],
    }


def _told(case: Case) -> Case:
    talk.print(f"{case.name}: {case.said}", style="dim" if case.right else "", markup=False)
    return case


def _line(found: Kills) -> str:
    return (
        f"{found.acknowledged.total()} clicks acknowledged, {len(found.lost)} lost, {len(found.not_started)} starts "
        f"failed, {len(found.refused)} clicks refused, {found.seconds / max(found.kills, 1):.1f} s a kill"
    )


def _tell(found: Kills) -> None:
    if found.kills % 10 == 0 or found.lost or found.not_started:
        newest = " | ".join((*found.lost[-1:], *found.not_started[-1:], *found.refused[-1:]))
        talk.print(f"{found.kills:5} kills: {_line(found)} {newest}".rstrip(), style="dim", markup=False)
