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
_BETWEEN, _NAMED = "; ", ": "
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
    head: Row | None = None
    for number, row in enumerate(rows, 1):
        cells = [cell and tidy(cell) for cell in row]
        filled = sum(map(bool, cells))
        if names is None and filled > 1:
            names = column_names(cells) if number <= HEAD_ROWS and is_header(cells) else ()
            if names:
                head = Row(number, row_line(cells))
                continue
        if filled:
            shown = cells if names or filled > 1 else list(filter(None, cells))
            yield Row(number, named_line(names or (), shown))
            head = None
    if head:
        yield head


def is_header(cells: Sequence[str]) -> bool:
    """Whether a row looks like the names of columns: two words or more, all different, none a number."""
    words = [cell for cell in cells if cell]
    return len(words) > 1 and len(set(words)) == len(words) and all(map(_LETTER.search, words))


def column_names(cells: Iterable[str]) -> list[str]:
    """The names of columns, short enough to stand beside each value."""
    return [cell if len(cell) <= NAME_CHARS else cell[: NAME_CHARS - 1].rstrip() + "…" for cell in cells]


def named_line(names: Sequence[str], cells: Sequence[str]) -> str:
    """A row as one line, each value behind the name of its column, without the empty ones; as it is without names."""
    if not names:
        return row_line(cells)
    padded = [*names, *[""] * (len(cells) - len(names))]
    named = zip(padded, cells, strict=False)
    return _BETWEEN.join(f"{name}{_NAMED}{cell}" if name else cell for name, cell in named if cell)


def values(line: str) -> str:
    """What a line that `named_line` made says without the names of the columns; "" of any other text."""
    parts = [part.partition(_NAMED) for part in line.split(_BETWEEN)]
    return " ".join(cell for _, _, cell in parts) if len(parts) > 1 and all(cell for *_, cell in parts) else ""
