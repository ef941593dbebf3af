"""The runner of all measurements, and options that stand once."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from assistant.commands.experiment import RunOptions
from assistant.commands.option_groups import with_option_groups
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
    RunOptions(as_json=True, into=tmp_path / "out").perform(Doubling({"1": 1, "2": 2}), lambda: 2)
    told = capsys.readouterr()
    assert json.loads(told.out)["total"] == 6
    assert "Left out: zeros (3)." in told.err
    assert json.loads((tmp_path / "out" / "summary.json").read_text()) == json.loads(told.out)
    report = (tmp_path / "out" / "report.md").read_text()
    assert report.startswith("    python -m assistant")
    assert "total 6\n\n| left_out |" in report
    assert report.endswith("\n\n2 rows\n")


def test_a_run_goes_on_and_loads_nothing_where_no_row_is_missing(tmp_path: Path) -> None:
    usual = RunOptions(into=tmp_path)
    usual.perform(Doubling({"1": 1}), lambda: 2)
    usual.perform(Doubling({"1": 1}), lambda: pytest.fail("loaded for nothing"))
    usual.perform(Doubling({"1": 1, "2": 2}), lambda: 5)
    assert [json.loads(line)["product"] for line in (tmp_path / "rows.jsonl").read_text().splitlines()] == [2, 10]
    with pytest.raises(DataError, match="another what"):
        usual.perform(Doubling({"1": 1}, "letters"), lambda: 2)


def test_the_same_asked_again_without_a_folder_goes_on(tmp_path: Path) -> None:
    usual = RunOptions(data_dir=tmp_path)
    usual.perform(Doubling({"1": 1}), lambda: 2)
    usual.perform(Doubling({"1": 1}), lambda: pytest.fail("loaded for nothing"))
    usual.perform(Doubling({"1": 1}, "letters"), lambda: 2)
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_the_options_of_a_group_are_the_commands_own() -> None:
    seen: list[object] = []

    @with_option_groups
    def command(*, name: str, some: Sample, most: Limit = None) -> None:
        seen.append((name, some, most))

    app = typer.Typer()
    app.command()(command)
    words = ["x", "--seed", "3", "--limit", "2", "--most", "1"]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert CliRunner().invoke(app, [*words, "--limit", "0"]).exit_code == 2
    command(name="y")
    assert seen == [("x", Sample(limit=2, seed=3), 1), ("y", Sample(), None)]
    assert (
        Sample(limit=2, seed=3).draw_or_all("abc")
        == Sample(limit=2, seed=3).draw_or_all("abc")
        != Sample(limit=2, seed=4).draw_or_all("abc")
    )
    assert Sample().draw_or_all("abc") == ["a", "b", "c"]
