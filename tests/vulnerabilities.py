"""The table of known vulnerabilities (docs/results/vulnerabilities.md), for the tests and for `tests/audit.py`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

TABLE = Path(__file__).parents[1] / "docs/results/vulnerabilities.md"
_ROW = re.compile(r"\| (.+?) \| ([a-z0-9-]+) \| (.+?) \| .+? \| (after )?([\d.]+) \| ?(.*?) ?\|")
_NUMBER = re.compile(r"(?:CVE|PYSEC)-\d{4}-\d+|GHSA(?:-[0-9a-z]{4}){3}")


@dataclass(frozen=True, slots=True)
class Known:
    """A line of the table. `after` says that the version is the last that is known to be affected."""

    numbers: frozenset[str]
    package: str
    version: Version
    after: bool
    here: str

    @property
    def open(self) -> bool:
        """Whether what is installed is affected, which the line gives the reason for."""
        return self.here.startswith("open:")

    def mended(self, version: Version) -> bool:
        """Whether this version is not affected."""
        return version > self.version if self.after else version >= self.version


def table() -> list[Known]:
    """All lines."""
    rows = _ROW.findall(TABLE.read_text(encoding="utf-8"))
    return [
        Known(frozenset(_NUMBER.findall(numbers)), package, Version(version), bool(after), here)
        for numbers, package, _affected, after, version, here in rows
    ]
