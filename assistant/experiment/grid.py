"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of names, with figures to their right."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
