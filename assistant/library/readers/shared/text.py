"""What readers share: text of unknown encoding, lines, titles from file names, paragraphs under their headings."""

from __future__ import annotations

import gzip
import re
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from assistant.errors import LibraryError
from assistant.text.chunks import Block
from assistant.text.sentences import clean

_PARAGRAPH = re.compile(r"\n\s*\n")
_SPACE = re.compile(r"\s+")
# A file with more characters than this that no text has is not text. A form feed and an escape do occur.
_CONTROLS = frozenset(map(chr, range(32))) - frozenset("\t\n\r\f\x1b")
CONTROLS_MOST = 0.01
# Text in another encoding that is taken for UTF-8 has hardly a whole character beyond ASCII.
DAMAGED_MOST = 0.2
LINE_CHARS = 50_000_000
# Text unpacks to three to ten times its size, what is made to fill a memory to a thousand times: so much is read.
UNPACKED_TIMES = 50
UNPACKED_CHARS = 50_000_000
# A longer title is none, but a heading that was never closed; it stands in every passage below it.
TITLE_CHARS = 200
_MARKS = {BOM_UTF8: "utf-8-sig", BOM_UTF16_LE: "utf-16", BOM_UTF16_BE: "utf-16"}
# What most text is in that is not in UTF-8.
WESTERN = "cp1252"


class Piece(NamedTuple):
    """A paragraph or a heading, as it stands in a document."""

    text: str
    is_heading: bool


def load_text(path: Path, otherwise: Callable[[bytes], str] = lambda _: WESTERN) -> str:
    """A file's text, in UTF-8, UTF-16 (with a byte order mark) or else the encoding that `otherwise` finds.

    Raises:
        LibraryError: the file is binary.
    """
    text = _decoded(path.read_bytes(), otherwise).replace("\r\n", "\n").replace("\r", "\n")
    if sum(one in _CONTROLS for one in text) > CONTROLS_MOST * len(text):
        raise LibraryError("it is not text")
    return text


def load_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file, which may be gzipped, without their ends.

    Raises:
        LibraryError: the file is not UTF-8, not gzip though its name says so, or unpacks to too much.
    """
    packed = path.name.lower().endswith(".gz")
    try:
        with (gzip.open if packed else open)(path, "rt", encoding="utf-8-sig", newline="\n") as file:
            most = max(UNPACKED_CHARS, UNPACKED_TIMES * path.stat().st_size)
            yield from _lines(file, most if packed else None)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise LibraryError(f"it is not a whole gzip file ({error})") from error
    except UnicodeDecodeError as error:
        raise LibraryError("it is not in UTF-8") from error


def title_of(path: Path) -> str:
    """A title from the file's name: "my_notes.txt" gives "my notes"."""
    return title_line(re.sub(r"[_]+", " ", path.stem)) or path.name


def tidy(text: str) -> str:
    """One line of text, with single spaces and no control characters."""
    return _SPACE.sub(" ", clean(text))


def title_line(text: str) -> str:
    """A title or a heading as one line, cut at a word where it is longer than one can be."""
    line = tidy(text)
    if len(line) <= TITLE_CHARS:
        return line
    return line[: TITLE_CHARS - 1].rsplit(" ", 1)[0] + "…"


def row_line(cells: Iterable[str]) -> str:
    """A table row as one line; an empty cell keeps its place, a row of empty cells is nothing."""
    cells = list(cells)
    return tidy(" | ".join(cells)) if any(cells) else ""


def under_headings(pieces: Iterable[Piece], title: str) -> list[Block]:
    """Paragraphs under the document's title and the heading that they follow.

    A heading is a block as well where no paragraph says it in its title: it has none, or is too long for one. Of a
    document without paragraphs some heading is one.
    """
    title = title_line(title)
    sections: list[tuple[str, list[str]]] = [("", [])]
    for piece in pieces:
        if piece.is_heading:
            sections.append((piece.text, []))
        elif piece.text:
            sections[-1][1].append(piece.text)
    blocks = [block for heading, texts in sections for block in _section(heading, texts, title)]
    return blocks or [Block(heading, title) for heading, _ in sections if heading][:1]


def paragraphs(text: str) -> list[str]:
    """What blank lines separate; the line breaks within are gone."""
    return [one for one in map(tidy, _PARAGRAPH.split(text)) if one]


def _section(heading: str, texts: list[str], title: str) -> Iterator[Block]:
    line = title_line(heading)
    if line != heading or (heading and not texts and not _is_said(heading, title)):
        yield Block(heading, title)
    under = title if line in {"", title} else f"{title} - {line}"
    yield from (Block(text, under) for text in texts)


def _is_said(words: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text) is not None


def _lines(file: IO[str], most: int | None) -> Iterator[str]:
    total = 0
    while line := file.readline(LINE_CHARS + 1):
        total += len(line)
        if len(line) > LINE_CHARS:
            raise LibraryError(f"it has a line of more than {LINE_CHARS:,} characters")
        if most and total > most:
            raise LibraryError(f"it unpacks to more than {most:,} characters; unpack it first")
        yield line.rstrip("\r\n")


def _decoded(data: bytes, otherwise: Callable[[bytes], str]) -> str:
    marked = next((encoding for mark, encoding in _MARKS.items() if data.startswith(mark)), "")
    if marked:
        return data.decode(marked, "replace")
    text = data.decode("utf-8", "replace")
    beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
    damaged = text.count("\ufffd") - data.count("\ufffd".encode())
    return text if damaged <= DAMAGED_MOST * beyond_ascii else data.decode(otherwise(data), "replace")
