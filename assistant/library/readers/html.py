"""HTML, and whatever is turned into it: headings, paragraphs, list items and table rows, without scripts and menus."""

from __future__ import annotations

import re
from codecs import lookup
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from lxml import etree

from assistant.errors import LibraryError
from assistant.library.readers.shared.tables import UNMARKED_COLUMNS, column_names, is_header, named_line
from assistant.library.readers.shared.text import WESTERN, Piece, load_text, piece_of, tidy, title_of, under_headings
from assistant.text.chunks import MAX_CHUNK_WORDS, Block, count_words

SUFFIXES = (".html", ".htm", ".xhtml")
RECORDS = False
UNREAD_TAGS = frozenset("script style noscript template nav svg button select textarea iframe head".split())
# A tag that closes nothing is looked for among all that are open: without a bound that takes time by their square.
DEPTH_MOST = 1000
FED_CHARS = 2**16
# What of a page may say which encoding it is in.
DECLARED_BYTES = 4096
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
# A definition within one is read as such to this depth; below, terms and definitions are paragraphs.
DEFINITIONS_DEEP = 3
CELLS = ("td", "th")
# What documentation has behind headings and terms, to link to them.
ANCHOR = "¶"
PIECE_TAGS = frozenset((*HEADINGS, *CELLS, *"p li tr pre blockquote dt dd figcaption div section article body".split()))
# What is declared is read as browsers read it: as the larger set of characters that pages use under the old name.
_SUPERSETS = {
    "iso8859-1": WESTERN,
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
}
# Other codecs that Python has are none of a page; UTF-8 and UTF-16 are told by the bytes, whatever is declared.
_DECLARED = re.compile(rb"""(?:charset|encoding)\s{0,9}=\s{0,9}["']?([\w.:-]{1,40})""", re.IGNORECASE)
_CHARSETS = tuple("cp125 cp866 cp874 cp932 cp949 cp950 iso8859 koi8 mac- gb big5 euc tis".split())


def read(path: Path) -> Iterator[Block]:
    """The paragraphs, under the page's title and the heading that they follow.

    Raises:
        LibraryError: the file is binary, or its tags are nested too deeply.
    """
    return blocks(load_text(path, declared_encoding), title_of(path))


def blocks(markup: str, title: str) -> Iterator[Block]:
    """The same for HTML text; `title` is used where the page has none of its own."""
    page = _Page()
    parser = etree.HTMLParser(target=page, encoding="utf-8", huge_tree=True)
    text = markup.replace("\0", "\ufffd") or " "
    for start in range(0, len(text), FED_CHARS):  # what a tag raises is heard of at the end of a piece
        parser.feed(text[start : start + FED_CHARS].encode("utf-8", "replace"))
    parser.close()
    yield from under_headings(page.pieces(), page.title or page.first_heading or title)


def declared_encoding(data: bytes) -> str:
    """The encoding that a page says it is in, or what pages are in that say nothing."""
    declaration = _DECLARED.search(data[:DECLARED_BYTES])
    try:
        name = lookup(declaration[1].decode("ascii", "replace") if declaration else "").name
    except (LookupError, ValueError):  # no encoding, or no name
        return WESTERN
    return _SUPERSETS.get(name, name if name.startswith(_CHARSETS) else WESTERN)


@dataclass(slots=True)
class _Table:
    """A table: its first row, and how many there are."""

    first: _Row | None = None
    rows: int = 0


