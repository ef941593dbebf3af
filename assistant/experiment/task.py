"""A measurement: what is measured, how a row is made of each thing, and what all rows say."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, Generic, TypeVar

from assistant.experiment.datasets import fingerprint
from assistant.experiment.report import markdown
from assistant.experiment.runs import Row, Run
from assistant.protocols import Progress

Item = TypeVar("Item")
With = TypeVar("With")
Rows = Mapping[Any, Row]
Summary = dict[str, Any]


def decided_by(asked: Any, *names: str) -> Row:
    """Fields of what is asked, for a claim: a file by its content, so that a run knows whether it is the same."""
    values = {name: getattr(asked, name) for name in names}
    return {name: fingerprint(one) if isinstance(one, Path) else one for name, one in values.items()}


def unusual(asked: Any, *names: str) -> Row:
    """Those fields that are not at their default: runs from before they could be chosen go on."""
    return {
        one.name: found
        for one in fields(asked)
        if one.name in names and (found := getattr(asked, one.name)) != one.default
    }


class Task(ABC, Generic[Item, With]):
    """A row is made of each of `items`, which have the keys of their rows; `With` is what it takes to make one.

    What a subclass says in `claim`, `row` and `summarise` is all that tells measurements apart.
    """

    title = "Questions"
    items: Mapping[Any, Item]

    @abstractmethod
    def claim(self) -> Row:
        """What decides the rows; a folder that was begun with something else is refused."""

    @abstractmethod
    def row(self, item: Item, given: With) -> Row:
        """The row of one item."""

    @abstractmethod
    def summarise(self, rows: Rows) -> Summary:
        """The measures that the rows of all items give."""

    def told(self, summary: Summary) -> Summary:
        """What is told of the summary; the report holds all of it."""
        return summary

    def details(self, summary: Summary, run: Run[Any]) -> str:  # noqa: ARG002 - for those that have more to tell
        """What the report says behind the table; other files of results are written here, too."""
        return ""

    def key(self, row: Row) -> Hashable:
        """What tells the row from others."""
        return str(row["id"])

    def open(self, folder: Path) -> Run[Any]:
        """The folder of this measurement; more items may be added to it later.

        Raises:
            DataError: the folder holds something else, or can't be written.
        """
        return Run(folder, self.claim(), self.key)

    def is_done(self, run: Run[Any]) -> bool:
        """Whether no row is missing."""
        return all(key in run.rows for key in self.items)

    def fill(self, run: Run[Any], given: With, progress: Progress, jobs: int = 1, stop: Event | None = None) -> None:
        """Make the rows that are missing, `jobs` at a time; see `Run.fill`."""
        made = [(key, partial(self.row, item, given)) for key, item in self.items.items()]
        run.fill(made, len(made), progress, jobs, stop)

    def write(self, run: Run[Any], summary: Summary, command: str) -> None:
        """Write summary and report into the folder; `command` is how to repeat it."""
        run.write("summary.json", json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
        details = self.details(summary, run).rstrip()
        run.write("report.md", "\n\n".join(filter(None, (f"    {command}", markdown(summary), details))) + "\n")
