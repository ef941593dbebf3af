"""Word documents (.docx): headings, paragraphs and table rows, in the order of the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zipfile import BadZipFile

import docx
from docx.document import Document
from docx.opc.exceptions import PackageNotFoundError
from docx.table import Table
from docx.text.paragraph import Paragraph

from assistant.errors import LibraryError
from assistant.library.chunks import Block
from assistant.library.readers._text import tidy, title_of

SUFFIXES = (".docx",)
RECORDS = False
# Word encrypts a document into an OLE file, which begins so; so does the old .doc.
_OLE = b"\xd0\xcf\x11\xe0"


def read(path: Path) -> Iterator[Block]:
    """The paragraphs, under the document's title and the heading that they follow.

    Raises:
        LibraryError: the file is encrypted, or no Word document.
    """
    document = _open(path)
    title = tidy(document.core_properties.title or "") or _first_heading(document) or title_of(path)
    heading = title
    for item in document.iter_inner_content():
        if isinstance(item, Table):
            yield from (Block(row, heading) for row in _rows(item))
        elif _is_heading(item):
            text = tidy(item.text)
            heading = f"{title} - {text}" if text and text != title else title
        else:
            yield Block(tidy(item.text), heading)


def _open(path: Path) -> Document:
    with path.open("rb") as file:
        if file.read(4) == _OLE:
            raise LibraryError("it is encrypted, or in the format of an old Word; save it as .docx without a password")
    try:
        return docx.Document(str(path))
    except (PackageNotFoundError, BadZipFile, KeyError, ValueError) as error:
        raise LibraryError("it is not a Word document that can be read") from error


def _first_heading(document: Document) -> str:
    return next((tidy(one.text) for one in document.paragraphs if _is_heading(one) and one.text.strip()), "")


def _is_heading(paragraph: Paragraph) -> bool:
    style = paragraph.style.name if paragraph.style is not None else ""
    return bool(style) and str(style).startswith(("Heading", "Title"))


def _rows(table: Table) -> Iterator[str]:
    for row in table.rows:
        cells = dict.fromkeys(tidy(cell.text) for cell in row.cells)
        yield " | ".join(cell for cell in cells if cell)
