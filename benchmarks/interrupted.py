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
from assistant.store.users import ME
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
class Ends:
    """What came of the kills of one kind of making: how many fell into it, and what was wrong after them."""

    kills: int = 0
    ended_before: int = 0
    wrong: list[str] = field(default_factory=list)


def makings(folder: Path, count: int, seed: int) -> Iterator[Case]:
    """Kill `index`, and then the making of vectors, so many times each at random moments."""
    settings, texts = light_settings(folder / "data"), folder / "texts"
    texts.mkdir(parents=True)
    chance = random.Random(seed)  # noqa: S311
    yield _case("index", _indexings(settings, texts, count, chance))
    yield _case("the making of vectors", _encodings(settings, texts, count, chance))


def _case(what: str, ends: Ends) -> Case:
    said = f"{ends.kills - ends.ended_before} fell into it, {ends.ended_before} after its end; "
    said += f"{len(ends.wrong)} times something was wrong afterwards"
    told = f": {' | '.join(ends.wrong[:3])}" if ends.wrong else ""
    return Case(f"{ends.kills} kills of {what}", said + told, not ends.wrong)


def _indexings(settings: Settings, texts: Path, count: int, chance: random.Random) -> Ends:
    """Documents are added, killed at, added again: those of earlier calls are there all the time, these in the end."""
    ends, kept, pace = Ends(), set[str](), 0.0
    for n in range(-1, count):
        fresh = _texts(texts, n)
        command = [sys.executable, "-m", "assistant", "index", *map(str, fresh), "--library", LIBRARY]
        command += ["--data-dir", str(settings.data_dir)]
        if pace:  # the first call tells how long one takes
            ends.kills += 1
            ends.ended_before += _killed(command, chance.uniform(0.3, 1) * pace)
            ends.wrong += _gone(kept, settings, "after a kill")
        began = time.perf_counter()
        again = subprocess.run(command, capture_output=True, text=True, check=False)
        pace = time.perf_counter() - began
        ends.wrong += [f"index ends with {again.returncode}: {again.stderr[-200:]}"] if again.returncode else []
        kept |= {file.name for file in fresh}
        ends.wrong += _gone(kept, settings, "once it was indexed again")
    return ends


def _texts(folder: Path, number: int) -> list[Path]:
    """Documents that say which they are."""
    files = [folder / f"n{number + 1}x{n}.txt" for n in range(FILES)]
    for file in files:
        said = f"The key {file.stem} hangs behind the green door."
        file.write_text("\n\n".join(f"{said} It is the paragraph of number {n}." for n in range(PARAGRAPHS)))
    return files


def _killed(command: Sequence[str], seconds: float) -> bool:
    """Start a program, and kill it after so many seconds; whether it had ended before that."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return False
    return True


def _gone(kept: set[str], settings: Settings, when: str) -> list[str]:
    """What of the documents of earlier calls is not listed, or not found by what it says."""
    if not kept:
        return []
    try:
        listed = {one.name for one in list_documents(LIBRARY, settings)}
        library = open_library(LIBRARY, settings)
        found = {name for name in kept if any(name[:-4] in one.text for one in library.search(name[:-4], 1))}
    except SequiturError as error:
        return [f"{when}: {error}"]
    return [f"{when} {name} is gone" for name in sorted(kept - (listed & found))]


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


def _encodings(settings: Settings, texts: Path, count: int, chance: random.Random) -> Ends:
    """Vectors are made, killed at, made again: then a search by them finds each document by what it says."""
    ends, pace = Ends(), 0.0
    command = [sys.executable, "-c", f"from {__name__} import encode; encode({str(settings.data_dir)!r})"]
    for n in range(-1, count):
        folder = settings.data_dir / "dense"
        if folder.exists():  # the next are made from nothing
            folder.rename(settings.data_dir / f"dense before {n + 1}")
        if pace:
            ends.kills += 1
            ends.ended_before += _killed(command, chance.uniform(0.3, 1) * pace)
        began = time.perf_counter()
        again = subprocess.run(command, capture_output=True, text=True, check=False)
        pace = pace or time.perf_counter() - began
        ends.wrong += [f"it ends with {again.returncode}: {again.stderr[-200:]}"] if again.returncode else []
        ends.wrong += _unfound(settings, texts)
    return ends


def _unfound(settings: Settings, texts: Path) -> list[str]:
    """The documents that a search by vectors doesn't find."""
    try:
        vectors = dense_retriever(LIBRARY, open_library(LIBRARY, settings), settings, Slow(), silent)
        names = [file.stem for file in texts.iterdir()]
        found = {name: vectors.search(f"The key {name} hangs behind the green door.", 1) for name in names}
    except SequiturError as error:
        return [str(error)]
    return [f"{name} is not found by its vector" for name, one in found.items() if not one or name not in one[0].text]


def backups(folder: Path, count: int, seed: int) -> Case:
    """Backups while a person asks, tells and uploads at a served page: each brings back all that was told before it."""
    settings, ledger, over = light_settings(folder / "data"), Ledger(), Event()
    wrong, said = list[str](), list[str]()
    with served(settings, PAUSE) as page:
        clicks = Clicks(Visitor(page.url), Stores(settings), ledger, random.Random(seed), ADDS)  # noqa: S311
        clicking = Thread(target=_click, args=(clicks, over, said))
        clicking.start()
        try:
            for n in range(count):
                before = clicks.done.total()
                while clicks.done.total() < before + len(ADDS) and clicking.is_alive():
                    time.sleep(0.05)
                wrong += _taken(settings, folder, n, ledger)
        finally:
            over.set()
            clicking.join()
            clicks.visitor.close()
    told = f"{clicks.done.total()} clicks acknowledged meanwhile; {len(wrong)} things missing in what they bring back"
    return Case(f"{count} backups beside use", " | ".join((told, *wrong[:3], *said[:3])), not wrong and not said)


def _click(clicks: Clicks, over: Event, said: list[str]) -> None:
    while not over.is_set():
        try:
            clicks.click()
        except RefusedError as error:
            said.append(f"a click was refused: {error}")
        except httpx.HTTPError as error:
            said.append(f"the page is gone: {error!r}")
            return


def _taken(settings: Settings, folder: Path, number: int, ledger: Ledger) -> list[str]:
    """What was acknowledged before a backup was begun, and is not in what it brings back."""
    facts, replies, documents = set(ledger.facts), dict(ledger.replies), set(ledger.documents)
    file, restored = folder / f"{number}.zip", light_settings(folder / f"restored {number}")
    try:
        write_backup(settings, file, None)
        restore_backup(file, restored, folder / "settings.toml")
        stores = Stores(restored)
        seen = stores.seen()
        library = open_library(own_library(ME), restored) if documents else None
        found = {name for name in documents if library and library.search(f"The key {name[:-4]}", 1)}
    except SequiturError as error:
        return [f"backup {number + 1}: {error}"]
    missing = {*(facts - seen.facts), *(documents - (seen.documents & found)), *(replies.keys() - seen.turns.keys())}
    unfinished = {mark for mark in replies.keys() & seen.turns.keys() if seen.turns[mark][0].turn.status != "done"}
    return [f"backup {number + 1} has no {one}" for one in sorted(missing | unfinished)]
