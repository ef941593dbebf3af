"""Text whose lines are written backwards: an example of how little a reader takes.

"nietorp dloh slitneL" is read as "Lentils hold protein".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from assistant.library.readers._text import load_text, title_of
from assistant.text.chunks import Block

SUFFIXES = (".rev",)
RECORDS = False


def read(path: Path) -> Iterator[Block]:
    """A block a line, under the file's name.

    Raises:
        LibraryError: the file is binary.
    """
    for line in load_text(path).splitlines():
        yield Block(line[::-1], title_of(path))
