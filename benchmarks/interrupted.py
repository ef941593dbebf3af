"""Kills while documents are indexed and vectors are made, and backups of a data folder that is in use."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

import httpx
import numpy as np
from numpy.typing import NDArray

from assistant.errors import SequiturError
from assistant.library.index import list_documents
from assistant.library.shelves import open_library, own_library
from assistant.library.vectors import dense_retriever
from assistant.protocols import silent
from assistant.settings import Settings
from assistant.store.users import DEFAULT_USER
from assistant.upkeep.backup import write_backup
from assistant.upkeep.restore import restore_backup
from benchmarks.clicks import Clicks, Ledger, Stores
from benchmarks.disks import PAUSE, Case
from benchmarks.light import WORDS, light_settings, served
from benchmarks.visitor import RefusedError, Visitor

LIBRARY = "kept"
FILES, PARAGRAPHS = 3, 400  # documents that come with each call of `index`, and how long they are
BATCH_SECONDS = 0.05  # that the vectors of a batch take at least, so that a kill falls among them
ADDS = (5, 0, 0, 4, 0, 0, 2, 0)  # clicks while a backup is taken: those that add something, and none that takes it away


@dataclass
class KillResults:
    """What came of the kills of one kind of making: how many fell into it, and what was wrong after them."""

    kills: int = 0
    ended_before: int = 0
    problems: list[str] = field(default_factory=list)


def makings(folder: Path, count: int, seed: int) -> Iterator[Case]:
    """Kill `index`, and then the making of vectors, so many times each at random moments."""
    settings, texts = light_settings(folder / "data"), folder / "texts"
    texts.mkdir(parents=True)
    rng = random.Random(seed)  # noqa: S311
    yield _case("index", _indexings(settings, texts, count, rng))
    yield _case("the making of vectors", _encodings(settings, texts, count, rng))


def _case(kind: str, results: KillResults) -> Case:
    summary = f"{results.kills - results.ended_before} fell into it, {results.ended_before} after its end; "
    summary += f"{len(results.problems)} times something was wrong afterwards"
    problems = f": {' | '.join(results.problems[:3])}" if results.problems else ""
    return Case(f"{results.kills} kills of {kind}", summary + problems, not results.problems)


def _indexings(settings: Settings, texts: Path, count: int, rng: random.Random) -> KillResults:
    """Kill `index` at work, then run it to its end: earlier documents must never be missing, nor the new ones then."""
    results, indexed_names, call_seconds = KillResults(), set[str](), 0.0
    for n in range(-1, count):
        new_files = _texts(texts, n)
        command = [sys.executable, "-m", "assistant", "index", *map(str, new_files), "--library", LIBRARY]
        command += ["--data-dir", str(settings.data_dir)]
        if call_seconds:  # the first call tells how long one takes
            results.kills += 1
            results.ended_before += _kill_after(command, rng.uniform(0.3, 1) * call_seconds)
            results.problems += _missing_documents(indexed_names, settings, "after a kill")
        start = time.perf_counter()
        completed = subprocess.run(command, capture_output=True, text=True, check=False)
        call_seconds = time.perf_counter() - start
        results.problems += (
            [f"index ends with {completed.returncode}: {completed.stderr[-200:]}"] if completed.returncode else []
        )
        indexed_names |= {file.name for file in new_files}
        results.problems += _missing_documents(indexed_names, settings, "once it was indexed again")
    return results


def _texts(folder: Path, number: int) -> list[Path]:
    """Documents that say which they are."""
    files = [folder / f"n{number + 1}x{n}.txt" for n in range(FILES)]
    for file in files:
        sentence = f"The key {file.stem} hangs behind the green door."
        file.write_text("\n\n".join(f"{sentence} It is the paragraph of number {n}." for n in range(PARAGRAPHS)))
    return files


def _kill_after(command: Sequence[str], seconds: float) -> bool:
    """Start a program, and kill it after so many seconds; whether it had ended before that."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return False
    return True


def _missing_documents(names: set[str], settings: Settings, moment: str) -> list[str]:
    """What of the documents of earlier calls is not listed, or not found by what it says."""
    if not names:
        return []
    try:
        listed_names = {document.name for document in list_documents(LIBRARY, settings)}
        library = open_library(LIBRARY, settings)
        found_names = {
            name for name in names if any(name[:-4] in passage.text for passage in library.search(name[:-4], 1))
        }
    except SequiturError as error:
        return [f"{moment}: {error}"]
    return [f"{moment} {name} is gone" for name in sorted(names - (listed_names & found_names))]


