"""The tables of a PDF, told by where its words stand: rows of cells with white space between their columns; by PDFium.

No lines need be drawn around them. A cell over several lines is one; one over several columns ends a table. What has
two columns is taken for text beside text, and what has dots before its page numbers for a table of contents.
"""

from __future__ import annotations

import ctypes
import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from pypdfium2 import PdfTextPage, raw

from assistant.text.sentences import words

_LOG = logging.getLogger(__name__)
PAGE_CHARS_MOST = 50_000
COLUMNS_LEAST, ROWS_LEAST = 3, 3
# In heights of a line: white space between cells, between the rows of a table, and between the lines of one cell.
CELL_GAP, ROW_GAP_MOST, LINE_GAP_MOST = 1.0, 2.5, 0.6
# The share of rows that may run across the white space between two columns.
ACROSS_SHARE_MOST = 0.1
# A column of text has cells of more characters; a table has few such columns, and few empty cells.
CELL_CHARS, LONG_SHARE_MOST, FILLED_SHARE_LEAST = 30, 0.5, 0.5
_LEADERS = ". . ."
_WORD = re.compile(r"\S+")
# The share of a table's words that lines of the page's text have to have to be its lines, and of theirs that it has.
COMMON_SHARE_LEAST = 0.8

Rows = Sequence[Sequence[str]]


class _Cell(NamedTuple):
    text: str
    left: float
    bottom: float
    right: float
    top: float


_Line = list[_Cell]


def tables_of(page: PdfTextPage) -> list[Rows]:
    """The tables of a page as rows of cells; of a table all rows have as many, empty ones included."""
    try:
        return list(_tables(_lines(page)))
    except ValueError:  # the page is read as text
        _LOG.exception("looking for the tables of a page failed")
        return []


def table_range(rows: Rows, lines: Sequence[str]) -> range:
    """The lines of a page's text that say a table, in whatever order they say its cells; an empty range for none."""
    table_words = Counter(word for row in rows for cell in row for word in words(cell))
    best_range, start = range(0), 0
    for n, line in enumerate([*lines, "\0"]):
        line_words = words(line)
        if line == "\0" or sum(word in table_words for word in line_words) < COMMON_SHARE_LEAST * len(line_words):
            best_range = max(best_range, range(start, n), key=len)
            start = n + 1
    text_words = Counter(word for line in lines[best_range.start : best_range.stop] for word in words(line))
    common_count = (text_words & table_words).total()
    return (
        best_range
        if common_count and common_count >= COMMON_SHARE_LEAST * max(table_words.total(), text_words.total())
        else range(0)
    )


def _lines(page: PdfTextPage) -> list[_Line]:
    """The lines of a page from top to bottom, each cut into cells where white space is."""
    lines: list[_Line] = []
    for word in sorted(_words(page), key=lambda word: (-(word.top + word.bottom), word.left)):
        middle = (word.top + word.bottom) / 2
        if lines and lines[-1][0].bottom < middle < lines[-1][0].top:
            lines[-1].append(word)
        else:
            lines.append([word])
    return [_cut(line) for line in lines]


def _words(page: PdfTextPage) -> Iterator[_Cell]:
    """The words of a page with their boxes, in points from its lower left corner; a word's are those of its ends."""
    count = min(page.count_chars(), PAGE_CHARS_MOST)
    text = "".join(chr(raw.FPDFText_GetUnicode(page, n)) for n in range(count))
    for word in _WORD.finditer(text):
        first, last = _box(page, word.start()), _box(page, word.end() - 1)
        # what is turned labels a figure
        if first and last and not raw.FPDFText_GetCharAngle(page, word.start()):
            yield _joined(first, last, "")._replace(text=word[0])


def _box(page: PdfTextPage, char: int) -> _Cell | None:
    """Where a character stands; None for one that is drawn nowhere."""
    edges = raw.FS_RECTF()
    is_drawn = raw.FPDFText_GetLooseCharBox(page, char, ctypes.byref(edges)) and edges.right > edges.left
    return _Cell("", edges.left, edges.bottom, edges.right, edges.top) if is_drawn else None


def _joined(first: _Cell, second: _Cell, separator: str) -> _Cell:
    return _Cell(
        f"{first.text}{separator}{second.text}",
        min(first.left, second.left),
        min(first.bottom, second.bottom),
        max(first.right, second.right),
        max(first.top, second.top),
    )


