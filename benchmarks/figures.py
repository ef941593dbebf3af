"""Prints the figures of a benchmark, as a report or as JSON, and stores them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from assistant.commands.common import create_results_folder, report_write_errors
from assistant.commands.experiment import print_summary
from assistant.experiment.options import AsJson
from assistant.experiment.task import Summary


@dataclass(frozen=True)
class Figures:
    """The options of a benchmark whose figures are kept; a folder that takes none is refused before it begins."""

    as_json: AsJson = False
    into: Annotated[Path | None, Option("--out", help="A folder for the figures as JSON.")] = None

    def __post_init__(self) -> None:
        create_results_folder(self.into)

    def tell(self, name: str, report: Any, summary: Summary | None = None) -> None:
        """Print the whole report, or for people its `summary` where there is one, and `keep` the report."""
        print_summary(report, self.as_json, summary)
        self.keep(name, report)

    def keep(self, name: str, report: Any) -> None:
        """Write NAME.json, where that is wanted."""
        if self.into:
            with report_write_errors(self.into):
                (self.into / f"{name}.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
