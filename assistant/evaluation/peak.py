"""The most memory that a process has held; every system tells it in its own way."""

from __future__ import annotations

import sys

import psutil


def peak_bytes() -> int:
    """The most memory that this process has held, in bytes."""
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource  # noqa: PLC0415 - Windows has none

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # KiB everywhere but on macOS
