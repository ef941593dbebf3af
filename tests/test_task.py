"""The runner of all measurements, and options that stand once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from assistant.commands.experiment import perform, spread
from assistant.errors import DataError
from assistant.experiment.options import Limit, Sample
from assistant.experiment.runs import Row, Run
from assistant.experiment.task import Rows, Summary, Task


@dataclass(frozen=True)
class Doubling(Task[int, int]):
    """Multiplies numbers."""

    items: dict[str, int]
    what: str = "numbers"

    def claim(self) -> Row:
        return {"what": self.what}

    def row(self, item: int, given: int) -> Row:
        return {"id": str(item), "product": item * given}

    def summarise(self, rows: Rows) -> Summary:
        return {"total": sum(rows[one]["product"] for one in self.items), "left_out": {"zeros": 3}}

    def details(self, summary: Summary, run: Run[str]) -> str:
        return f"{len(run.rows)} rows\n"


def test_what_is_missing_is_made_and_all_is_summed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    perform(Doubling({"1": 1, "2": 2}), tmp_path / "out", lambda: 2, as_json=True)
    told = capsys.readouterr()
    assert json.loads(told.out)["total"] == 6
    assert "Left out: zeros (3)." in told.err
    assert json.loads((tmp_path / "out" / "summary.json").read_text()) == json.loads(told.out)
    report = (tmp_path / "out" / "report.md").read_text()
    assert report.startswith("    python -m assistant")
    assert "total 6\n\n| left_out |" in report
    assert report.endswith("\n\n2 rows\n")


def test_a_run_goes_on_and_loads_nothing_where_no_row_is_missing(tmp_path: Path) -> None:
    perform(Doubling({"1": 1}), tmp_path, lambda: 2, as_json=False)
    perform(Doubling({"1": 1}), tmp_path, lambda: pytest.fail("loaded for nothing"), as_json=False)
    perform(Doubling({"1": 1, "2": 2}), tmp_path, lambda: 5, as_json=False)
    assert [json.loads(line)["product"] for line in (tmp_path / "rows.jsonl").read_text().splitlines()] == [2, 10]
    with pytest.raises(DataError, match="another what"):
        perform(Doubling({"1": 1}, "letters"), tmp_path, lambda: 2, as_json=False)


def test_the_options_of_a_group_are_the_commands_own() -> None:
    seen: list[object] = []

    @spread
    def command(*, name: str, some: Sample, most: Limit = None) -> None:
        seen.append((name, some, most))

    app = typer.Typer()
    app.command()(command)
    words = ["x", "--seed", "3", "--limit", "2", "--most", "1"]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert CliRunner().invoke(app, [*words, "--limit", "0"]).exit_code == 2
    command(name="y")
    assert seen == [("x", Sample(limit=2, seed=3), 1), ("y", Sample(), None)]
    assert Sample(limit=2, seed=3).of("abc") == Sample(limit=2, seed=3).of("abc") != Sample(limit=2, seed=4).of("abc")
    assert Sample().of("abc") == ["a", "b", "c"]
