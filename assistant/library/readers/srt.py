"""Subtitles (SubRip): what is said, without numbers and times.

One record:

    1
    00:00:01,000 --> 00:00:03,500
    Lentils are rich in protein.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from assistant.library.readers.shared.text import load_text, paragraphs, title_of
from assistant.text.chunks import Block

SUFFIXES = (".srt",)
RECORDS = False
# The lines before what is said: a number and the times.
_HEAD = 2


def read(path: Path) -> Iterator[Block]:
    """What is said, a block a record, under the file's name.

    Raises:
        LibraryError: the file is binary.
    """
    title = title_of(path)
    for record in load_text(path).split("\n\n"):
        for said in paragraphs("\n".join(record.strip().splitlines()[_HEAD:])):
            yield Block(said, title)