def _cut(line: _Line) -> _Line:
    cells: _Line = []
    for word in sorted(line, key=lambda word: word.left):
        if cells and word.left - cells[-1].right <= CELL_GAP * _height(word):
            cells[-1] = _joined(cells[-1], word, " ")
        else:
            cells.append(word)
    return cells


def _height(cell: _Cell) -> float:
    return cell.top - cell.bottom


def _tables(lines: Sequence[_Line]) -> Iterator[Rows]:
    for run in _runs(lines):
        columns = _columns([line for line in run if len(line) > 1])
        for block in _blocks(run, columns) if columns else ():  # the labels of a figure stand in none
            rows = _rows(block, columns)
            if _is_table(rows):
                yield rows


def _runs(lines: Sequence[_Line]) -> Iterator[list[_Line]]:
    """Lines with little space between them, from the first that has several cells to the last."""
    run: list[_Line] = []
    for line in lines:
        if run and run[-1][0].bottom - line[0].top > ROW_GAP_MOST * _height(line[0]):
            yield _trimmed(run)
            run = []
        run.append(line)
    yield _trimmed(run)


def _trimmed(run: list[_Line]) -> list[_Line]:
    multi_cell_lines = [n for n, line in enumerate(run) if len(line) > 1]
    return run[multi_cell_lines[0] : multi_cell_lines[-1] + 1] if multi_cell_lines else []


def _columns(lines: Sequence[_Line]) -> list[tuple[float, float]]:
    """From where to where the columns stand: what the white space leaves that hardly a line runs across."""
    edges = sorted(
        [(cell.left, 1) for line in lines for cell in line] + [(cell.right, -1) for line in lines for cell in line]
    )
    columns, cells_across, max_across = list[tuple[float, float]](), 0, ACROSS_SHARE_MOST * len(lines)
    start: float | None = None
    for x, step in edges:
        cells_across += step
        if start is None and cells_across > max_across:
            start = x
        elif start is not None and cells_across <= max_across:
            columns.append((start, x))
            start = None
    return columns


def _blocks(run: Sequence[_Line], columns: Sequence[tuple[float, float]]) -> Iterator[list[_Line]]:
    """The lines between those that run across several columns."""
    block: list[_Line] = []
    for line in run:
        if any(len(_column_indexes(cell, columns)) > 1 for cell in line):
            yield block
            block = []
        else:
            block.append(line)
    yield block


def _column_indexes(cell: _Cell, columns: Sequence[tuple[float, float]]) -> list[int]:
    """The indexes of the columns that a cell stands in, or of the nearest one."""
    indexes = [n for n, (left, right) in enumerate(columns) if cell.left < right and left < cell.right]
    return indexes or [min(range(len(columns)), key=lambda n: abs(sum(columns[n]) - cell.left - cell.right))]


def _rows(block: Sequence[_Line], columns: Sequence[tuple[float, float]]) -> list[list[str]]:
    """The lines as rows. One that has no first cell goes on with the row above, where it stands close to it."""
    rows: list[list[str]] = []
    gaps = [upper_line[0].bottom - lower_line[0].top for upper_line, lower_line in pairwise(block)]
    for line, gap in zip(block, [0.0, *gaps], strict=False):
        cells = [""] * len(columns)
        for cell in line:
            [n] = _column_indexes(cell, columns)
            cells[n] = f"{cells[n]} {cell.text}".strip()
        is_close = gap <= LINE_GAP_MOST * _height(line[0])
        if rows and is_close and (not cells[0] or sum(map(bool, cells)) == 1):
            rows[-1] = [
                f"{above_text} {cell_text}".strip() for above_text, cell_text in zip(rows[-1], cells, strict=True)
            ]
        else:
            rows.append(cells)
    return rows


def _is_table(rows: Rows) -> bool:
    if len(rows) < ROWS_LEAST or len(rows[0]) < COLUMNS_LEAST:
        return False
    filled_columns = [[cell for cell in column if cell] for column in zip(*rows, strict=True)]
    long_columns = sum(median(map(len, column)) > CELL_CHARS for column in filled_columns if column)
    leader_rows = sum(any(_LEADERS in cell for cell in row) for row in rows)
    cell_count = len(rows) * len(filled_columns)
    return (
        long_columns < LONG_SHARE_MOST * len(filled_columns)
        and sum(map(len, filled_columns)) >= FILLED_SHARE_LEAST * cell_count
        and leader_rows < len(rows) / 2
    )
