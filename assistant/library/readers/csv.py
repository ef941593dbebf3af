"""Comma-separated values: `item,price` and then `Oats,12` is read as "item: Oats; price: 12".

Semicolons, tabs and bars may stand for the commas, whichever the first line has most of.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from assistant.library.readers.shared.tables import lines
from assistant.library.readers.shared.text import LINE_CHARS, load_text, title_of
from assistant.text.chunks import Block

SUFFIXES = (".csv",)
RECORDS = False
DELIMITERS = ",;\t|"

# The module takes no more than 131,072 characters otherwise.
csv.field_size_limit(LINE_CHARS)


def read(path: Path) -> Iterator[Block]:
    """The rows, with the names of their columns.

    Raises:
        LibraryError: the file is binary.
    """
    text, title = load_text(path), title_of(path)
    first_line = text.lstrip("\n").partition("\n")[0]
    delimiter = max(DELIMITERS, key=first_line.count)
    for row in lines(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)):
        yield Block(row.text, title, f"row {row.number}")
