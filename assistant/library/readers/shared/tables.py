"""Rows of tables as lines that can be cited by themselves: "Item: Oats; Price: 12"."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import dropwhile, islice, takewhile
from typing import NamedTuple

from assistant.library.readers.shared.text import row_line, tidy

# A longer name of a column is cut: it stands beside each of its values.
NAME_CHARS = 80
# The names of the columns stand in one of so many rows, below a title of the sheet and the like. So many rows below
# tell whether they are names.
HEAD_ROWS, TELLING_ROWS = 10, 20
# Without a mark that says so, the first row of a narrower table may as well be data: "Name | Anna", "Age | 12".
UNMARKED_COLUMNS = 3
# So many columns more than cells a row of names may have.
SPANNED_MOST = 1000
_CELL_SEPARATOR, _NAME_SEPARATOR = "; ", ": "
_LETTER = re.compile(r"[^\W\d_]")
# Numbers of telephones and the like, which begin with a nought or a plus, are none.
_VALUE = re.compile(
    r"""\d{1,4}([./-])\d{1,2}\1\d{1,4}(?:[ T][\d:.]+)?  # a date
    | \d{1,2}:\d\d(?::\d\d)?  # a time
    | [^\w+]{0,3}(?!0\d)\d[\d.,'’ ]*\D{0,6}  # a number, maybe with a unit
    """,
    re.VERBOSE,
)


class Row(NamedTuple):
    """A line that a row makes, and which row that is, from 1."""

    number: int
    text: str


class Head(NamedTuple):
    """The names of a table's columns: one a cell of the row that says them, and one a column that these span."""

    by_cell: Sequence[str] = ()
    by_column: Sequence[str] = ()

    def names(self, cells: Sized) -> Sequence[str]:
        """The names for the cells of a row; none where they are other in number."""
        return next((names for names in self if len(names) == len(cells)), ())


def head_of(cells: Sequence[str], spans: Iterable[int]) -> Head:
    """The names that a row says, of whose cells each spans so many columns."""
    by_cell, by_column = column_names(cells), list[str]()
    most = len(by_cell) + SPANNED_MOST
    for count, (name, span) in enumerate(zip(by_cell, spans, strict=True), 1):
        columns_left = most - len(by_column) - (len(by_cell) - count)
        by_column += [name] * min(span, columns_left)
    return Head(by_cell, by_column)


def lines(rows: Iterable[Sequence[str]]) -> Iterator[Row]:
    """The rows of a sheet as lines, with the names of their columns where a row above says these.

    Below an empty row another table may begin, with names of its own.

    Args:
        rows: the cells of each, as text.
    """
    names: Sequence[str] = ()
    header: Row | None = None  # the row that said the names, until another has them
    empty_row, is_named, is_begun = 0, False, False
    for number, (cells, next_rows) in enumerate(_with_next(rows), 1):
        filled = sum(map(bool, cells))
        if not filled:
            empty_row, is_begun = number, False
            continue
        if number == empty_row + 1 and not header and is_header(_first_wide([cells, *next_rows])):
            names = ()
        if filled > 1 and not is_begun:
            is_begun = True
            may_be_header = not header and number - empty_row <= HEAD_ROWS and is_header(cells)
            is_clear = filled >= UNMARKED_COLUMNS and not is_named
            if may_be_header and (is_clear or _stands_over_values(cells, next_rows)):
                names, header, is_named = column_names(cells), Row(number, row_line(cells)), True
                continue
        shown_cells = cells if names or filled > 1 else list(filter(None, cells))
        yield Row(number, named_line(names, shown_cells))
        header = None
    if header:
        yield header


def _with_next(rows: Iterable[Sequence[str]]) -> Iterator[tuple[list[str], Sequence[list[str]]]]:
    """Each row with those that follow it, as far as they tell what it is."""
    tidy_rows = ([cell and tidy(cell) for cell in row] for row in rows)
    next_rows = deque(islice(tidy_rows, TELLING_ROWS))
    while next_rows:
        row = next_rows.popleft()
        next_rows.extend(islice(tidy_rows, 1))
        yield row, next_rows


def _first_wide(rows: Iterable[Sequence[str]]) -> Sequence[str]:
    """The first row with several cells, up to an empty one."""
    return next((row for row in takewhile(any, rows) if sum(map(bool, row)) > 1), ())


def _stands_over_values(cells: Sequence[str], next_rows: Sequence[Sequence[str]]) -> bool:
    """Whether a row has above most of the numbers or dates of a column something else.

    That tells the names of columns from data, unless an empty row and what looks like names as well stand below.
    """
    below = list(takewhile(any, dropwhile(lambda row: not any(row), next_rows)))
    if below and not any(next_rows[0]) and is_header(below[0]):
        return False
    columns = ([row[n] for row in below if n < len(row) and row[n]] for n, cell in enumerate(cells) if cell)
    return any(2 * sum(_VALUE.fullmatch(cell) is not None for cell in column) > len(column) for column in columns)


def is_header(cells: Sequence[str]) -> bool:
    """Whether a row looks like the names of columns: two words or more, all different, none a number."""
    names = [cell for cell in cells if cell]
    return len(names) > 1 and len(set(names)) == len(names) and all(map(_LETTER.search, names))


def column_names(cells: Iterable[str]) -> list[str]:
    """The names of columns, short enough to stand beside each value."""
    return [cell if len(cell) <= NAME_CHARS else cell[: NAME_CHARS - 1].rstrip() + "…" for cell in cells]


def named_line(names: Sequence[str], cells: Sequence[str]) -> str:
    """A row as one line, each value behind the name of its column, without the empty ones; as it is without names."""
    if not names:
        return row_line(cells)
    padded_names = [*names, *[""] * (len(cells) - len(names))]
    pairs = zip(padded_names, cells, strict=False)
    return _CELL_SEPARATOR.join(f"{name}{_NAME_SEPARATOR}{cell}" if name else cell for name, cell in pairs if cell)


def values(line: str) -> str:
    """What a line that `named_line` made says without the names of the columns; "" of any other text."""
    parts = [part.partition(_NAME_SEPARATOR) for part in line.split(_CELL_SEPARATOR)]
    return " ".join(cell for _, _, cell in parts) if len(parts) > 1 and all(cell for *_, cell in parts) else ""
