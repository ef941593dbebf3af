"""`python app.py` as a person starts it, in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass
class App:
    process: subprocess.Popen[str]
    folder: Path
    url: str
    seconds: float  # from the start of the process until it printed its address


def small(folder: Path) -> dict[str, str]:
    """What a process is told so that it has this data folder and the smallest model.

    No passage is left out, so that there are votes to show; and no reply is set aside, as most of so small a model's
    would be, after which every passage is asked alone.
    """
    return {
        **os.environ,
        "SEQUITUR_LLM__MODEL": "smollm2-135m",
        "SEQUITUR_RELEVANCE__MIN_RELATIVE_CONFIDENCE": "0",
        "SEQUITUR_TURN__ADDRESSES_THRESHOLD": "0",
        "SEQUITUR_DATA_DIR": str(folder),
    }


@contextmanager
def started(folder: Path, **environment: str) -> Iterator[App]:
    """The app with this data folder, on the smallest model, and with what else it is told."""
    began = time.perf_counter()
    command = [sys.executable, "app.py", "--port", "0"]
    told = {**small(folder), **environment}
    process = subprocess.Popen(command, cwd=ROOT, env=told, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    line = process.stderr.readline()
    found = re.search(r"http://\S+", line)
    assert found, line
    try:
        yield App(process, folder, found[0], time.perf_counter() - began)
    finally:
        process.kill()
        process.wait()
