"""What readers share: text of unknown encoding, lines, titles from file names, paragraphs under their headings."""

from __future__ import annotations

import gzip
import re
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import IO, NamedTuple

from assistant.errors import LibraryError
from assistant.text.chunks import Block
from assistant.text.sentences import clean

_PARAGRAPH = re.compile(r"\n\s*\n")
_EXPONENT = re.compile(r"\s*[+−–-]?\d")
# A list of terms: each begins a line; what it means stands behind a colon, after a few words, or indented below.
_ENTRY = re.compile(r"\n(?=\S)")
_DEFINITION = re.compile(r"(?:[^\s:]+ ){0,2}[^\s:]+: +\S|[^\n]{1,60}\n +\S")
# A line that is an item of a list, behind a sign, which says nothing, or with a number or a box, which do; or a row of
# a table.
_ITEM = re.compile(r"(?:[-–—*•·+] +|(?=\d{1,2}[.)] |\[[ xX]\] |[^|]*\|))(?=\S)")
# From a width of so many characters on, lines that come so near to it are those of running text that was wrapped.
_WRAPPED_CHARS, _FULL_SHARE = 60, 0.9
_SENTENCE_ENDS = ".!?:;"
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
# So long may the sign of a footnote be: "[citation needed]".
FOOTNOTE_CHARS = 40
_HEADING_SEPARATOR = " > "
_BYTE_ORDER_MARKS = {BOM_UTF8: "utf-8-sig", BOM_UTF16_LE: "utf-16", BOM_UTF16_BE: "utf-16"}
# What most text is in that is not in UTF-8.
WESTERN = "cp1252"


class Piece(NamedTuple):
    """A paragraph or a heading, as it stands in a document.

    A heading has a `level`, from 1 for the outermost; one without text ends the sections of its level and below. A
    `unit` is a paragraph that is kept whole, such as a term with its definition, or a list, whose lines stay apart;
    `page` is that of a PDF, from 1.
    """

    text: str
    level: int = 0
    unit: bool = False
    page: int = 0


class Headings:
    """The headings that a place in a document stands under, while it is read from its beginning to its end."""

    def __init__(self, title: str) -> None:
        """`title` is the document's: an outermost heading that it says need not be said twice."""
        self._title = title
        self._open: list[tuple[int, str]] = []

    def open(self, level: int, heading: str) -> None:
        """A heading of this level, from 1, stands here, which ends the sections of its level and below."""
        while self._open and self._open[-1][0] >= level:
            self._open.pop()
        if line := title_line(heading):
            self._open.append((level, line))

    @property
    def path(self) -> str:
        """All of them, the outermost first ("Care > Cleaning"); of too many, the innermost."""
        lines = [line for _, line in self._open]
        if lines and _contains_words(lines[0], self._title):
            del lines[0]
        while len(lines) > 1 and len(_HEADING_SEPARATOR.join(lines)) > TITLE_CHARS:
            del lines[0]
        return _HEADING_SEPARATOR.join(lines)


_EMPTY_PIECE = Piece("")


@dataclass(frozen=True, slots=True)
class _Section:
    """A heading, the path of those around it, its own path, and the paragraphs up to the next heading."""

    heading: Piece = _EMPTY_PIECE
    outer_path: str = ""
    path: str = ""
    pieces: list[Piece] = field(default_factory=list)


def load_text(path: Path, find_encoding: Callable[[bytes], str] = lambda _: WESTERN) -> str:
    """A file's text with all line ends alike; the encoding is as `decode_bytes` has it.

    Raises:
        LibraryError: the file is binary.
    """
    text = decode_bytes(path.read_bytes(), find_encoding).replace("\r\n", "\n").replace("\r", "\n")
    if sum(char in _CONTROLS for char in text) > CONTROLS_MOST * len(text):
        raise LibraryError("it is not text")
    return text


def decode_bytes(data: bytes, find_encoding: Callable[[bytes], str] = lambda _: WESTERN) -> str:
    """What bytes say in UTF-8, UTF-16 (with a byte order mark) or else the encoding that `find_encoding` finds."""
    marked_encoding = next((encoding for mark, encoding in _BYTE_ORDER_MARKS.items() if data.startswith(mark)), "")
    if marked_encoding:
        return data.decode(marked_encoding, "replace")
    text = data.decode("utf-8", "replace")
    beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
    damaged_count = text.count("\ufffd") - data.count("\ufffd".encode())
    return text if damaged_count <= DAMAGED_MOST * beyond_ascii else data.decode(find_encoding(data), "replace")


def load_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file, which may be gzipped, without their ends.

    Raises:
        LibraryError: the file is not UTF-8, not gzip though its name says so, or unpacks to too much.
    """
    is_gzipped = path.name.lower().endswith(".gz")
    try:
        with (gzip.open if is_gzipped else open)(path, "rt", encoding="utf-8-sig", newline="\n") as file:
            max_chars = max(UNPACKED_CHARS, UNPACKED_TIMES * path.stat().st_size)
            yield from _lines(file, max_chars if is_gzipped else None)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise LibraryError(f"it is not a whole gzip file ({error})") from error
    except UnicodeDecodeError as error:
        raise LibraryError("it is not in UTF-8") from error


def with_unique_ids(numbered_blocks: Iterable[tuple[int, Block]]) -> Iterator[Block]:
    """The blocks of a file's lines, which come with the numbers of these.

    Raises:
        LibraryError: an id comes twice; the message names both lines.
    """
    line_of_id: dict[str, int] = {}
    for number, block in numbered_blocks:
        if block.id in line_of_id:
            raise LibraryError(f"line {number}: the id '{block.id}' was used in line {line_of_id[block.id]}")
        line_of_id[block.id] = number
        yield block


def title_of(path: Path) -> str:
    """A title from the file's name: "my_notes.txt" gives "my notes"."""
    return title_line(re.sub(r"[_]+", " ", path.stem)) or path.name


