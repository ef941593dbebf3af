"""`bench relevance` as it is typed, on a real (tiny) estimator. Times themselves are not tested."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assistant.__main__ import app
from assistant.errors import DataError
from tests.test_evaluation_data import lines

pytest_plugins = ["tests.fixtures_relevance"]


def bench(*words: object) -> str:
    asked = ["bench", "relevance", *map(str, words)]
    return CliRunner().invoke(app, asked, catch_exceptions=False).stdout


@pytest.fixture
def given(tiny_cross_encoder: Path, tmp_path: Path) -> list[object]:
    """Nine passages, four questions, and an estimator."""
    passages = [{"id": f"p{n}", "contents": f"Cats sleep {n} hours."} for n in range(9)]
    asked = [{"id": f"q{n}", "question": f"How long do {n} cats sleep?", "answers": ["long"]} for n in range(4)]
    files = ["--corpus", lines(tmp_path / "c.jsonl", *passages), "--questions", lines(tmp_path / "q.jsonl", *asked)]
    return [*files, "--estimator", tiny_cross_encoder, "--data-dir", tmp_path / "data"]


def test_the_first_question_is_not_counted(given: list[object]) -> None:
    found = json.loads(bench(*given, "--passages", 2, "--runs", 3, "--json"))
    assert (found["passages"], found["runs"], found["words"]) == (2, 3, 4)
    assert 0 < found["fastest"] <= found["median"] <= found["slowest"]
    assert found["cpu"] > 0
    assert "passages 2, words 4" in bench(*given, "--passages", 2, "--runs", 1)


def test_files_that_are_too_small_are_refused(given: list[object]) -> None:
    with pytest.raises(DataError, match="13 questions with 25 passages each are needed"):
        bench(*given)