@dataclass(slots=True)
class _Row:
    """A table row: what it says as one line, if it is data.

    A row with a table, a heading or several paragraphs in one cell lays out the page, and is read as its contents.
    """

    table: _Table
    cells: list[_Cell] = field(default_factory=list)
    # Looked at once, when the page is over: each piece in a row asks.
    names: list[str] | None = None  # of the columns, if this row says them
    is_data: bool | None = None

    @property
    def is_line(self) -> bool:
        if self.is_data is None:
            self.is_data = bool(self.cells) and all(cell.piece_count <= 1 for cell in self.cells)
        return self.is_data

    def line(self) -> str:
        """The cells with the names of their columns, where the first row says these; "" for that row itself."""
        first, texts = self.table.first, self._texts()
        if first is self:
            return "" if self.table.rows > 1 and self.column_names() else named_line((), texts)
        names = first.column_names() if first else []
        return named_line(names if len(names) == len(texts) else (), texts)

    def column_names(self) -> list[str]:
        """The names of columns that this row says: it is marked so, or looks like it. None where it doesn't."""
        if self.names is None:
            texts = self._texts() if self.is_line else []
            is_marked = len(texts) > 1 and all(cell.is_heading for cell in self.cells)
            looks_like_header = len(texts) >= UNMARKED_COLUMNS and all(texts) and is_header(texts)
            self.names = column_names(texts) if is_marked or looks_like_header else []
        return self.names

    def _texts(self) -> list[str]:
        return [tidy("".join(cell.parts)) for cell in self.cells]


@dataclass(slots=True)
class _Cell:
    """A cell of a row: its text with that of the pieces inside it, and how many of these it holds.

    `is_heading` says whether it is the heading of its column or row.
    """

    parts: list[str] = field(default_factory=list)
    piece_count: int = 0
    is_heading: bool = False


@dataclass(slots=True)
class _Tag:
    """An open or closed tag that is a piece: its own text, without that of the pieces inside, which come by themselves.

    `row` is the one that it is, or is in; `cell` the one that it is in, or is. Text that goes on behind a piece inside
    is a piece without a name, as long as no other begins.
    """

    name: str
    row: _Row | None
    cell: _Cell | None
    outer_cell: _Cell | None
    parts: list[str] = field(default_factory=list)
    text: str = ""
    end: int = 0  # where the tags that it holds end, in the list of all


