"""How a server writes its log: lines for people, or a JSON object a line for programs.

Neither holds what people wrote. An exception's own words may, such as a text that could not be parsed; so the JSON
lines have its kind and where it was raised, and leave its words out.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Literal

OURS = ("assistant", "ptkb")


class JsonLines(logging.Formatter):
    """A record as one line of JSON: time (ISO 8601, UTC), level, logger, message; `error` with its kind and places.

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
    """Have this process write its log so, to the error stream; in JSON also a line for each turn that is over."""
    if how == "text":
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for name in OURS:
        logging.getLogger(name).setLevel(logging.INFO)


def _message(record: logging.LogRecord) -> str:
    """Our own messages as they are; of libraries only the pattern, since what they fill in may be anybody's words."""
    return record.getMessage() if record.name.partition(".")[0] in OURS else str(record.msg)


def _places(record: logging.LogRecord) -> list[str]:
    trace = record.exc_info[2] if record.exc_info else None
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(trace)]
