"""Documents of every kind of `bombs.py` are read in a time that grows as they do."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from assistant.errors import LibraryError, SettingsError
from assistant.library.reading import read_here
from assistant.store.users import checked_name, checked_password
from benchmarks.bombs import BOMBS, MARKS, SIMILAR_BOMBS, write_bomb

# A document eight times as large takes eight times as long where time grows as it does, and 64 times where it grows by
# the square of that; a computer that does other work makes it three times as long at most.
TIMES, MOST_TIMES = 8, 24
LEAST_SECONDS = 0.02  # of a processor: less is as much as this, since it is too little to tell
TRIES = 3  # what grows by the square does so each time; what else a computer does is not always in the way
SHARE = 0.2  # of what the kind repeats in full, for the larger document
# Where that share takes seconds, though in line, or is too little to tell how it grows.
SHARES = {
    "bold.html": 0.05, "cell.xlsx": 0.005, "cells.docx": 0.05, "classes.html": 0.1, "columns.csv": 0.02,
    "columns.xlsx": 0.1, "corners.xlsx": 0.002, "empty.docx": 0.01, "headers.eml": 0.1, "images.md": 0.05,
    "line.csv": 0.1, "links.md": 0.05, "merged.docx": 0.02, "names.csv": 0.001, "nested.eml": 0.02, "p.html": 0.05,
    "packed.epub": 0.0003, "packed.jsonl.gz": 0.01, "packed.tsv.gz": 0.02, "packed.xlsx": 0.001, "parts.eml": 0.05,
    "rows.html": 0.03, "shapes.pptx": 0.01, "slashes.md": 0.1, "table.md": 0.5, "xml.docx": 0.001, "zeros.docx": 0.02,
}  # fmt: skip
# The others have no smaller ones, are PDFs, which PDFium reads and, without text, OCR, or share what they repeat.
KINDS = [
    name
    for name in [*BOMBS, *SIMILAR_BOMBS]
    if not name.endswith(".pdf") and not name.startswith(("laughs.", "corner.", "gap.", "self.", "groups.", "strings."))
]


def seconds(work: Callable[[], object]) -> float:
    """Seconds of a processor that a piece of work takes."""
    start = time.process_time()
    work()
    return time.process_time() - start


def grows_in_line(seconds_of: Callable[[float], float]) -> bool:
    """Whether eight times as much takes at most about eight times as long; `seconds_of` is told a share of all."""
    seconds_of(1 / TIMES)  # what is loaded and compiled for the first time is not counted
    return any(seconds_of(1.0) < MOST_TIMES * max(seconds_of(1 / TIMES), LEAST_SECONDS) for _ in range(TRIES))


def outcome(path: Path) -> str:
    """What becomes of a document: how many passages it makes, or why it makes none."""
    try:
        return f"{len(read_here(path, 'd', path.name).passages)} passages"
    except LibraryError as error:
        return str(error)


@pytest.mark.parametrize("name", KINDS)
def test_reading_takes_a_time_that_grows_as_the_document_does(tmp_path: Path, name: str) -> None:
    def seconds_of(share: float) -> float:
        file = write_bomb(tmp_path, name, share * SHARES.get(name, SHARE))
        return seconds(lambda: outcome(file))

    assert grows_in_line(seconds_of)


@pytest.mark.parametrize(("power", "in_line"), [(1, True), (2, False)])
def test_what_grows_by_the_square_is_told_from_what_grows_in_line(power: int, in_line: bool) -> None:
    assert grows_in_line(lambda share: 10 * share**power) is in_line


def test_names_and_passwords_of_many_marks_are_refused_before_they_are_put_in_order() -> None:
    for check in (checked_name, checked_password):
        with pytest.raises(SettingsError, match="characters"):
            check("e" + MARKS * 250_000)
