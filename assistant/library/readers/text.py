"""Plain text: paragraphs between blank lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from assistant.library.readers.shared.text import load_text, plain_pieces, title_of, under_headings
from assistant.text.chunks import Block

SUFFIXES = (".txt", ".text")
RECORDS = False


def read(path: Path) -> Iterator[Block]:
    """The paragraphs, under the file's name.

    Raises:
        LibraryError: the file is binary.
    """
    yield from under_headings(plain_pieces(load_text(path)), title_of(path))
