"""Progress bars on the error stream, as the `Progress` of long tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar, TypeVarTuple

from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.progress import Progress as Bars

from assistant.commands.common import error_console
from assistant.protocols import Progress

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def bar(title: str) -> AbstractContextManager[Progress]:
    """A bar of things done, with an estimate of the time that is left."""
    return _progress_bar(title, MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left:"), TimeRemainingColumn())


def with_bar(title: str, work: Callable[[*Ts, Progress], T], *arguments: *Ts) -> T:
    """What the work returns, which is called with the `arguments` and the `Progress` of a bar."""
    with bar(title) as progress:
        return work(*arguments, progress)


def bar_of_bytes(title: str) -> AbstractContextManager[Progress]:
    """A bar of bytes, with their speed."""
    return _progress_bar(title, DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())


@contextmanager
def _progress_bar(title: str, *columns: ProgressColumn) -> Iterator[Progress]:
    with Bars(
        TextColumn("{task.description}", markup=False), BarColumn(), *columns, console=error_console, transient=True
    ) as bars:
        task = bars.add_task(title, total=None)
        # A total of 0 means that nobody knows it.
        yield lambda done, total: bars.update(task, completed=done, total=total or None)
