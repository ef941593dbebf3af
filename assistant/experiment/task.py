"""A measurement: what is measured, how a row is made of each item, and what all rows add up to."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import fields
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, ClassVar, Generic, TypeVar

from assistant.experiment.datasets import fingerprint
from assistant.experiment.report import markdown
from assistant.experiment.runs import Row, Run
from assistant.protocols import Progress

Item = TypeVar("Item")
Resources = TypeVar("Resources")
Rows = Mapping[Any, Row]
Summary = dict[str, Any]


def claim_of_fields(experiment: Any, *names: str) -> Row:
    """These fields of an experiment, for a claim. A file is given by the hash of its content."""
    values = {name: getattr(experiment, name) for name in names}
    return {name: fingerprint(value) if isinstance(value, Path) else value for name, value in values.items()}


def non_default_fields(experiment: Any, *names: str) -> Row:
    """Those of these fields that are not at their default, so that runs older than a field can be continued."""
    return {
        field.name: value
        for field in fields(experiment)
        if field.name in names and (value := getattr(experiment, field.name)) != field.default
    }


class Task(ABC, Generic[Item, Resources]):
    """Makes a row of each of `items`, which are keyed as their rows are; `Resources` is what making a row takes.

    A measurement is a subclass with its own `row` and `summarise`, and with `claim_fields`, the names of the
    fields that determine its rows, or with its own `claim`.
    """

    title = "Questions"
    claim_fields: ClassVar[tuple[str, ...]]
    items: Mapping[Any, Item]

    def claim(self) -> Row:
        """All that determines the rows; a folder whose run was begun with another claim is refused."""
        return claim_of_fields(self, *self.claim_fields)

    @abstractmethod
    def row(self, item: Item, resources: Resources) -> Row:
        """The row of one item."""

    @abstractmethod
    def summarise(self, rows: Rows) -> Summary:
        """The measures over the rows of all items."""

    def printed_part(self, summary: Summary) -> Summary:
        """The part of the summary that is printed; the report has all of it."""
        return summary

    def details(self, summary: Summary, run: Run[Any]) -> str:  # noqa: ARG002 - for subclasses
        """What the report says below its tables; further files of results are written here as well."""
        return ""

    def key(self, row: Row) -> Hashable:
        """The key of a row, unique in its run."""
        return str(row["id"])

    def open(self, folder: Path) -> Run[Any]:
        """The run in this folder, which is begun or continued; more items may be added to it later.

        Raises:
            DataError: the folder holds another run, or can't be written.
        """
        return Run(folder, self.claim(), self.key)

    def is_done(self, run: Run[Any]) -> bool:
        """Whether no row is missing."""
        return all(key in run.rows for key in self.items)

    def fill(
        self, run: Run[Any], resources: Resources, progress: Progress, jobs: int = 1, stop: Event | None = None
    ) -> None:
        """Make the rows that are missing, `jobs` at a time; see `Run.fill`."""
        rows = [(key, partial(self.row, item, resources)) for key, item in self.items.items()]
        run.fill(rows, len(rows), progress, jobs, stop)

    def write(self, run: Run[Any], summary: Summary, command: str) -> None:
        """Write summary and report into the folder; `command` is how to repeat it."""
        run.write("summary.json", json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
        details = self.details(summary, run).rstrip()
        run.write("report.md", "\n\n".join(filter(None, (f"    {command}", markdown(summary), details))) + "\n")
