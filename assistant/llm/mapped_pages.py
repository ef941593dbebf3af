"""Drops pages of memory-mapped files that are no longer needed."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

_MADV_DONTNEED = 4


def drop_mapped_pages(file: Path) -> None:
    """Drop this process's pages of a file that it has mapped read-only; reading them again loads them from disk.

    Linux counts such pages as the process's own memory, and this is a hint to it; elsewhere nothing happens.
    """
    if not sys.platform.startswith("linux"):
        return
    name = str(file.resolve())
    advise = ctypes.CDLL(None, use_errno=True).madvise
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, rights, *_, path = line.split(maxsplit=5)
        if path == name and "w" not in rights:
            start, end = (int(part, 16) for part in span.split("-"))
            advise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _MADV_DONTNEED)
