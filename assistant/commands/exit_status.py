"""Ends a command: closes what it loaded, and ends the process with the command's exit status.

| ended by | status |
|---|---|
| an answer, or one that was stopped | 0 |
| an error that a person can mend | 2 |
| Ctrl-C before there is an answer to stop | 130, as shells have it |
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from typing import NoReturn

BROKEN, MENDABLE, INTERRUPTED = 1, 2, 130  # 130 is 128 and the number of SIGINT

_opened = ExitStack()


def at_end(close: Callable[[], None]) -> None:
    """Have something closed when the command ends, the last first."""
    _opened.callback(close)


def end_with(command: Callable[[], object]) -> NoReturn:
    """Run the command, close what it opened, and end the process.

    Python's own end is left out but for its exit functions: it kills the threads that are still inside a library, such
    as one that is loading a model, and that aborts the process when they hold objects of C++.
    """
    status = _status(command)
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))  # whoever can't wait for the closing
    status = _status(_opened.close) or status
    atexit._run_exitfuncs()  # noqa: SLF001 - what Python itself would call now
    os._exit(_flushed() or status)


def _status(work: Callable[[], object]) -> int:
    try:
        work()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else BROKEN if end.code else 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - a bug, told as Python itself would tell it
        traceback.print_exc()
        return BROKEN
    return 0


def _flushed() -> int:
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:  # whoever read the output has left
        return BROKEN
    return 0
