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

from assistant.commands.common import error_console
from assistant.errors import SequiturError
from assistant.settings import Settings
from assistant.store.database import is_postgres
from assistant.store.users import DEFAULT_USER
from assistant.upkeep.accounts import Accounts
from benchmarks.clicks import KINDS, Clicks, Ledger, Stores, accept, find_losses, settle
from benchmarks.cuts import cuts
from benchmarks.disks import PAUSE, Case, disks
from benchmarks.figures import Figures
from benchmarks.interrupted import backups, makings, restores
from benchmarks.light import Served, light_settings, served
from benchmarks.postgres import postgres_cases
from benchmarks.visitor import RefusedError, Visitor

SPAN = 6.0  # clicks within which a kill falls, in times of the mean click
BATCH = 50  # kills on one account, which is deleted then, so that a look at all of it stays short
MAKINGS, BACKUPS = 12, 6  # kills of each kind of making; backups, and restores


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
    rng, result, ledger = random.Random(seed), Kills(), Ledger()  # noqa: S311
    stores, start, click_seconds = Stores(settings), time.perf_counter(), 1.0
    for n in range(count):
        try:
            with served(settings, PAUSE) as page:
                clicks = Clicks(Visitor(page.url), stores, ledger, rng)
                click_seconds = (
                    _click_until_killed(page, clicks, result, rng.uniform(0, SPAN) * click_seconds) or 2 * click_seconds
                )
        except SequiturError as error:
            result.not_started.append(str(error))
        stored = stores.snapshot()
        losses = find_losses(ledger, stored)
        settle(ledger, stored)
        if losses:
            accept(ledger, stored)
        result.lost += losses
        if n % BATCH == BATCH - 1:
            Accounts(settings, stores.engine).delete(DEFAULT_USER)
            ledger.forget()
            result.lost += find_losses(ledger, stores.snapshot())
        result.kills += 1
        result.seconds = time.perf_counter() - start
        each(result)
    return result


def _click_until_killed(page: Served, clicks: Clicks, result: Kills, moment: float) -> float:
    """Click until the kill, `moment` seconds after the first click; returns the mean seconds of a click, or 0."""
    clicks.visitor.number("composer", "ask")
    start, timer = time.perf_counter(), Timer(moment, page.kill)
    timer.start()
    try:
        while True:
            clicks.click()
    except httpx.HTTPError:
        pass
    except RefusedError as error:
        result.refused.append(f"{clicks.under_way}: {error}")
    page.kill()
    timer.join()
    page.wait()
    result.during[clicks.under_way] += 1
    result.acknowledged += clicks.acknowledged
    result.lost += clicks.mix_ups
    clicks.visitor.close()
    done_count = clicks.acknowledged.total()
    return (time.perf_counter() - start) / done_count if done_count else 0.0


# --- the command --------------------------------------------------------------------------------------------------


def faults(
    count: Annotated[int, typer.Option("--kills", min=0, help="Kills of the served process.")] = 1000,
    cut: Annotated[int, typer.Option("--cuts", min=0, help="Cuts of the database, and of an index.")] = 20,
    seed: Annotated[int, typer.Option(help="Decides clicks, moments and places.")] = 0,
    only: Annotated[str, typer.Option(help="kills, cases, cuts, makings or backups.", show_default="all")] = "",
    database: Annotated[
        str, typer.Option(help="Address of an empty PostgreSQL for kills and cases.", show_default="a file of SQLite")
    ] = "",
    *,
    figures: Figures,
) -> None:
    """Kill the served page at random moments, fill its disk, cut its files; tell what acknowledged things were lost."""
    server = database if database and is_postgres(database) else ""
    with TemporaryDirectory() as name:
        folder = Path(name)
        settings = light_settings(folder / "kills", database=database)
        result = kills(settings, count if only in {"", "kills"} else 0, seed, _tell)
        groups = _groups(folder, cut, seed, server).items()
        cases = [_kills_case(result)] if result.kills else []
        cases += [_print_case(case) for name, make in groups if only in {"", name} for case in make()]
    report = {
        "seed": seed,
        "database": "postgresql" if server else "sqlite",
        "kills": vars(result),
        "cases": [[case.name, case.outcome, case.passed] for case in cases],
    }
    summary = {case.name: {"what came of it": case.outcome, "right": case.passed} for case in cases}
    clicks = {kind: {"acknowledged": result.acknowledged[kind], "killed in it": result.during[kind]} for kind in KINDS}
    figures.tell("faults", report, {"fault": summary, "click": clicks if result.kills else {}})


def _kills_case(result: Kills) -> Case:
    return Case(f"{result.kills} kills", _line(result), not (result.lost or result.not_started))


def _groups(folder: Path, cut_count: int, seed: int, server: str) -> dict[str, Callable[[], Iterable[Case]]]:
    return {
        "cases": lambda: postgres_cases(folder / "server", seed, server) if server else disks(folder / "disks", seed),
        "cuts": lambda: cuts(folder / "cuts", cut_count, seed),
        "makings": lambda: makings(folder / "makings", MAKINGS, seed),
        "backups": lambda: [
            backups(folder / "backups", BACKUPS, seed),
            restores(folder / "restores", BACKUPS, seed),
        ],
    }


def _print_case(case: Case) -> Case:
    error_console.print(f"{case.name}: {case.outcome}", style="dim" if case.passed else "", markup=False)
    return case


def _line(result: Kills) -> str:
    return (
        f"{result.acknowledged.total()} clicks acknowledged, {len(result.lost)} lost, {len(result.not_started)} starts "
        f"failed, {len(result.refused)} clicks refused, {result.seconds / max(result.kills, 1):.1f} s a kill"
    )


def _tell(result: Kills) -> None:
    if result.kills % 10 == 0 or result.lost or result.not_started:
        newest = " | ".join((*result.lost[-1:], *result.not_started[-1:], *result.refused[-1:]))
        error_console.print(f"{result.kills:5} kills: {_line(result)} {newest}".rstrip(), style="dim", markup=False)
