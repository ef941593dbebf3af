"""Reports: every figure of a summary as Markdown, under the name that it has in the JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def markdown(summary: Mapping[Any, Any]) -> str:
    """Single figures in one line, then a table for each group of figures; deeper levels become tables of their own.

    A measure (`{"value", "low", "high", "n"}`) is one cell: its value, the ends of its interval, and its count.
    """
    cells = [f"{name} {_cell(value)}" for name, value in summary.items() if _is_cell(value)]
    parts = [", ".join(cells)] if cells else []
    for name, value in summary.items():
        if value and not _is_cell(value):
            parts += _tables(name, value)
    return "\n\n".join(parts)


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table whose first column holds names and whose others hold figures."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _tables(name: str, value: Mapping[Any, Any] | Sequence[Any]) -> list[str]:
    rows = value if isinstance(value, Mapping) else dict(enumerate(value, 1))
    if all(_is_cell(entry) for entry in rows.values()):
        return [markdown_table([name, ""], [[str(label), _cell(value)] for label, value in rows.items()])]
    if any(not isinstance(entry, Mapping) for entry in rows.values()):
        return [f"**{name}**", markdown(rows)]
    deeper_tables = [
        table
        for row, entry in rows.items()
        for column, value in entry.items()
        if value and not _is_cell(value)
        for table in _tables(f"{name} {row}: {column}", value)
    ]
    columns = list(
        dict.fromkeys(column for entry in rows.values() for column, value in entry.items() if _is_cell(value))
    )
    cells = [[str(row), *(_cell(entry.get(column)) for column in columns)] for row, entry in rows.items()]
    return [markdown_table([name, *columns], cells), *deeper_tables]


def _is_cell(value: Any) -> bool:
    if isinstance(value, Mapping):
        return "value" in value and not any(isinstance(item, Mapping) for item in value.values())
    return not isinstance(value, (list, tuple)) or all(_is_cell(item) for item in value)


def _cell(value: Any) -> str:
    if isinstance(value, Mapping):
        interval = f" [{_cell(value['low'])}, {_cell(value['high'])}]" if "low" in value else ""
        return f"{_cell(value['value'])}{interval}" + (f" of {value['n']}" if "n" in value else "")
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_cell, value))
    return "" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
