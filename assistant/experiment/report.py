"""Reports: every figure of a summary as Markdown, under the name that it has in the JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def markdown(summary: Mapping[Any, Any]) -> str:
    """Single figures in one line, then a table for each group of figures; deeper levels become tables of their own.

    A measure (`{"value", "low", "high", "n"}`) is one cell: its value, the ends of its interval, and its count.
    """
    single = [f"{name} {_cell(found)}" for name, found in summary.items() if _is_cell(found)]
    parts = [", ".join(single)] if single else []
    for name, found in summary.items():
        if found and not _is_cell(found):
            parts += _tables(name, found)
    return "\n\n".join(parts)


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table whose first column holds names and whose others hold figures."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _tables(name: str, found: Mapping[Any, Any] | Sequence[Any]) -> list[str]:
    rows = found if isinstance(found, Mapping) else dict(enumerate(found, 1))
    if all(_is_cell(of) for of in rows.values()):
        return [grid([name, ""], [[str(of), _cell(found)] for of, found in rows.items()])]
    if any(not isinstance(of, Mapping) for of in rows.values()):
        return [f"**{name}**", markdown(rows)]
    deeper = [
        table
        for row, of in rows.items()
        for column, found in of.items()
        if found and not _is_cell(found)
        for table in _tables(f"{name} {row}: {column}", found)
    ]
    columns = list(dict.fromkeys(column for of in rows.values() for column, found in of.items() if _is_cell(found)))
    cells = [[str(row), *(_cell(of.get(column)) for column in columns)] for row, of in rows.items()]
    return [grid([name, *columns], cells), *deeper]


def _is_cell(found: Any) -> bool:
    if isinstance(found, Mapping):
        return "value" in found and not any(isinstance(one, Mapping) for one in found.values())
    return not isinstance(found, (list, tuple)) or all(_is_cell(one) for one in found)


def _cell(found: Any) -> str:
    if isinstance(found, Mapping):
        ends = f" [{_cell(found['low'])}, {_cell(found['high'])}]" if "low" in found else ""
        return f"{_cell(found['value'])}{ends}" + (f" of {found['n']}" if "n" in found else "")
    if isinstance(found, (list, tuple)):
        return ", ".join(map(_cell, found))
    return "" if found is None else f"{found:.3f}" if isinstance(found, float) else str(found)
