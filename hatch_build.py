"""Reads what the package depends on from requirements.txt, so that it stands once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

EXTRA = "requirements-"  # what the names of files with an extra's requirements begin with
TESTS = "# What the tests and checks need"  # the line of requirements.txt that begins its second part


class Requirements(MetadataHookInterface):
    """The first part of requirements.txt is what the package needs, the second its extra `tests`.

    Each file requirements-NAME.txt is the extra NAME.
    """

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the requirements to the package's metadata."""
        package, tests = Path(self.root, "requirements.txt").read_text(encoding="utf-8").split(TESTS)
        metadata["dependencies"] = _requirements(package)
        extras = {file.stem.removeprefix(EXTRA): file for file in Path(self.root).glob(f"{EXTRA}*.txt")}
        metadata["optional-dependencies"] = {
            "tests": _requirements(tests),
            **{name: _requirements(file.read_text(encoding="utf-8")) for name, file in sorted(extras.items())},
        }


def _requirements(text: str) -> list[str]:
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]
