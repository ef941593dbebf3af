"""HTML, and whatever is turned into it: headings, paragraphs, list items and table rows, without scripts and menus."""

from __future__ import annotations

import re
from codecs import lookup
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from lxml import etree

from assistant.errors import LibraryError
from assistant.library.readers.shared.tables import UNMARKED_COLUMNS, Head, column_names, head_of, is_header, named_line
from assistant.library.readers.shared.text import (
    WESTERN,
    Piece,
    is_footnote,
    load_text,
    piece_of,
    superscript,
    tidy,
    title_of,
    under_headings,
)
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
ROW_GROUPS = ("thead", "tbody", "tfoot")
# A cell spans so many rows or columns at most, and so many cells go on in one row.
SPAN_MOST, CARRIED_MOST = 1000, 8
PIECE_TAGS = frozenset(
    (*HEADINGS, *CELLS, *"p li tr pre blockquote dl dt dd figcaption div section article body".split())
)
# What begins or ends with one of these is no part of a word beside it.
SPACED_TAGS = frozenset(
    "hr summary details address main header footer aside fieldset legend caption form ul ol table figure".split()
)
_SPAN = re.compile(r"\s{0,9}\d{1,4}")
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
    """A table: its rows, and the cells that go on in the next."""

    rows: list[_Row] = field(default_factory=list)
    spanning: list[_Cell] = field(default_factory=list)
    names_columns: bool | None = None  # whether its first row does, for one below

    def row(self) -> _Row:
        """Begin a row."""
        carried = sorted(self.spanning, key=lambda cell: cell.column)
        for cell in carried:
            cell.rows_below -= 1
        self.spanning = [cell for cell in carried if cell.rows_below]
        self.rows.append(_Row(self, carried))
        return self.rows[-1]

    def has_named_rows(self) -> bool:
        """Whether the names that the first row says stand in a row below, so that it need not be read itself."""
        if self.names_columns is None:
            self.names_columns = any(row.is_line and row.names() for row in self.rows[1:])
        return self.names_columns


@dataclass(slots=True)
class _Row:
    """A table row: what it says as one line, if it is data.

    A row with a table, a heading or several paragraphs in one cell lays out the page, and is read as its contents.
    `carried` are the cells of rows above that go on in it, `next_column` where its next own one begins.
    """

    table: _Table
    carried: list[_Cell]
    cells: list[_Cell] = field(default_factory=list)
    next_column: int = 0
    # Looked at once, when the page is over: each piece in a row asks.
    head: Head | None = None  # the names of the columns, if this row says them
    is_data: bool | None = None

    def add(self, cell: _Cell) -> None:
        """Place a cell in the next column that none from above takes."""
        cell.column = self.next_column
        for above in self.carried:
            if above.column <= cell.column < above.column + above.columns:
                cell.column = above.column + above.columns
        self.next_column = cell.column + cell.columns
        cell.row = self
        self.cells.append(cell)
        if cell.rows_below and len(self.table.spanning) < CARRIED_MOST:
            self.table.spanning.append(cell)

    @property
    def is_line(self) -> bool:
        if self.is_data is None:
            self.is_data = bool(self.cells) and all(cell.piece_count <= 1 for cell in self.cells)
        return self.is_data

    def line(self) -> str:
        """The cells with the names of their columns, where the first row says these; "" for that row itself."""
        if self is self.table.rows[0]:
            return "" if self.table.has_named_rows() else named_line((), self._texts())
        return named_line(self.names(), self._texts())

    def names(self) -> Sequence[str]:
        """The names of its columns, if the first row says them; that may go on in this one, which is none then."""
        first = self.table.rows[0]
        goes_on = any(cell.row is first for cell in self.carried)
        return () if goes_on else first.column_names().names(self._texts())

    def column_names(self) -> Head:
        """The names of columns that this row says: it is marked so, or looks like it. None where it doesn't."""
        if self.head is None:
            texts = self._texts() if self.is_line else []
            is_marked = len(texts) > 1 and all(cell.is_heading for cell in self.cells)
            looks_like_header = len(texts) >= UNMARKED_COLUMNS and all(texts) and is_header(texts)
            says_names = is_marked or looks_like_header
            self.head = head_of(texts, [cell.columns for cell in self.cells]) if says_names else Head()
        return self.head

    def _texts(self) -> list[str]:
        carried = [cell for cell in self.carried if cell.piece_count <= 1]
        if not carried:
            return [cell.text() for cell in self.cells]
        cells = sorted([*self.cells, *carried], key=lambda cell: cell.column)
        return [cell.text() if cell.row is self else cell.name() for cell in cells]


@dataclass(slots=True)
class _Cell:
    """A cell of a row: its text with that of the pieces inside it, and how many of these it holds.

    `is_heading` says whether it is the heading of its column or row; `columns` and `rows_below` how far it spans.
    """

    parts: list[str] = field(default_factory=list)
    piece_count: int = 0
    is_heading: bool = False
    columns: int = 1
    rows_below: int = 0
    row: _Row | None = None  # that it begins in
    column: int = 0
    # Put together once, when the page is over.
    whole: str | None = None
    short: str | None = None

    def text(self) -> str:
        """What it says."""
        if self.whole is None:
            self.whole = tidy("".join(self.parts))
        return self.whole

    def name(self) -> str:
        """The same, cut where it is long: it stands in each row that the cell goes on in."""
        if self.short is None:
            [self.short] = column_names([self.text()])
        return self.short


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


