"""Tables in Markdown, and what stands in their cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# How `table` writes a share, its interval and of how many it is, and the interval of a measure.
PERCENT = ("{value:.0%}", "{low:.0%} to {high:.0%}", "{n}")
INTERVAL = "{low:.3f} to {high:.3f}"
SIGNED = "{low:+.3f} to {high:+.3f}"


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of names, with figures to their right."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def table(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, str]) -> str:
    """A line for each of `rows`; a column says how its cells are written, such as "{value:.2f}"."""
    return grid(list(columns), [[form.format(**row) for form in columns.values()] for row in rows])


def measured(found: Mapping[str, float], form: str = ".3f", scale: float = 1) -> str:
    """A measure with the ends of its interval in brackets, where it has one."""
    value, *ends = (format(scale * found[name], form) for name in ("value", "low", "high") if name in found)
    return f"{value} [{', '.join(ends)}]" if ends else value


def number(found: float | None) -> str:
    """A measure, nothing where there is none."""
    return "" if found is None else f"{found:.3f}"


def measures_grid(head: str, rows: Mapping[str, Mapping[str, Mapping[str, float]]], form: str = ".3f") -> str:
    """A table of measures with their intervals, which all rows have."""
    names = list(next(iter(rows.values())))
    return grid([head, *names], [[row, *(measured(of[name], form) for name in names)] for row, of in rows.items()])
