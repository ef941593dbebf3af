"""Word documents (.docx): headings, paragraphs and table rows, in the order of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
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
from assistant.library.readers.shared.tables import UNMARKED_COLUMNS, column_names, is_header, named_line
from assistant.library.readers.shared.text import Piece, piece_of, tidy, title_line, title_of, under_headings
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


def _rows(table: CT_Tbl) -> Iterator[str]:
    """The rows as lines with the names of their columns, each followed by the tables in its cells.

    A cell that goes on from the row above says there what it says in the first, or how that begins.
    """
    texts_above: dict[int, str] = {}
    names: list[str] = []
    rows = [row for row in _unwrapped_children(table) if isinstance(row, CT_Row)]
    for number, row in enumerate(rows):
        texts: dict[int, str] = {}
        column = 0
        row_cells = [cell for cell in _unwrapped_children(row) if isinstance(cell, CT_Tc)]
        for cell in row_cells:
            is_continued = cell.vMerge == "continue" and column in texts_above
            texts[column] = title_line(texts_above[column]) if is_continued else tidy(_text(cell))
            column += min(cell.grid_span, COLUMNS_MOST)
        cells = list(texts.values())
        if number == 0 < len(rows) - 1 and _is_head(row, cells):
            names = column_names(cells)
        else:
            yield named_line(names if len(names) == len(cells) else (), cells)
        texts_above = texts
        for child in chain.from_iterable(map(_unwrapped_children, row_cells)):
            if isinstance(child, CT_Tbl):
                yield from _rows(child)


def _is_head(row: CT_Row, cells: list[str]) -> bool:
    """Whether the first row of a table names its columns: it is marked as repeated on every page, or looks like it."""
    is_marked = row.trPr is not None and row.trPr.find(qn("w:tblHeader")) is not None
    return is_marked or (len(cells) >= UNMARKED_COLUMNS and all(cells) and is_header(cells))


def _text(cell: CT_Tc) -> str:
    """What a cell says: its paragraphs."""
    return "\n".join(_line(paragraph) for paragraph in _unwrapped_children(cell) if isinstance(paragraph, CT_P))


def _line(paragraph: CT_P) -> str:
    return "".join(run.text for run in _unwrapped_children(paragraph) if isinstance(run, CT_R))


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