@dataclass(slots=True)
class _Superscript:
    """The text of a superscript that is open, and whether it holds a link."""

    parts: list[str] = field(default_factory=list)
    is_link: bool = False


class _Page:
    """Takes a page as the parser reads it, tag by tag: no tag is looked at twice, however they are nested."""

    def __init__(self) -> None:
        self.title = self.first_heading = ""
        self._tags: list[_Tag] = []
        self._open: list[_Tag | None] = []  # of each open tag, the piece that it is
        self._open_pieces: list[_Tag] = []  # the pieces that are open
        self._tables: list[_Table] = []  # that are open
        self._unread = 0  # how many of the open tags are not read
        self._superscript: _Superscript | None = None  # that is open
        self._title_parts: list[str] | None = None  # the title's text, while it is open
        self._heading: tuple[_Tag, int] | None = None  # the first heading, and its place

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """A tag opens."""
        if len(self._open) >= DEPTH_MOST:
            raise LibraryError(f"its tags are nested more than {DEPTH_MOST:,} deep; save the page anew with a browser")
        if name == "title" and not self.title:
            self._title_parts = []
        self._unread += name in UNREAD_TAGS
        piece = None
        if not self._unread:
            if name in PIECE_TAGS:
                piece = self._begin(name, attributes)
            else:
                self._within(name)
        self._open.append(piece)

    def _within(self, name: str) -> None:
        """A tag opens that is no piece by itself."""
        if name == "br":
            self._add("\n")
        elif name in SPACED_TAGS:
            self._add(" ")
        elif name == "sup":
            self._end_superscript()
            self._superscript = _Superscript()
        elif name == "a" and self._superscript:
            self._superscript.is_link = True
        elif name in ROW_GROUPS and self._tables:
            self._tables[-1].spanning.clear()  # no cell goes on in another group
        if name == "table":
            self._tables.append(_Table())
            if cell := self._cell():
                cell.piece_count += 2

    def end(self, name: str) -> None:
        """A tag closes; the parser closes each that opened."""
        if name == "title" and self._title_parts is not None:
            self.title, self._title_parts = tidy(" ".join(self._title_parts)), None
        if name == "table" and self._tables and not self._unread:
            self._tables.pop()
        if name in SPACED_TAGS:
            self._add(" ")
        elif name == "sup":
            self._end_superscript()
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
        text = text if is_preformatted else text.replace("\n", " ")
        if self._superscript and not self._unread:
            self._superscript.parts.append(text)
        else:
            self._add(text)

    def _end_superscript(self) -> None:
        """What was open as a superscript is over, or something else begins in it."""
        ended, self._superscript = self._superscript, None
        text = "".join(ended.parts) if ended else ""
        if ended and not (ended.is_link and is_footnote(text)):
            before = self._open_pieces[-1].parts[-1:] if self._open_pieces else []
            self._add(superscript(text, "".join(before)))

    def _add(self, text: str) -> None:
        if self._unread or not self._open_pieces:
            return
        self._end_superscript()
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
            else:
                piece = _own_piece(tag)
                if tag.name == "dl" or (piece.text and not is_defined):  # the term stands alone
                    yield Piece("" if is_defined else term)
                    term = ""
                yield piece
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

    def _go_on(self) -> None:
        tag = _Tag("", self._open_pieces[-1].row, self._cell(), None)
        self._tags.append(tag)
        self._open_pieces.append(tag)

    def _pause(self) -> None:
        if self._open_pieces and not self._open_pieces[-1].name:
            self._finish(self._open_pieces[-1])

    def _begin(self, name: str, attributes: Mapping[str, str]) -> _Tag:
        self._add(" ")
        self._pause()
        row, cell, outer_cell = (
            (self._open_pieces[-1].row, self._cell(), self._cell()) if self._open_pieces else (None, None, None)
        )
        if name == "tr":
            row, cell = (self._tables[-1] if self._tables else _Table()).row(), None
        elif name in CELLS:
            columns, rows = (_span(attributes.get(direction, "")) for direction in ("colspan", "rowspan"))
            cell = _Cell(is_heading=name == "th", columns=columns, rows_below=rows - 1)
            if row:
                row.add(cell)
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


def _span(value: str) -> int:
    """How many rows or columns a cell spans, by its attribute."""
    number = _SPAN.match(value)
    return min(max(int(number[0]), 1), SPAN_MOST) if number else 1


def _own_piece(tag: _Tag) -> Piece:
    """What a tag says by itself: its text, or as a row that is data its line, of which the tags in it are parts."""
    if tag.row is not None and tag.row.is_line:
        return Piece(tag.row.line() if tag.name == "tr" else "")
    level = 1 + HEADINGS.index(tag.name) if tag.name in HEADINGS else 0
    return Piece(tag.text, level, unit="\n" in tag.text)
