"""Plain text: paragraphs between blank lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from assistant.library.readers.shared.text import load_text, paragraphs, title_of
from assistant.text.chunks import Block

SUFFIXES = (".txt", ".text")
RECORDS = False


def read(path: Path) -> Iterator[Block]:
    """The paragraphs, under the file's name.

    Raises:
        LibraryError: the file is binary.
    """
    title = title_of(path)
    for paragraph in paragraphs(load_text(path)):
        yield Block(paragraph, title)
