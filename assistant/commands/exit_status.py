"""Ends a command: closes what it loaded, and ends the process with the command's exit status.

| ended by | status |
|---|---|
| an answer, or one that was stopped | 0 |
| an error that a person can mend | 2 |
| Ctrl-C before there is an answer to stop | 130, as shells have it |
"""

from __future__ import annotations

import atexit
import errno
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType
from typing import NoReturn

GENERAL_ERROR, USER_ERROR, INTERRUPTED = 1, 2, 130  # 130 is 128 and the number of SIGINT
_RETRY_SECONDS = 0.05  # seconds after which an interrupt that met an import comes again
_IMPORTS = "<frozen importlib._bootstrap>"  # the file of Python's code that imports modules
_CAN_WAIT = hasattr(signal, "setitimer")  # Windows has none: there an interrupt comes where it comes

_exit_stack = ExitStack()


def at_end(close: Callable[[], None]) -> None:
    """Have something closed when the command ends, the last first."""
    _exit_stack.callback(close)


def end_with(command: Callable[[], object]) -> NoReturn:
    """Run the command, close what it opened, and end the process.

    Python's own end is left out but for its exit functions: it kills the threads that are still inside a library, such
    as one that is loading a model, and that aborts the process when they hold objects of C++.
    """
    _open_closed_streams()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else whoever started it has it ignore Ctrl-C
        signal.signal(signal.SIGINT, _interrupt)
    status = _status(command)
    if _CAN_WAIT:
        signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))  # whoever can't wait for the closing
    status = _status(_exit_stack.close) or status
    atexit._run_exitfuncs()  # noqa: SLF001 - what Python itself would call now
    flush_status = _flushed()
    os._exit(status or flush_status)


def _open_closed_streams() -> None:
    """Open the streams that are closed, as by `>&-`: else a file takes their place, and a library may print into it."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def _interrupt(_: int, frame: FrameType | None) -> None:
    """Ctrl-C, after the import that it meets: one that is broken off may keep Python's lock on imports.

    That happens where the interrupt meets a callback that frees a module's lock: Python drops it there, holds the lock
    on all imports for good, and the threads that load models wait for it for ever.
    """
    if _CAN_WAIT and _imports(frame):
        signal.signal(signal.SIGALRM, _interrupt)
        signal.setitimer(signal.ITIMER_REAL, _RETRY_SECONDS)
    else:
        raise KeyboardInterrupt


def _imports(frame: FrameType | None) -> bool:
    while frame:
        if frame.f_code.co_filename == _IMPORTS:
            return True
        frame = frame.f_back
    return False


def _status(work: Callable[[], object]) -> int:
    try:
        work()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else GENERAL_ERROR if end.code else 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        return _disk_status(error)
    except Exception:  # noqa: BLE001 - a bug, told as Python itself would tell it
        traceback.print_exc()
        return GENERAL_ERROR
    return 0


def _flushed() -> int:
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError as error:
        # whoever read the output may have left
        return _disk_status(error) if error.errno == errno.ENOSPC else GENERAL_ERROR
    return 0


def _disk_status(error: OSError) -> int:
    """Tell of a full disk, which a person can mend, in one sentence, and of anything else as Python itself would."""
    if error.errno != errno.ENOSPC:
        traceback.print_exception(error)
        return GENERAL_ERROR
    print("Error: The disk is full, so not all was written; free space, and run this again.", file=sys.stderr)  # noqa: T201
    return USER_ERROR
