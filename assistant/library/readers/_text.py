"""What readers share: text of unknown encoding, titles from file names, paragraphs."""

from __future__ import annotations

import gzip
import re
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from pathlib import Path

from assistant.errors import LibraryError
from assistant.text import clean

_PARAGRAPH = re.compile(r"\n\s*\n")
_SPACE = re.compile(r"\s+")
# A file with more characters than this that no text has is not text. A form feed and an escape do occur.
_CONTROLS = frozenset(map(chr, range(32))) - frozenset("\t\n\r\f\x1b")
CONTROLS_MOST = 0.01


def load_text(path: Path) -> str:
    """A file's text, in UTF-8, UTF-16 (with a byte order mark) or else Windows-1252.

    Raises:
        LibraryError: the file is binary.
    """
    text = _decoded(path.read_bytes()).replace("\r\n", "\n").replace("\r", "\n")
    if sum(one in _CONTROLS for one in text) > CONTROLS_MOST * len(text):
        raise LibraryError("it is not text")
    return text


def load_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file, which may be gzipped, without their ends.

    Raises:
        LibraryError: the file is not UTF-8, or not gzip though its name says so.
    """
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="\n") as lines:
            for line in lines:
                yield line.rstrip("\r\n")
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise LibraryError(f"it is not a whole gzip file ({error})") from error
    except UnicodeDecodeError as error:
        raise LibraryError("it is not in UTF-8") from error


def title_of(path: Path) -> str:
    """A title from the file's name: "my_notes.txt" gives "my notes"."""
    return tidy(re.sub(r"[_]+", " ", path.stem)) or path.name


def tidy(text: str) -> str:
    """One line of text, with single spaces and no control characters."""
    return _SPACE.sub(" ", clean(text))


def paragraphs(text: str) -> list[str]:
    """What blank lines separate; the line breaks within are gone."""
    return [one for one in map(tidy, _PARAGRAPH.split(text)) if one]


def _decoded(data: bytes) -> str:
    if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    try:
        return data.removeprefix(BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")
