"""Returns freed memory, which the C library would keep for later, to the operating system.

glibc gives each thread that allocates an arena of its own, several for each core, and an arena keeps what was freed in
it. A turn frees hundreds of megabytes (activations of the small models, prompts that llama.cpp had saved) in whichever
arenas its threads had, so that a process which runs a turn a thread holds more after every one.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import CDLL
from functools import cache


def trim_memory() -> None:
    """Return freed memory to the system, which takes some milliseconds. Does nothing unless the C library is glibc."""
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    try:
        return CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # musl and macOS lack it; on Windows there is no such library
        return None
