"""Prints the figures of a benchmark, as a report or as JSON, and stores them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from assistant.commands.common import results_folder, writing
from assistant.commands.experiment import show
from assistant.experiment.options import AsJson
from assistant.experiment.task import Summary


@dataclass(frozen=True)
class Figures:
    """The options of a benchmark whose figures are kept; a folder that takes none is refused before it begins."""

    as_json: AsJson = False
    into: Annotated[Path | None, Option("--out", help="A folder for the figures as JSON.")] = None

    def __post_init__(self) -> None:
        results_folder(self.into)

    def tell(self, name: str, found: Any, told: Summary | None = None) -> None:
        """Print all that was found, or for people what is `told` of it, and `keep` it."""
        show(found, self.as_json, told)
        self.keep(name, found)

    def keep(self, name: str, found: Any) -> None:
        """Write NAME.json, where that is wanted."""
        if self.into:
            with writing(self.into):
                (self.into / f"{name}.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
