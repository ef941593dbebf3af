"""Scores of runs, kept without their texts and pooled."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pandas import DataFrame
from pandas.testing import assert_frame_equal
from typer.testing import CliRunner

from assistant.__main__ import app
from assistant.errors import DataError
from assistant.evaluation import scores
from assistant.evaluation.answers import Answers, Experiment, SettingGrid, prepare
from assistant.protocols import Parts, silent
from tests.scripted import FixedRetriever
from tests.test_evaluate_answers import Reader, files, passages  # noqa: F401 - a fixture

Scored = Callable[..., DataFrame]


@pytest.fixture
def scored(files: tuple[Path, Path], parts: Parts, tmp_path: Path) -> Scored:  # noqa: F811
    """Runs two strategies at two settings and gives the scores, which it also writes to `name`."""
    parts = replace(parts, retriever=FixedRetriever(passages("France", "Peru", "Kenya")))

    def run(name: str, model: str = "scripted", **changed: object) -> DataFrame:
        settings = SettingGrid((2, 3)).settings
        experiment = replace(Experiment(*files, ("concat", "itrg_refresh/document"), settings), **changed)
        task = Answers(experiment, prepare(experiment), model)
        run = task.open(tmp_path / f"run-{name}")
        task.fill(run, replace(parts, llm=Reader(knows={"Norway": "Oslo"})), silent)
        found = task.scores(run.rows)
        (tmp_path / name).write_text(scores.as_csv(found))
        return found

    return run


def test_a_file_of_scores_says_what_the_run_said_and_no_text(scored: Scored, tmp_path: Path) -> None:
    found = scored("all.csv")
    kept = scores.pool([tmp_path / "all.csv"])
    assert_frame_equal(_without_seconds(kept), _without_seconds(found))
    assert len(found) == 16
    assert found["recalls"][found["strategy"] == "itrg_refresh/document"].any()
    text = (tmp_path / "all.csv").read_text()
    assert not any(word in text for word in ("capital", "Paris", "Lima", "Oslo"))


def test_two_samples_pooled_are_what_one_of_both_would_be(scored: Scored, tmp_path: Path) -> None:
    scored("first.csv", limit=1)
    scored("rest.csv", skip=1)
    pooled = scores.pool([tmp_path / "first.csv", tmp_path / "rest.csv"])
    assert_frame_equal(_without_seconds(pooled), _without_seconds(scored("all.csv")))
    [block, _] = scores.summaries(pooled, 0)
    assert block["questions"] == 4
    assert block["base"] == "concat"
    assert block["strategies"]["concat"]["em"]["value"] == 0.75


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({}, "once more"),
        ({"skip": 1, "model": "other"}, "another model"),
        ({"skip": 1, "seed": 1}, "another model, seed"),
        ({"skip": 1, "strategies": ("concat",)}, "was asked 1 questions at k = 2"),
    ],
)
def test_what_does_not_belong_together_is_not_pooled(
    scored: Scored, tmp_path: Path, other: dict[str, object], says: str
) -> None:
    scored("one.csv", limit=1)
    scored("two.csv", **other)
    with pytest.raises(DataError, match=says):
        scores.pool([tmp_path / "one.csv", tmp_path / "two.csv"])


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (lambda text: "strategy,em\n", "no file of scores"),
        (lambda text: "", "no file of scores"),
        (lambda text: text.splitlines()[0] + "\n", "hold no scores"),
        (lambda text: text.replace(",none,", ",none,x", 1), "is broken"),
        (lambda text: text.rsplit(",", 3)[0], "is broken"),
    ],
)
def test_a_broken_file_of_scores_is_told(
    scored: Scored, tmp_path: Path, broken: Callable[[str], str], says: str
) -> None:
    scored("scores.csv")
    path = tmp_path / "scores.csv"
    path.write_text(broken(path.read_text()))
    with pytest.raises(DataError, match=says):
        scores.pool([path])


def test_runs_are_pooled_on_the_command_line(scored: Scored, tmp_path: Path) -> None:
    scored("first.csv", limit=1)
    scored("rest.csv", skip=1)
    command = ["evaluate", "pool", str(tmp_path / "first.csv"), str(tmp_path / "rest.csv")]
    said = CliRunner().invoke(app, command).output
    assert said.count(": strategies |") == 2
    assert "| concat | 0.750 [" in said
    assert "| recall |" in said
    summary = json.loads(CliRunner().invoke(app, [*command, "--json"]).output)
    assert [block["questions"] for block in summary["settings"]] == [4, 4]


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="can't be read"):
        scores.read(tmp_path / "none.csv")


def _without_seconds(found: DataFrame) -> DataFrame:
    """The seconds are of the machine; a share is kept with four digits."""
    return found.drop(columns="seconds").round(4).sort_values(list(scores.KEY), ignore_index=True)
