"""Files of the data folder that are cut at a random place: what a start on what is left of them comes to."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from assistant.errors import SequiturError
from assistant.library.index import list_documents
from assistant.library.originals import FOLDER
from assistant.library.shelves import library_folder, open_library, own_library
from assistant.settings import Settings
from assistant.store.database import database_file
from assistant.store.users import DEFAULT_USER
from benchmarks.clicks import Stores
from benchmarks.disks import Case, refusal
from benchmarks.light import light_settings, served
from benchmarks.visitor import Visitor

FACTS = tuple(f"I like oats of kind {n}." for n in range(30))
LATER = "I like a new kind of oats."
KEY, LAMP = b"The key hangs behind the green door. " * 50, b"The lamp stands on the table."
DAMAGED = ("damaged", "be read")  # what a sentence says that tells of a cut file
WORKS, UNCLEAR, LOST = "works, all of it is there", "unclear", "starts, and says nothing of what is gone"
Outcome = tuple[str, str]


def cuts(folder: Path, count: int, seed: int) -> Iterator[Case]:
    """Cut each kind of file so many times, in copies of one data folder that a killed page left.

    That leaves the last facts in the log that SQLite writes ahead; for half of the kinds it is brought into the
    database first.
    """
    rng, original = random.Random(seed), folder / "whole"  # noqa: S311
    with served(light_settings(original)) as page:
        visitor = Visitor(page.url)
        for fact in FACTS:
            visitor.send("facts", "store", text=fact)
        visitor.upload("a.txt", KEY)
        visitor.close()
    kinds: dict[str, tuple[Callable[[Settings], list[Path]], Callable[[Settings], Outcome]]] = {
        "database": (_closed, _facts_after),
        "database with its log beside it": (lambda settings: [_database(settings)], _facts_after),
        "log of the database": (lambda settings: [_log(settings)], _facts_after),
        "index": (_index, _documents_after),
        "copy of a document": (_copies, _copy_after),
    }
    for name, kind in kinds.items():
        yield _cut_all(original, folder, name, count, rng, *kind)


def _cut_all(
    original: Path,
    folder: Path,
    name: str,
    count: int,
    rng: random.Random,
    files: Callable[[Settings], list[Path]],
    check: Callable[[Settings], Outcome],
) -> Case:
    outcomes, messages = Counter[str](), list[str]()
    for n in range(count):
        settings = light_settings(Path(shutil.copytree(original, folder / f"{name} {n}")))
        _cut(rng.choice(files(settings)), rng)
        outcome, message = check(settings)
        outcomes[outcome] += 1
        messages += [message] if outcome in {UNCLEAR, LOST} else []
        shutil.rmtree(settings.data_dir)
    counts = "; ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items()))
    return Case(f"{name} cut at {count} random places", f"{counts} {' | '.join(messages[:3])}".strip(), not messages)


def _cut(file: Path, rng: random.Random) -> None:
    with file.open("rb+") as handle:
        handle.truncate(rng.randrange(file.stat().st_size))


def _database(settings: Settings) -> Path:
    file = database_file(settings.database_url)
    assert file  # noqa: S101 - the light page's is one
    return file


def _log(settings: Settings) -> Path:
    return _database(settings).with_name(f"{_database(settings).name}-wal")


def _closed(settings: Settings) -> list[Path]:
    """The database, with all that was in the log."""
    with closing(sqlite3.connect(_database(settings))) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return [_database(settings)]


def _library(settings: Settings) -> Path:
    return library_folder(own_library(DEFAULT_USER), settings)


def _index(settings: Settings) -> list[Path]:
    return sorted(path for path in _library(settings).iterdir() if path.is_file() and path.stat().st_size > 1)


def _copies(settings: Settings) -> list[Path]:
    return sorted((_library(settings) / FOLDER).iterdir())


def _facts_after(settings: Settings) -> Outcome:
    """A start, and one more fact."""
    outcome, message = _start(settings, lambda visitor: visitor.send("facts", "store", text=LATER))
    if outcome != WORKS:
        return outcome, message
    stored_facts = {fact.text for fact in Stores(settings).facts()}
    missing_facts = {*FACTS, LATER} - stored_facts
    return (LOST, f"{len(missing_facts)} of {len(FACTS) + 1} facts are gone") if missing_facts else (WORKS, "")


def _documents_after(settings: Settings) -> Outcome:
    """A start, one more document, and a search for what both say."""
    outcome, message = _start(settings, lambda visitor: visitor.upload("b.txt", LAMP))
    if outcome != WORKS:
        return outcome, message
    try:
        names = {document.name for document in list_documents(own_library(DEFAULT_USER), settings)}
        library = open_library(own_library(DEFAULT_USER), settings)
        rankings = [library.search(question, 3) for question in ("the green door", "the table")]
    except SequiturError as error:
        return "told when it is searched", str(error)
    if names != {"a.txt", "b.txt"}:
        return LOST, f"only {', '.join(sorted(names)) or 'nothing'} is there"
    return (WORKS, "") if all(rankings) else (LOST, "a document is listed and not found")


def _copy_after(settings: Settings) -> Outcome:
    """A start, the document asked for, and added once more."""
    texts = list[str]()

    def act(visitor: Visitor) -> None:
        [document] = Stores(settings).documents().values()
        texts.append(visitor.client.get(f"/original/{document}").text)
        visitor.upload("a.txt", KEY)
        texts.append(visitor.client.get(f"/original/{document}").text)

    outcome, message = _start(settings, act)
    if outcome != WORKS:
        return outcome, message
    cut_text, new_text = texts
    is_reported = all(word not in cut_text for word in ("green", "key")) and any(word in cut_text for word in DAMAGED)
    if not is_reported or new_text.encode() != KEY:
        return LOST, f"the copy says {cut_text[:40]!r}, and {new_text[:40]!r} after it was added anew"
    return "told where it is asked for, and whole once the document is added again", ""


def _start(settings: Settings, act: Callable[[Visitor], object]) -> Outcome:
    """How a start went, and a click after it."""
    try:
        with served(settings) as page:
            visitor = Visitor(page.url)
            message = refusal(lambda: act(visitor))
            visitor.close()
    except SequiturError as error:
        return (UNCLEAR if "It ended" in str(error) else "told at the start"), str(error)
    if not message:
        return WORKS, ""
    return ("told on the page" if any(word in message for word in DAMAGED) else UNCLEAR), message
