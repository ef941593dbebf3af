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
_VOLATILE_FIELDS = frozenset(("seconds", "ms"))
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A changed field of `n` rows: the mean difference of its numbers, or how many of its other values changed.

    `group` says which rows these are: the run, and the strategy or loop if there are several.
    """

    group: str
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
            return f"{self.group}: {self.field} is another in {self.changed} of {self.n}"
        value, low, high = self.difference.values()
        return f"{self.group}: {self.field} {value:+.3f} [{low:+.3f}, {high:+.3f}] of {self.n}"


def field_changes(before: Sequence[Row], after: Sequence[Row], seed: int = 0) -> list[FieldChange]:
    """All fields that differ in rows that both versions have; numbers with the interval of their mean difference."""
    old_rows = {_key(row): row for row in before}
    pairs: dict[str, list[tuple[Row, Row]]] = {}
    for row in after:
        if (key := _key(row)) in old_rows:
            pairs.setdefault(_group_name(row), []).append((old_rows[key], row))
    return [change for group, rows in pairs.items() for change in _fields(group, rows, seed)]


def _key(row: Row) -> Key:
    return tuple(row.get(name) for name in KEY)


def _group_name(row: Row) -> str:
    return ", ".join(str(row[name]) for name in KEY if name != "id" and row.get(name) is not None)


def _fields(group: str, rows: Sequence[tuple[Row, Row]], seed: int) -> Iterator[FieldChange]:
    flat_pairs = [(_flat(old), _flat(new)) for old, new in rows]
    common_names = [name for name in flat_pairs[0][1] if all(name in old and name in new for old, new in flat_pairs)]
    for name in common_names:
        values = [(old[name], new[name]) for old, new in flat_pairs]
        if all(old == new for old, new in values):
            continue
        if all(isinstance(value, (int, float)) for pair in values for value in pair):
            difference = paired_difference([new for _, new in values], [old for old, _ in values], seed)
            yield FieldChange(group, name, len(values), difference)
        else:
            yield FieldChange(group, name, len(values), changed=sum(old != new for old, new in values))


def _flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The row's fields; those of nested records are named by their path, and lists are compared as a whole."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if name in KEY or name in _VOLATILE_FIELDS:
            continue
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return flat
