"""Comma-separated values: `item,price` and then `Oats,12` is read as "item: Oats; price: 12".

Semicolons, tabs and bars may stand for the commas, whichever divides most of the first rows into equally many cells.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from assistant.library.readers.shared.tables import lines
from assistant.library.readers.shared.text import LINE_CHARS, load_text, title_of
from assistant.text.chunks import Block

SUFFIXES = (".csv",)
RECORDS = False
# Of two that divide alike, the first is meant: commas stand in prices as well, and in titles.
DELIMITERS = ";\t|,"
SAMPLE_ROWS, SAMPLE_CHARS = 20, 100_000

# The module takes no more than 131,072 characters otherwise.
csv.field_size_limit(LINE_CHARS)


def read(path: Path) -> Iterator[Block]:
    """The rows, with the names of their columns.

    Raises:
        LibraryError: the file is binary.
    """
    text, title = load_text(path), title_of(path)
    sample = text[:SAMPLE_CHARS]
    delimiter = max(DELIMITERS, key=lambda delimiter: _evenness(sample, delimiter))
    for row in lines(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)):
        yield Block(row.text, title, f"row {row.number}")


def _evenness(sample: str, delimiter: str) -> tuple[int, int]:
    """Into how many cells a delimiter divides most rows, of those that it divides, behind how many these are."""
    rows = islice(csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter), SAMPLE_ROWS)
    counts = Counter(len(row) for row in rows if len(row) > 1)
    return max(((rows, cells) for cells, rows in counts.items()), default=(0, 0))
