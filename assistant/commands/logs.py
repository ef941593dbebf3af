"""How a server writes its log: lines for people, or a JSON object a line for programs.

Neither holds what people wrote. An exception's own words may, such as a text that could not be parsed; so the JSON
lines have its kind and where it was raised, and leave its words out. What libraries and processes that were started
from here write to the output or the error stream by themselves is treated the same: of a traceback its places and the
kind of the error become lines of the log, and of anything else only how much it was.
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import Literal

from assistant.commands.common import error_console
from assistant.commands.exit_status import at_end

OWN_LOGGERS = ("assistant", "ptkb")
DRAIN_SECONDS = 1.0  # seconds in which what was written at the very end is still read
_MESSAGE_LOG = logging.getLogger(__name__)
_STREAM_LOG = logging.getLogger("streams")
_PLACE = re.compile(r'\s*File "[^"]+", line \d+, in \S+')
_KIND = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|Warning)\b")


class JsonLines(logging.Formatter):
    """A record as one line of JSON: time (ISO 8601, UTC), level, logger, message; of an error, its kind and places.

    What a record has as `figures` stands beside these under its own names.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
            **getattr(record, "figures", {}),
        }
        if record.exc_info and record.exc_info[0]:
            line["exception"] = record.exc_info[0].__name__
            line["places"] = _places(record)
        return json.dumps(line, ensure_ascii=False, default=str)


def write_logs(how: Literal["text", "json"]) -> None:
    """Have this process write its log so, to the error stream; in JSON also a line for each turn that is over.

    In JSON nothing else reaches that stream any more, nor the output.
    """
    if how == "text":
        return
    handler = logging.StreamHandler(os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding="utf-8"))
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for name in (*OWN_LOGGERS, _STREAM_LOG.name):
        logging.getLogger(name).setLevel(logging.INFO)
    error_console.file, error_console.soft_wrap = _MessageStream(), True
    _take_streams()


class _MessageStream(io.StringIO):
    """What is said to a person, as lines of the log; nothing of it is kept here."""

    def write(self, text: str) -> int:
        for line in filter(None, map(str.strip, text.splitlines())):
            _MESSAGE_LOG.info("%s", line)
        return len(text)


def _take_streams() -> None:
    """Have what anything writes to the output or the error stream become lines of the log."""
    read_end, write_end = os.pipe()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
        os.dup2(write_end, stream.fileno(), inheritable=True)
    os.close(write_end)
    thread = Thread(target=_pass_on, args=(read_end,), name="streams", daemon=True)
    thread.start()

    def end() -> None:
        with Path(os.devnull).open("w") as nowhere:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
                os.dup2(nowhere.fileno(), stream.fileno())
        thread.join(DRAIN_SECONDS)  # it ends by itself once no other process writes there either

    at_end(end)


def _pass_on(read_end: int) -> None:
    with os.fdopen(read_end, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.strip():
                _STREAM_LOG.warning(_loggable_part(line))


def _loggable_part(line: str) -> str:
    """What may be logged of a line that a library wrote: a place, the kind of an error, or else only its length."""
    match = _PLACE.match(line) or _KIND.match(line)
    return match[0].strip() if match else f"{len(line.strip())} characters, left out"


def _message(record: logging.LogRecord) -> str:
    """Our own messages as they are; of libraries only the pattern, since what they fill in may be anybody's words."""
    return record.getMessage() if record.name.partition(".")[0] in OWN_LOGGERS else str(record.msg)


def _places(record: logging.LogRecord) -> list[str]:
    trace = record.exc_info[2] if record.exc_info else None
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(trace)]
