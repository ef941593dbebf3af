"""Word documents (.docx): headings, paragraphs and table rows, in the order of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import chain, groupby, pairwise
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

import docx
from docx.document import Document
from docx.opc.exceptions import PackageNotFoundError
from docx.oxml.ns import qn
from docx.oxml.table import CT_Row, CT_Tbl, CT_Tc
from docx.oxml.text.paragraph import CT_P
from docx.oxml.text.run import CT_R
from docx.oxml.xmlchemy import BaseOxmlElement

from assistant.errors import LibraryError
from assistant.library.readers.shared.archive import check_archive
from assistant.library.readers.shared.tables import UNMARKED_COLUMNS, Head, head_of, is_header, named_line
from assistant.library.readers.shared.text import (
    Piece,
    is_footnote,
    piece_of,
    superscript,
    tidy,
    title_line,
    title_of,
    under_headings,
)
from assistant.text.chunks import Block

SUFFIXES = (".docx",)
RECORDS = False
COLUMNS_MOST = 1000
ITEMS_MOST = 300_000
_NOT_WORD = "it is not a Word document that can be read"
LEVELS = "123456789"
# What may stand around text, paragraphs, rows and cells: links, content controls, insertions that are tracked.
_WRAPPERS = frozenset(
    map(qn, "w:hyperlink w:fldSimple w:smartTag w:customXml w:sdt w:sdtContent w:ins w:moveTo".split())
)
_HINT = f"{qn('w:sdtPr')}/{qn('w:showingPlcHdr')}"
_GALLERY = "/".join(map(qn, ("w:sdtPr", "w:docPartObj", "w:docPartGallery")))


def read(path: Path) -> Iterator[Block]:
    """The paragraphs, under the document's title and the heading that they follow.

    Raises:
        LibraryError: the file is encrypted, unpacks to too much, or is no Word document.
    """
    document = _open(path)
    pieces = list(_pieces(document))
    heading = next((piece.text for piece in pieces if piece.level and piece.text), "")
    yield from under_headings(pieces, tidy(document.core_properties.title or "") or heading or title_of(path))


def _open(path: Path) -> Document:
    check_archive(path, "a Word document")
    try:
        return docx.Document(str(path))
    except (PackageNotFoundError, BadZipFile, KeyError, ValueError) as error:
        raise LibraryError(_NOT_WORD) from error


def _pieces(document: Document) -> Iterator[Piece]:
    level_of, body = _levels(document), document.element.find(qn("w:body"))
    if body is None:  # the main part is another one of the document, or none of Word's
        raise LibraryError(_NOT_WORD)
    for number, item in enumerate(_unwrapped_children(body), 1):
        if number > ITEMS_MOST:
            raise LibraryError(f"it has more than {ITEMS_MOST:,} paragraphs; split it up")
        if isinstance(item, CT_P):
            level = level_of(item)
            yield Piece(tidy(_line(item)), level) if level else piece_of(_line(item))
        elif isinstance(item, CT_Tbl):
            yield from map(Piece, _rows(item))


def _levels(document: Document) -> Callable[[CT_P], int]:
    """The level of a paragraph that is a heading, 0 of any other, by its style; the styles are looked through once."""
    levels = {style.style_id: _level(style.name or "") for style in document.styles}
    return lambda paragraph: levels.get(paragraph.style or "", 0)


def _level(style: str) -> int:
    if not style.startswith(("Heading", "Title")):
        return 0
    number = style.removeprefix("Heading ")
    return int(number) if number in LEVELS else 1


class _Row(NamedTuple):
    """A row of a table: what its cells say, by the column that each begins in, and the column behind the last.

    `first_columns` are those in which cells of the first row go on.
    """

    element: CT_Row
    cells: Sequence[CT_Tc]
    texts: Mapping[int, str]
    end: int
    first_columns: Set[int]


def _rows(table: CT_Tbl) -> Iterator[str]:
    """The rows as lines with the names of their columns, each followed by the tables in its cells.

    The row that says the names is a line itself where no other has them.
    """
    rows = list[_Row]()
    for element in _unwrapped_children(table):
        if isinstance(element, CT_Row):
            rows.append(_row(element, rows[-1] if rows else None))
    head = _head(rows[0]) if rows else Head()
    has_named_rows = any(_names(head, row) for row in rows)
    for number, row in enumerate(rows):
        if number or not has_named_rows:
            yield named_line(_names(head, row), list(row.texts.values()))
        for child in chain.from_iterable(map(_unwrapped_children, row.cells)):
            if isinstance(child, CT_Tbl):
                yield from _rows(child)


def _row(element: CT_Row, above: _Row | None) -> _Row:
    """A row below another.

    A cell that goes on from the row above says there what it says in the first, or how that begins.
    """
    cells = [cell for cell in _unwrapped_children(element) if isinstance(cell, CT_Tc)]
    texts, continued, column = dict[int, str](), set[int](), 0
    for cell in cells:
        if above and cell.vMerge == "continue" and column in above.texts:
            texts[column] = title_line(above.texts[column])
            continued.add(column)
        else:
            texts[column] = tidy(_text(cell))
        column += min(cell.grid_span, COLUMNS_MOST)
    return _Row(element, cells, texts, column, above.first_columns & continued if above else set(texts))


def _names(head: Head, row: _Row) -> Sequence[str]:
    """The names of a row's columns; none where the row that says them goes on, as the first does in itself."""
    return () if row.first_columns else head.names(row.texts)


