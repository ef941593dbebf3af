"""`bench documents`: how fast documents are read and indexed, and whether questions about them find their passages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from assistant.commands.common import out
from assistant.errors import DataError
from assistant.library.passages import passages_of
from assistant.library.readers import read
from assistant.library.writer import writing
from assistant.retrieve.bm25 import Bm25
from assistant.types import Passage
from benchmarks.growth import growth

QUESTIONS = Path(__file__).with_suffix(".jsonl")
FIRST, FOUR = 1, 4
LARGEST = 10_000


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about a document, and words of its text that answer it."""

    document: str
    question: str
    says: str

    def is_answered(self, passage: Passage) -> bool:
        """Whether this passage has these words, whatever stands between their letters."""
        return passage.source.startswith(self.document) and _letters(self.says) in _letters(passage.text)


@dataclass(frozen=True, slots=True)
class Reading:
    """What came of reading a document: its pages (0 where it has none), seconds of a processor, and its passages."""

    name: str
    pages: int
    seconds: float
    passages: Sequence[Passage]


def documents(
    paths: Annotated[list[Path], typer.Argument(help="Documents; one has to be a manual with 1,000 passages or so.")],
    questions: Annotated[Path, typer.Option(help="Questions about them, with words of the answer.")] = QUESTIONS,
    largest: Annotated[
        int, typer.Option(help="Passages that a library grows to: 1,000, 10,000, 30,000 or 100,000.")
    ] = LARGEST,
) -> None:
    """Read and index documents, and look whether questions find the passages that answer them, by words (BM25).

    The passages are searched as they are, and without their headings.
    """
    readings = [reading_of(path) for path in paths]
    out.print(_table_of(readings))
    passages = [passage for one in readings for passage in one.passages]
    asked = _asked(questions, [path.name for path in paths])
    bare = [replace(passage, heading="") for passage in passages]
    table = Table("searched", "questions", "in the first", f"in the first {FOUR}", "missed", box=None)
    for name, some in (("with headings", passages), ("without", bare)):
        ranks = {one: rank_of(one, some, found) for one, found in _searched(asked, some)}
        hits = [sum(0 < rank <= most for rank in ranks.values()) for most in (FIRST, FOUR)]
        missed = "; ".join(one.question for one, rank in ranks.items() if not 0 < rank <= FOUR)
        table.add_row(name, str(len(asked)), *map(str, hits), escape(missed))
    out.print(table)
    out.print(growth(passages, [one.question for one in asked], largest))


def reading_of(path: Path) -> Reading:
    """Read a document, and cut it into passages.

    Raises:
        LibraryError: it can't be read; the message is the reason.
    """
    start = process_time()
    passages = passages_of(read(path), path.name, path.name)
    return Reading(path.name, max(one.page for one in passages), process_time() - start, passages)


def rank_of(asked: Asked, passages: Iterable[Passage], found: Sequence[Passage]) -> int:
    """The place, from 1, of the first of the found passages that answers; 0 where none does.

    Raises:
        DataError: no passage there is has the words, so that nothing could be found.
    """
    if not any(map(asked.is_answered, passages)):
        raise DataError(f"No passage of {asked.document} says '{asked.says}'; mend the question or its words.")
    return next((n for n, passage in enumerate(found, 1) if asked.is_answered(passage)), 0)


def _searched(asked: Sequence[Asked], passages: Sequence[Passage]) -> Iterator[tuple[Asked, list[Passage]]]:
    with TemporaryDirectory() as folder:
        with writing(Path(folder)) as writer:
            writer.add("documents", passages)
            writer.commit({})
        library = Bm25(Path(folder))
        for one in asked:
            yield one, library.search(one.question, FOUR)


def _asked(path: Path, names: Sequence[str]) -> list[Asked]:
    try:
        asked = [Asked(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{path} can't be read: its lines need document, question and says ({error}).") from error
    return [one for one in asked if one.document in names]


def _table_of(readings: Iterable[Reading]) -> Table:
    table = Table("document", "pages", "read, of a processor", "pages a second", "passages", "with a heading", box=None)
    for one in readings:
        speed = f"{one.pages / one.seconds:.0f}" if one.pages else ""
        headed = sum(bool(passage.heading) for passage in one.passages)
        counts = str(len(one.passages)), str(headed)
        table.add_row(escape(one.name), str(one.pages or ""), f"{one.seconds:.1f} s", speed, *counts)
    return table


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))
