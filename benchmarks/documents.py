"""`bench documents`: how fast documents are read and indexed, and whether questions about them find their passages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Annotated

import typer

from assistant.commands.experiment import print_summary
from assistant.errors import DataError
from assistant.experiment.datasets import read_models
from assistant.experiment.options import AsJson
from assistant.experiment.task import Summary
from assistant.library.passages import passages_of
from assistant.library.readers import read
from assistant.library.writer import writing
from assistant.retrieve.bm25 import Bm25
from assistant.types import Passage
from benchmarks.extractors import compare_extractors
from benchmarks.growth import growth

QUESTIONS = Path(__file__).with_suffix(".jsonl")
FIRST, FOUR = 1, 4
LARGEST = 10_000


@dataclass(frozen=True, slots=True)
class DocumentQuestion:
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
    questions: Annotated[
        Path,
        typer.Option(help="Questions about them, with words of the answer.", show_default="benchmarks/documents.jsonl"),
    ] = QUESTIONS,
    largest: Annotated[
        int, typer.Option(help="Passages that a library grows to: 1,000, 10,000, 30,000 or 100,000; 0 for none.")
    ] = LARGEST,
    as_json: AsJson = False,
) -> None:
    """Read and index documents, and look whether questions find the passages that answer them, by words (BM25).

    The passages are searched as they are, and without their headings. Of PDFs that sentences were copied from by eye
    (`extractors.jsonl`), it tells how many of these are found whole, beside another program that reads PDFs.
    """
    readings = [reading_of(path) for path in paths]
    passages = [passage for reading in readings for passage in reading.passages]
    names, all_questions = (
        {path.name for path in paths},
        read_models(questions, DocumentQuestion, "no question about a document"),
    )
    asked_questions = [question for question in all_questions if question.document in names]
    bare_passages = [replace(passage, heading="") for passage in passages]
    search_rows: Summary = {}
    for name, searched_passages in (("with headings", passages), ("without", bare_passages)):
        ranks = {
            question: rank_of(question, searched_passages, found_passages)
            for question, found_passages in _search(asked_questions, searched_passages)
        }
        hits = {f"in the first {depth}": sum(0 < rank <= depth for rank in ranks.values()) for depth in (FIRST, FOUR)}
        missed = [question.question for question, rank in ranks.items() if not 0 < rank <= FOUR]
        search_rows[name] = {"questions": len(asked_questions), **hits, "missed": missed}
    growth_rows = growth(passages, [question.question for question in asked_questions], largest)
    summary = {
        "document": {reading.name: _summary(reading) for reading in readings},
        "searched": search_rows,
        "text": compare_extractors(paths),
        "passages": growth_rows,
    }
    print_summary({name: table for name, table in summary.items() if table}, as_json)


def reading_of(path: Path) -> Reading:
    """Read a document, and cut it into passages.

    Raises:
        LibraryError: it can't be read; the message is the reason.
    """
    start = process_time()
    blocks = read(path)
    passages = passages_of(blocks, path.name, path.name)
    return Reading(path.name, max(block.page for block in blocks), process_time() - start, passages)


def rank_of(question: DocumentQuestion, passages: Iterable[Passage], found_passages: Sequence[Passage]) -> int:
    """The place, from 1, of the first of the found passages that answers; 0 where none does.

    Raises:
        DataError: no passage there is has the words, so that nothing could be found.
    """
    if not any(map(question.is_answered, passages)):
        raise DataError(f"No passage of {question.document} says '{question.says}'; mend the question or its words.")
    return next((n for n, passage in enumerate(found_passages, 1) if question.is_answered(passage)), 0)


def _search(
    questions: Sequence[DocumentQuestion], passages: Sequence[Passage]
) -> Iterator[tuple[DocumentQuestion, list[Passage]]]:
    with TemporaryDirectory() as folder:
        with writing(Path(folder)) as writer:
            writer.add("documents", passages)
            writer.commit({})
        library = Bm25(Path(folder))
        for question in questions:
            yield question, library.search(question.question, FOUR)


def _summary(reading: Reading) -> Summary:
    return {
        "pages": reading.pages or None,
        "seconds of a processor": reading.seconds,
        "pages a second": reading.pages / reading.seconds if reading.pages else None,
        "passages": len(reading.passages),
        "with a heading": sum(bool(passage.heading) for passage in reading.passages),
    }


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))