def _head(row: _Row) -> Head:
    """The names of columns that the first row of a table says; none where it doesn't."""
    texts = list(row.texts.values())
    spans = (next_column - column for column, next_column in pairwise([*row.texts, row.end]))
    return head_of(texts, spans) if _is_head(row.element, texts) else Head()


def _is_head(row: CT_Row, cells: list[str]) -> bool:
    """Whether the first row of a table names its columns: it is marked as repeated on every page, or looks like it."""
    is_marked = row.trPr is not None and row.trPr.find(qn("w:tblHeader")) is not None
    return is_marked or (len(cells) >= UNMARKED_COLUMNS and all(cells) and is_header(cells))


def _text(cell: CT_Tc) -> str:
    """What a cell says: its paragraphs."""
    return "\n".join(_line(paragraph) for paragraph in _unwrapped_children(cell) if isinstance(paragraph, CT_P))


def _line(paragraph: CT_P) -> str:
    runs = (run for run in _unwrapped_children(paragraph) if isinstance(run, CT_R) and run.text)
    parts = list[str]()
    for (is_raised, is_link), same_runs in groupby(runs, key=_raised_and_linked):
        text = "".join(run.text for run in same_runs)
        if is_raised and not (is_link and is_footnote(text)):
            parts.append(superscript(text, "".join(parts[-1:])))
        elif not is_raised:
            parts.append(text)
    return "".join(parts)


def _raised_and_linked(run: CT_R) -> tuple[bool, bool]:
    """Whether a run is a superscript, and whether it is a link."""
    return run.rPr is not None and run.rPr.superscript is True, run.getparent().tag == qn("w:hyperlink")


def _unwrapped_children(element: BaseOxmlElement) -> Iterator[BaseOxmlElement]:
    """The children of an element; in the place of a wrapper among them, its own children."""
    for child in element.iterchildren():
        if child.tag not in _WRAPPERS:
            yield child
        elif _is_content(child):
            yield from _unwrapped_children(child)


def _is_content(wrapper: BaseOxmlElement) -> bool:
    """Whether it holds neither a hint at what to fill in nor a table of contents, which says headings once more."""
    gallery = wrapper.find(_GALLERY)
    return wrapper.find(_HINT) is None and (gallery is None or gallery.get(qn("w:val")) != "Table of Contents")
