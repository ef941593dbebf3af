"""Kills while documents are indexed and vectors are made; backups, and restores, of a data folder that is in use."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
UNKNOWN = "The conversation was not found"  # what is said where one goes on that the backup didn't have
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
    settings, problems = light_settings(folder / "data"), list[str]()
    with _clicking(settings, seed) as person:
        for n in range(count):
            person.wait()
            problems += _missing_from_backup(settings, folder, n, person.told())
    return person.case(f"{count} backups beside use", problems, "missing in what they bring back")


def restores(folder: Path, count: int, seed: int) -> Case:
    """Restores while a person asks, tells and uploads at a served page: all that was told is there, or kept aside."""
    settings, file = light_settings(folder / "data"), folder / "kept.zip"
    kept_aside, problems = set[str](), list[str]()
    with _clicking(settings, seed) as person:
        person.wait()
        told_before = person.told()
        write_backup(settings, file, None)
        for n in range(count):
            person.wait()
            [aside] = restore_backup(file, settings, folder / "settings.toml").kept
            kept_aside |= _kept(light_settings(aside))
            problems += [f"restore {n + 1} has no {item}" for item in sorted(told_before - _kept(settings))]
        person.wait()
    problems += [f"{item} is nowhere" for item in sorted(person.told() - kept_aside - _kept(settings))]
    return person.case(f"{count} restores beside use", problems, "neither there nor kept aside", UNKNOWN)


class Person(Thread):
    """Asks, tells and uploads at a page until `stop` is set."""

    def __init__(self, url: str, settings: Settings, seed: int) -> None:
        super().__init__()
        self._ledger, self.stop, self._errors = Ledger(), Event(), list[str]()
        self._clicks = Clicks(Visitor(url), Stores(settings), self._ledger, random.Random(seed), ADDS)  # noqa: S311

    def run(self) -> None:
        """Click."""
        while not self.stop.is_set():
            try:
                self._clicks.click()
            except RefusedError as error:
                self._errors.append(f"a click was refused: {error}")
            except httpx.HTTPError as error:
                self._errors.append(f"the page is gone: {error!r}")
                break
        self._clicks.visitor.close()

    def wait(self) -> None:
        """Until some more clicks are acknowledged."""
        clicks_before = self._clicks.acknowledged.total()
        while self._clicks.acknowledged.total() < clicks_before + len(ADDS) and self.is_alive():
            time.sleep(0.05)

    def told(self) -> set[str]:
        """What was acknowledged until now: facts, marks of questions, names of documents."""
        return set(self._ledger.facts) | set(self._ledger.replies) | set(self._ledger.documents)

    def case(self, name: str, problems: Sequence[str], problem_kind: str, expected_refusal: str = "") -> Case:
        """What came of it; refusals that say what is expected are no errors."""
        errors = [error for error in self._errors if not expected_refusal or expected_refusal not in error]
        summary = f"{self._clicks.acknowledged.total()} clicks acknowledged meanwhile"
        summary += f"; {len(problems)} things {problem_kind}"
        refused_count = len(self._errors) - len(errors)
        summary += f"; {refused_count} clicks refused: {expected_refusal}" if refused_count else ""
        return Case(name, " | ".join((summary, *problems[:3], *errors[:3])), not problems and not errors)


@contextmanager
def _clicking(settings: Settings, seed: int) -> Iterator[Person]:
    """Somebody who clicks at a page of their own meanwhile."""
    with served(settings, PAUSE) as page:
        person = Person(page.url, settings, seed)
        person.start()
        try:
            yield person
        finally:
            person.stop.set()
            person.join()


def _missing_from_backup(settings: Settings, folder: Path, number: int, told: set[str]) -> list[str]:
    """What was acknowledged before a backup was begun, and is not in what it brings back."""
    file, restored = folder / f"{number}.zip", light_settings(folder / f"restored {number}")
    try:
        write_backup(settings, file, None)
        restore_backup(file, restored, folder / "settings.toml")
        return [f"backup {number + 1} has no {item}" for item in sorted(told - _kept(restored))]
    except SequiturError as error:
        return [f"backup {number + 1}: {error}"]


def _kept(settings: Settings) -> set[str]:
    """Facts, the marks of questions with a whole answer, and the names of documents that are found by what they say."""
    stored = Stores(settings).snapshot()
    answered_marks = {mark for mark, replies in stored.turns.items() if replies[0].turn.status == "done"}
    library = open_library(own_library(DEFAULT_USER), settings) if stored.documents else None
    found_names = {
        name
        for name in stored.documents
        if library and any(name[:-4] in passage.text for passage in library.search(name[:-4], 1))
    }
    return {*stored.facts, *answered_marks, *found_names}