def tidy(text: str) -> str:
    """One line of text, with single spaces and no control characters."""
    return " ".join(clean(text).split())


def superscript(text: str, before: str) -> str:
    """A superscript as it stands behind other text: a number behind a digit is an exponent ("10^6")."""
    return f"^{text}" if before[-1:].isdecimal() and _EXPONENT.match(text) else text


def is_footnote(text: str) -> bool:
    """Whether a superscript that is a link, or holds one, leads to a footnote: it is short."""
    return len(text) <= FOOTNOTE_CHARS


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
    """Paragraphs under the document's title and the headings that they follow.

    A heading is a block as well where no other block says it in its own: it has no paragraph and no section below, or
    is too long. Of a document without paragraphs some heading is one.
    """
    title = title_line(title)
    sections = _sections(pieces, title)
    blocks = [
        block
        for section, next_section in pairwise([*sections, _Section()])
        for block in _blocks(section, title, bool(section.pieces) or next_section.heading.level > section.heading.level)
    ]
    return blocks or [_block(section.heading, title, "") for section in sections if section.heading.text][:1]


def paragraphs(text: str) -> list[str]:
    """What blank lines separate; the line breaks within are gone."""
    return [paragraph for paragraph in map(tidy, _PARAGRAPH.split(text)) if paragraph]


def plain_pieces(text: str) -> Iterator[Piece]:
    """The paragraphs of plain text, those that aren't running text with their lines; each term of a list of terms."""
    for paragraph in _PARAGRAPH.split(text):
        entries = [tidy(entry) for entry in _ENTRY.split(paragraph.expandtabs().rstrip()) if entry.strip()]
        if len(entries) > 1 and all(map(_DEFINITION.match, _ENTRY.split(paragraph.expandtabs().strip()))):
            yield from (Piece(entry, unit=True) for entry in entries)
        elif (piece := piece_of(paragraph)).text:
            yield piece


def piece_of(paragraph: str) -> Piece:
    """A paragraph with line breaks: a line if it is running text, else a unit of its lines, without bullets."""
    text = "\n".join(_unwrapped(paragraph))
    return Piece(text, unit="\n" in text)


def _unwrapped(paragraph: str) -> list[str]:
    lines = [line for line in map(tidy, paragraph.split("\n")) if line]
    items = [_ITEM.match(line) for line in lines]
    breaks = [(line, next_line) for (line, next_line), item in zip(pairwise(lines), items[1:], strict=True) if not item]
    is_wrapped = _is_wrapped(breaks, max(map(len, lines), default=0))
    if is_wrapped and sum(map(bool, items)) < 2:  # a lone dash is one between two parts of a sentence
        return [" ".join(lines)]
    whole_lines = list[str]()
    for line, item in zip(lines, items, strict=True):
        if is_wrapped and not item and whole_lines:
            whole_lines[-1] += f" {line}"
        else:
            whole_lines.append(line[item.end() :] if item else line)
    return whole_lines


def _is_wrapped(breaks: Sequence[tuple[str, str]], width: int) -> bool:
    """Whether most lines were broken, before others, where the next word would not have fitted.

    Lines that are narrow may be alike by chance: most of these have to be broken within a sentence, too.
    """
    full = [len(f"{line} {next_line.split(' ')[0]}") > _FULL_SHARE * width for line, next_line in breaks]
    in_sentences = [line[-1] not in _SENTENCE_ENDS and next_line[0].islower() for line, next_line in breaks]
    most = sum(full) if width >= _WRAPPED_CHARS else min(sum(full), sum(in_sentences))
    return bool(breaks) and most >= len(breaks) / 2


def _sections(pieces: Iterable[Piece], title: str) -> list[_Section]:
    headings, sections = Headings(title), [_Section()]
    for piece in pieces:
        if piece.level:
            headings.open(piece.level, "")
            outer_path = headings.path
            headings.open(piece.level, piece.text)
            sections.append(_Section(piece, outer_path, headings.path))
        elif piece.text:
            sections[-1].pieces.append(piece)
    return sections


def _blocks(section: _Section, title: str, is_said: bool) -> Iterator[Block]:
    """The section's paragraphs, and its heading where that `is_said` by nothing else."""
    heading = section.heading.text
    if title_line(heading) != heading or (heading and not is_said and not _contains_words(heading, title)):
        yield _block(section.heading, title, section.outer_path)
    yield from (_block(piece, title, section.path) for piece in section.pieces)


def _block(piece: Piece, title: str, heading: str) -> Block:
    place = f"page {piece.page}" if piece.page else ""
    return Block(piece.text, title, place, page=piece.page, heading=heading, unit=piece.unit)


def _contains_words(words: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text) is not None


def _lines(file: IO[str], max_chars: int | None) -> Iterator[str]:
    total = 0
    while line := file.readline(LINE_CHARS + 1):
        total += len(line)
        if len(line) > LINE_CHARS:
            raise LibraryError(f"it has a line of more than {LINE_CHARS:,} characters")
        if max_chars and total > max_chars:
            raise LibraryError(f"it unpacks to more than {max_chars:,} characters; unpack it first")
        yield line.rstrip("\r\n")
