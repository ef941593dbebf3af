"""Memory of this process and its engines' processes: what is held now, and the most that was held."""

from __future__ import annotations

import sys

import psutil


def peak_bytes() -> int:
    """The most memory that this process has held and what its engines hold in processes of their own, in bytes."""
    return _own_peak() + _held_by_children(psutil.Process())


def held_bytes(process: psutil.Process | None = None) -> int:
    """The memory that a process (this one if none is given) and its engines' processes hold now, in bytes."""
    process = process or psutil.Process()
    return int(process.memory_info().rss) + _held_by_children(process)


def _held_by_children(process: psutil.Process) -> int:
    return sum(child.memory_info().rss for child in process.children(recursive=True))


def _own_peak() -> int:
    """Every system tells it in its own way."""
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource  # noqa: PLC0415 - Windows has none

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # KiB everywhere but on macOS
