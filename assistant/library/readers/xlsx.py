"""Excel's workbooks (.xlsx, .xlsm): rows as "Item: Oats; Price: 12". Formulas count as their values."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

from assistant.errors import LibraryError
from assistant.library.readers.shared.archive import UNPACKED_BYTES, check_archive
from assistant.library.readers.shared.tables import lines
from assistant.library.readers.shared.text import title_line, title_of
from assistant.text.chunks import Block

SUFFIXES = (".xlsx", ".xlsm")
RECORDS = False
_KIND = "a workbook"
# As Excel has it, and how many cells there may be, with the empty ones in front of others.
ROWS_MOST, COLUMNS_MOST, CELLS_MOST = 1_048_576, 16_384, 5_000_000
_TOO_LONG = "a cell of it has more than a million characters; split it up"
_TOO_MANY = "it has too many rows or columns, some of them far out; take out what is not needed"
# How rows and cells begin, whatever prefix their names have, and how many bytes are looked through at once.
_STARTS, _CHUNK_BYTES = re.compile(rb"<(?:[\w.-]{1,40}:)?(row|c)[\s/>]"), 1 << 20
_PARTS = ("xl/worksheets/", "xl/sharedstrings")
# What a number's format shows as it stands, or says of colours and conditions.
_AS_IT_STANDS = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]')


def read(path: Path) -> Iterator[Block]:
    """The rows of all sheets in order, with the names of their columns.

    Raises:
        LibraryError: the file is encrypted, unpacks to too much, or is no workbook.
    """
    import openpyxl  # noqa: PLC0415 - takes a tenth of a second, which no other format needs
    from openpyxl.utils.exceptions import InvalidFileException  # noqa: PLC0415

    check_archive(path, _KIND, UNPACKED_BYTES)  # sheets are read as they are unpacked
    try:
        _check_cells(path)
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
    except (InvalidFileException, BadZipFile, zlib.error, KeyError, ValueError) as error:
        raise LibraryError(f"it is not {_KIND} that can be read") from error
    title = title_of(path)
    for sheet in book.worksheets:
        sheet.reset_dimensions()  # those that the file states may be wrong
        name = title_line(sheet.title)
        for row in lines([_text(cell) for cell in cells] for cells in _rows(sheet)):
            yield Block(row.text, f"{title} - {name}", f"sheet {name}, row {row.number}")


def _check_cells(path: Path) -> None:
    """Refuse a workbook with too many or too long cells before they are read, which takes far longer than counting."""
    cell_count = 0
    with ZipFile(path) as archive:
        for name in archive.namelist():
            if name.lower().startswith(_PARTS):
                with archive.open(name) as part:
                    cell_count += _cell_count(part, CELLS_MOST - cell_count)


def _cell_count(part: IO[bytes], most: int) -> int:
    """How many cells a part of a workbook has.

    Raises:
        LibraryError: they are more than `most`, a row has more than a sheet can, or a text is as long as a chunk.
    """
    cell_count = column_count = 0
    while chunk := part.read(_CHUNK_BYTES):
        if len(chunk) == _CHUNK_BYTES and b"<" not in chunk:
            raise LibraryError(_TOO_LONG)
        # A letter for each cell; the first row goes on from the chunk before.
        rows = (b"c" * column_count + b"".join(_STARTS.findall(chunk))).split(b"row")
        cell_count += sum(map(len, rows)) - column_count
        column_count = len(rows[-1])
        if max(map(len, rows)) > COLUMNS_MOST or cell_count > most:
            raise LibraryError(_TOO_MANY)
    return cell_count


def _rows(sheet: Any) -> Iterator[Sequence[Any]]:
    """The rows of a sheet, each as wide as its last cell is far out; not more of them than a sheet can have."""
    cell_count = 0
    for number, row in enumerate(sheet.iter_rows(), 1):
        cell_count += len(row)
        if number > ROWS_MOST or len(row) > COLUMNS_MOST or cell_count > CELLS_MOST:
            raise LibraryError(_TOO_MANY)
        yield row


def _text(cell: Any) -> str:
    """What a cell says, as its sheet shows it: days without hours, shares as percent where they are formatted so."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, datetime) and value.time() == time():
        value = value.date()
    if isinstance(value, date | time):
        return str(value)
    number_format = str(cell.number_format)
    if "%" in number_format and isinstance(value, int | float) and not isinstance(value, bool):
        is_share = "%" in _AS_IT_STANDS.sub("", number_format)
        return f"{100 * value if is_share else value:.10g}%"
    return f"{value:.15g}" if isinstance(value, float) else str(value)
