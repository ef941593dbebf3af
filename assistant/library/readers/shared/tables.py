"""Rows of tables as lines that can be cited by themselves: "Item: Oats; Price: 12"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from assistant.library.readers.shared.text import row_line, tidy

# A longer name of a column is cut: it stands beside each of its values.
NAME_CHARS = 80
# The names of the columns stand in one of so many rows, below a title of the sheet and the like.
HEAD_ROWS = 10
# Without a mark that says so, the first row of a narrower table may as well be data: "Name | Anna", "Age | 12".
UNMARKED_COLUMNS = 3
_CELL_SEPARATOR, _NAME_SEPARATOR = "; ", ": "
_LETTER = re.compile(r"[^\W\d_]")


class Row(NamedTuple):
    """A line that a row makes, and which row that is, from 1."""

    number: int
    text: str


def lines(rows: Iterable[Sequence[str]]) -> Iterator[Row]:
    """The rows of a sheet as lines, with the names of their columns where a row above says these.

    Args:
        rows: the cells of each, as text.
    """
    names: Sequence[str] | None = None
    header: Row | None = None
    for number, row in enumerate(rows, 1):
        cells = [cell and tidy(cell) for cell in row]
        filled = sum(map(bool, cells))
        if names is None and filled > 1:
            names = column_names(cells) if number <= HEAD_ROWS and is_header(cells) else ()
            if names:
                header = Row(number, row_line(cells))
                continue
        if filled:
            shown_cells = cells if names or filled > 1 else list(filter(None, cells))
            yield Row(number, named_line(names or (), shown_cells))
            header = None
    if header:
        yield header


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