class _Page:
    """Takes a page as the parser reads it, tag by tag: no tag is looked at twice, however they are nested."""

    def __init__(self) -> None:
        self.title = self.first_heading = ""
        self._tags: list[_Tag] = []
        self._open: list[_Tag | None] = []  # of each open tag, the piece that it is
        self._open_pieces: list[_Tag] = []  # the pieces that are open
        self._tables: list[_Table] = []  # that are open
        self._unread = 0  # how many of the open tags are not read
        self._title_parts: list[str] | None = None  # the title's text, while it is open
        self._heading: tuple[_Tag, int] | None = None  # the first heading, and its place

    def start(self, name: str, _attributes: object) -> None:
        """A tag opens."""
        if len(self._open) >= DEPTH_MOST:
            raise LibraryError(f"its tags are nested more than {DEPTH_MOST:,} deep; save the page anew with a browser")
        if name == "title" and not self.title:
            self._title_parts = []
        self._unread += name in UNREAD_TAGS
        piece = None
        if not self._unread:
            if name == "br":
                self._add("\n")
            elif name == "table":
                self._tables.append(_Table())
                if cell := self._cell():
                    cell.piece_count += 2
            elif name in PIECE_TAGS:
                piece = self._begin(name)
        self._open.append(piece)

    def end(self, name: str) -> None:
        """A tag closes; the parser closes each that opened."""
        if name == "title" and self._title_parts is not None:
            self.title, self._title_parts = tidy(" ".join(self._title_parts)), None
        if name == "table" and self._tables and not self._unread:
            self._tables.pop()
        self._unread -= name in UNREAD_TAGS
        piece = self._open.pop()
        if piece:
            self._pause()
            self._finish(piece)

    def data(self, text: str) -> None:
        """Text stands here, whose line breaks count where the page says so."""
        if self._title_parts is not None:
            self._title_parts.append(text)
        is_preformatted = bool(self._open_pieces) and self._open_pieces[-1].name == "pre"
        self._add(text if is_preformatted else text.replace("\n", " "))

    def _add(self, text: str) -> None:
        if self._unread or not self._open_pieces:
            return
        if self._open_pieces[-1] is not self._tags[-1] and not text.isspace():
            self._go_on()
        self._open_pieces[-1].parts.append(text)
        if cell := self._cell():
            cell.parts.append(text)

    def comment(self, text: str) -> None:
        """A comment is not read."""

    def close(self) -> None:
        """The page is over."""

    def pieces(self) -> Iterator[Piece]:
        """The paragraphs, headings and rows, in the order in which they begin."""
        return self._pieces(0, len(self._tags), DEFINITIONS_DEEP)

    def _pieces(self, start: int, end: int, depth: int) -> Iterator[Piece]:
        """Those of some of the tags, with definitions within definitions to this depth."""
        term, is_defined = "", False
        while start < end:
            tag = self._tags[start]
            start += 1
            if depth and tag.name == "dt":
                terms = ("" if is_defined else term, self._line(start - 1, tag.end))
                term, is_defined = ", ".join(filter(None, terms)), False
                start = tag.end
            elif depth and tag.name == "dd" and term:
                yield from self._definition(term, start - 1, depth)
                is_defined, start = True, tag.end
            elif tag.row is None or not tag.row.is_line:
                level = 1 + HEADINGS.index(tag.name) if tag.name in HEADINGS else 0
                yield Piece(tag.text, level, unit="\n" in tag.text)
            elif tag.name == "tr":
                yield Piece(tag.row.line())
        if term and not is_defined:
            yield Piece(term)

    def _definition(self, term: str, position: int, depth: int) -> Iterator[Piece]:
        """A term with what the tag at this place says of it: as one line, or, where that is long, as a section."""
        tag = self._tags[position]
        line = f"{term}: {self._line(position, tag.end)}"
        if count_words(line) <= MAX_CHUNK_WORDS:
            yield Piece(line, unit=True)
            return
        level = len(HEADINGS) + 1 + DEFINITIONS_DEEP - depth
        yield Piece(term, level)
        prefix = f"{term}: "
        for piece in chain([Piece(tag.text)], self._pieces(position + 1, tag.end, depth - 1)):
            if piece.text:
                yield piece if piece.level else piece._replace(text=prefix + piece.text)
                prefix = prefix if piece.level else ""
        yield Piece("", level)

    def _line(self, start: int, end: int) -> str:
        """What some of the tags say, in a line."""
        return tidy(" ".join(piece.text for piece in self._pieces(start, end, 0)))

    def _cell(self) -> _Cell | None:
        return self._open_pieces[-1].cell if self._open_pieces else None

    def _row(self) -> _Row:
        table = self._tables[-1] if self._tables else _Table()
        row = _Row(table)
        table.first, table.rows = table.first or row, table.rows + 1
        return row

    def _go_on(self) -> None:
        tag = _Tag("", self._open_pieces[-1].row, self._cell(), None)
        self._tags.append(tag)
        self._open_pieces.append(tag)

    def _pause(self) -> None:
        if self._open_pieces and not self._open_pieces[-1].name:
            self._finish(self._open_pieces[-1])

    def _begin(self, name: str) -> _Tag:
        self._add(" ")
        self._pause()
        row, cell, outer_cell = (
            (self._open_pieces[-1].row, self._cell(), self._cell()) if self._open_pieces else (None, None, None)
        )
        if name == "tr":
            row, cell = self._row(), None
        elif name in CELLS:
            cell = _Cell(is_heading=name == "th")
            if row:
                row.cells.append(cell)
        tag = _Tag(name, row, cell, outer_cell)
        if name == "h1" and self._heading is None:
            self._heading = tag, len(self._tags)
        self._tags.append(tag)
        self._open_pieces.append(tag)
        return tag

    def _finish(self, tag: _Tag) -> None:
        self._open_pieces.pop()
        text = "".join(tag.parts)
        text = tidy(text) if tag.name in HEADINGS else piece_of(text).text
        tag.text, tag.end = text.removesuffix(ANCHOR).rstrip(), len(self._tags)
        tag.parts.clear()
        if tag.outer_cell and tag.name not in CELLS:
            tag.outer_cell.piece_count += 2 if tag.name in HEADINGS else bool(tag.text)
        self._add(" ")
        if self._heading and self._heading[0] is tag:
            # One that was never closed has the rest of the page inside: it says what comes first of that.
            self.first_heading = next(filter(None, (piece.text for piece in self._tags[self._heading[1] :])), "")
