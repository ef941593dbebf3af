"""Strategies timed side by side: what is counted as their cost, with times that are given."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assistant.errors import DataError
from assistant.evaluation.answers import Experiment, prepare
from assistant.evaluation.scores import Setting
from assistant.protocols import Parts, Retriever
from benchmarks.commands import app
from benchmarks.strategies import Cost, measure, ratios
from tests.scripted import FixedRetriever
from tests.test_evaluate_answers import Reader, files, passages  # noqa: F401 - a fixture


def test_every_strategy_is_asked_every_question_in_every_round(files, parts: Parts) -> None:  # noqa: F811
    experiment = Experiment(*files, ("concat", "post_fusion", "concat_pf"), (Setting(k=2),))
    parts = replace(parts, llm=Reader(together=False), retriever=FixedRetriever(passages("France", "Peru")))
    seen: list[Cost] = []
    costs = measure(experiment, prepare(experiment), parts, 2, seen.append)
    assert costs == seen
    # nothing that the model may still know from before: of a prompt's passages at most the instructions are shared
    firsts = [prompt[-1].content for prompt in parts.llm.prompts]
    assert len(set(firsts)) == len(firsts)
    assert len(costs) == 2 * 3 * 4
    assert [cost.strategy for cost in costs[:12]] == ["concat"] * 4 + ["post_fusion"] * 4 + ["concat_pf"] * 4
    # the passages together never give an answer
    assert {(cost.strategy, cost.fell_back) for cost in costs} == {
        ("concat", False), ("post_fusion", False), ("concat_pf", True),
    }  # fmt: skip
    assert ratios(costs)["concat"].all == 1
    assert ratios(costs)["concat_pf"].answered is None


def test_ratios_are_of_sums_and_medians_are_over_rounds(tmp_path: Path) -> None:
    seconds = {"concat": [(1, 3), (2, 2), (4, 4)], "concat_pf": [(1, 9), (2, 4), (4, 12)]}
    costs = [
        Cost(name, n, f"q{q}", float(value), fell_back=name == "concat_pf" and q == 1)
        for name, rounds in seconds.items()
        for n, row in enumerate(rounds)
        for q, value in enumerate(row)
    ]
    found = ratios(costs)["concat_pf"]
    assert found.all == pytest.approx(2)
    assert found.answered == pytest.approx(1)
    assert found.seconds == 4


@pytest.mark.lucene
def test_the_command_writes_ratios_beside_concatenation(files, parts: Parts, tmp_path, monkeypatch) -> None:  # noqa: F811
    def reading(_settings: object, retriever: Retriever) -> Parts:
        return replace(parts, llm=Reader(), retriever=retriever)

    monkeypatch.setattr("benchmarks.strategies.load_turn_parts", reading)
    corpus, questions = map(str, files)
    words = ["strategies", "--corpus", corpus, "--questions", questions, "--k", "2", "--rounds", "2", "--limit", "2"]
    words += ["--strategy", "post_fusion", "--out", str(tmp_path / "b"), "--data-dir", str(tmp_path / "data")]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0
    assert "post_fusion" in result.stdout
    report = json.loads((tmp_path / "b" / "strategies.json").read_text())
    assert len(report["costs"]) == 2 * 2 * 2
    assert report["ratios"]["concat"]["all"] == 1
    assert report["ratios"]["post_fusion"]["all"] > 0


def test_a_folder_that_takes_no_results_is_told_before_anything_is_loaded(files, tmp_path: Path) -> None:  # noqa: F811
    file = tmp_path / "file"
    file.write_text("mine")
    words = ["strategies", "--corpus", str(files[0]), "--questions", str(files[1]), "--k", "2", "--out", str(file)]
    with pytest.raises(DataError, match=r"The results can't be written to .*file .*; choose another"):
        CliRunner().invoke(app, [*words, "--data-dir", str(tmp_path / "data")], catch_exceptions=False)
    assert not (tmp_path / "data").exists()
