"""Word documents (.docx): headings, paragraphs and table rows, in the order of the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zipfile import BadZipFile, ZipFile

import docx
from docx.document import Document
from docx.opc.exceptions import PackageNotFoundError
from docx.table import Table
from docx.text.paragraph import Paragraph

from assistant.errors import LibraryError
from assistant.library.readers.shared.text import Piece, row_line, tidy, title_of, under_headings
from assistant.text.chunks import Block

SUFFIXES = (".docx",)
RECORDS = False
# Word encrypts a document into an OLE file, which begins so; so does the old .doc.
_OLE = b"\xd0\xcf\x11\xe0"
# Its parts are unpacked into memory; a file of a few megabytes could fill it.
UNPACKED_BYTES = 200_000_000


def read(path: Path) -> Iterator[Block]:
    """The paragraphs, under the document's title and the heading that they follow.

    Raises:
        LibraryError: the file is encrypted, unpacks to too much, or is no Word document.
    """
    document = _open(path)
    title = tidy(document.core_properties.title or "") or _first_heading(document) or title_of(path)
    yield from under_headings(_pieces(document), title)


def _open(path: Path) -> Document:
    with path.open("rb") as file:
        if file.read(4) == _OLE:
            raise LibraryError("it is encrypted, or in the format of an old Word; save it as .docx without a password")
    try:
        with ZipFile(path) as parts:
            size = sum(part.file_size for part in parts.infolist())
        if size > UNPACKED_BYTES:
            raise LibraryError(f"it unpacks to more than {UNPACKED_BYTES:,} bytes; split it, or take out its images")
        return docx.Document(str(path))
    except (PackageNotFoundError, BadZipFile, KeyError, ValueError) as error:
        raise LibraryError("it is not a Word document that can be read") from error


def _pieces(document: Document) -> Iterator[Piece]:
    for item in document.iter_inner_content():
        if isinstance(item, Table):
            yield from (Piece(row, False) for row in _rows(item))
        else:
            yield Piece(tidy(item.text), _is_heading(item))


def _first_heading(document: Document) -> str:
    return next((tidy(one.text) for one in document.paragraphs if _is_heading(one) and one.text.strip()), "")


def _is_heading(paragraph: Paragraph) -> bool:
    style = paragraph.style.name if paragraph.style is not None else ""
    return bool(style) and str(style).startswith(("Heading", "Title"))


def _rows(table: Table) -> Iterator[str]:
    for row in table.rows:
        # A merged cell is given once for each column that it spans; it is the same object.
        cells = list(dict.fromkeys(row.cells))
        yield row_line(tidy(cell.text) for cell in cells)
        # What a cell says is its paragraphs; a table in it follows the row.
        for inner in (inner for cell in cells for inner in cell.tables):
            yield from _rows(inner)