class Slow:
    """The vectors of words, which take their time."""

    name = "slow"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As the Protocol has it."""
        time.sleep(BATCH_SECONDS)
        return WORDS.encode(texts)


def encode(folder: str) -> None:
    """Make the vectors of the library in a data folder; the process that is killed calls this."""
    settings = light_settings(Path(folder))
    dense_retriever(LIBRARY, open_library(LIBRARY, settings), settings, Slow(), silent)


def _encodings(settings: Settings, texts: Path, count: int, rng: random.Random) -> KillResults:
    """Kill the making of vectors, then run it to its end: a search by them must then find each document by its text."""
    results, call_seconds = KillResults(), 0.0
    command = [sys.executable, "-c", f"from {__name__} import encode; encode({str(settings.data_dir)!r})"]
    for n in range(-1, count):
        folder = settings.data_dir / "dense"
        if folder.exists():  # the next are made from nothing
            folder.rename(settings.data_dir / f"dense before {n + 1}")
        if call_seconds:
            results.kills += 1
            results.ended_before += _kill_after(command, rng.uniform(0.3, 1) * call_seconds)
        start = time.perf_counter()
        completed = subprocess.run(command, capture_output=True, text=True, check=False)
        call_seconds = call_seconds or time.perf_counter() - start
        results.problems += (
            [f"it ends with {completed.returncode}: {completed.stderr[-200:]}"] if completed.returncode else []
        )
        results.problems += _unfound(settings, texts)
    return results


def _unfound(settings: Settings, texts: Path) -> list[str]:
    """The documents that a search by vectors doesn't find."""
    try:
        vectors = dense_retriever(LIBRARY, open_library(LIBRARY, settings), settings, Slow(), silent)
        names = [file.stem for file in texts.iterdir()]
        passages_by_name = {name: vectors.search(f"The key {name} hangs behind the green door.", 1) for name in names}
    except SequiturError as error:
        return [str(error)]
    return [
        f"{name} is not found by its vector"
        for name, passages in passages_by_name.items()
        if not passages or name not in passages[0].text
    ]


def backups(folder: Path, count: int, seed: int) -> Case:
    """Backups while a person asks, tells and uploads at a served page: each brings back all that was told before it."""
    settings, ledger, stop = light_settings(folder / "data"), Ledger(), Event()
    problems, errors = list[str](), list[str]()
    with served(settings, PAUSE) as page:
        clicks = Clicks(Visitor(page.url), Stores(settings), ledger, random.Random(seed), ADDS)  # noqa: S311
        clicking = Thread(target=_click, args=(clicks, stop, errors))
        clicking.start()
        try:
            for n in range(count):
                clicks_before = clicks.acknowledged.total()
                while clicks.acknowledged.total() < clicks_before + len(ADDS) and clicking.is_alive():
                    time.sleep(0.05)
                problems += _missing_from_backup(settings, folder, n, ledger)
        finally:
            stop.set()
            clicking.join()
            clicks.visitor.close()
    summary = f"{clicks.acknowledged.total()} clicks acknowledged meanwhile"
    summary += f"; {len(problems)} things missing in what they bring back"
    return Case(
        f"{count} backups beside use", " | ".join((summary, *problems[:3], *errors[:3])), not problems and not errors
    )


def _click(clicks: Clicks, stop: Event, errors: list[str]) -> None:
    while not stop.is_set():
        try:
            clicks.click()
        except RefusedError as error:
            errors.append(f"a click was refused: {error}")
        except httpx.HTTPError as error:
            errors.append(f"the page is gone: {error!r}")
            return


def _missing_from_backup(settings: Settings, folder: Path, number: int, ledger: Ledger) -> list[str]:
    """What was acknowledged before a backup was begun, and is not in what it brings back."""
    facts, replies, documents = set(ledger.facts), dict(ledger.replies), set(ledger.documents)
    file, restored = folder / f"{number}.zip", light_settings(folder / f"restored {number}")
    try:
        write_backup(settings, file, None)
        restore_backup(file, restored, folder / "settings.toml")
        stores = Stores(restored)
        stored = stores.snapshot()
        library = open_library(own_library(DEFAULT_USER), restored) if documents else None
        found_names = {name for name in documents if library and library.search(f"The key {name[:-4]}", 1)}
    except SequiturError as error:
        return [f"backup {number + 1}: {error}"]
    missing = {
        *(facts - stored.facts),
        *(documents - (stored.documents & found_names)),
        *(replies.keys() - stored.turns.keys()),
    }
    unfinished = {mark for mark in replies.keys() & stored.turns.keys() if stored.turns[mark][0].turn.status != "done"}
    return [f"backup {number + 1} has no {item}" for item in sorted(missing | unfinished)]
