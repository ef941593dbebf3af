"""What changed between two versions of a table's rows, and whether the change is beyond chance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assistant.experiment.measures import Estimate, paired_difference
from assistant.experiment.runs import Row

# The fields that identify a row, of which it may lack some.
KEY = ("run", "id", "strategy", "loop", "k", "placement", "samples", "shots")
# Fields that differ from run to run.
_FREE = frozenset(("seconds", "ms"))
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A changed field of `n` rows: the mean difference of its numbers, or how many of its other values changed.

    `of` says which rows these are: the run, and the strategy or loop if there are several.
    """

    of: str
    field: str
    n: int
    difference: Estimate | None = None
    changed: int = 0

    @property
    def beyond_chance(self) -> bool:
        """Whether the interval of the difference excludes zero."""
        return self.difference is not None and not self.difference["low"] <= 0 <= self.difference["high"]

    def __str__(self) -> str:
        """The change in one line."""
        if self.difference is None:
            return f"{self.of}: {self.field} is another in {self.changed} of {self.n}"
        value, low, high = self.difference.values()
        return f"{self.of}: {self.field} {value:+.3f} [{low:+.3f}, {high:+.3f}] of {self.n}"


def field_changes(before: Sequence[Row], after: Sequence[Row], seed: int = 0) -> list[FieldChange]:
    """All fields that differ in rows that both versions have; numbers with the interval of their mean difference."""
    old = {_key(row): row for row in before}
    pairs: dict[str, list[tuple[Row, Row]]] = {}
    for row in after:
        if (key := _key(row)) in old:
            pairs.setdefault(_of(row), []).append((old[key], row))
    return [found for of, rows in pairs.items() for found in _fields(of, rows, seed)]


def _key(row: Row) -> Key:
    return tuple(row.get(name) for name in KEY)


def _of(row: Row) -> str:
    return ", ".join(str(row[name]) for name in KEY if name != "id" and row.get(name) is not None)


def _fields(of: str, rows: Sequence[tuple[Row, Row]], seed: int) -> Iterator[FieldChange]:
    flat = [(_flat(one), _flat(other)) for one, other in rows]
    common = [name for name in flat[0][1] if all(name in one and name in other for one, other in flat)]
    for name in common:
        values = [(one[name], other[name]) for one, other in flat]
        if all(one == other for one, other in values):
            continue
        if all(isinstance(value, (int, float)) for pair in values for value in pair):
            difference = paired_difference([new for _, new in values], [was for was, _ in values], seed)
            yield FieldChange(of, name, len(values), difference)
        else:
            yield FieldChange(of, name, len(values), changed=sum(one != other for one, other in values))


def _flat(row: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """The row's fields; those of nested records are named by their path, and lists are compared as a whole."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if name in KEY or name in _FREE:
            continue
        flat |= _flat(value, f"{before}{name}.") if isinstance(value, Mapping) else {f"{before}{name}": value}
    return flat
