"""`evaluate intents`: what it reads, and what it says of files that it can't use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assistant.commands import evaluate
from assistant.errors import DataError
from tests.scripted import WORDS

MESSAGE = {"text": "What is the capital of Norway?", "intent": "question", "split": "test"}


@pytest.fixture(autouse=True)
def words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "load_embedder", lambda *_: WORDS)


def written(folder: Path, *rows: dict[str, object]) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def test_intents_of_a_split_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evaluate.evaluate_intents(messages=written(tmp_path, MESSAGE, {**MESSAGE, "split": "dev"}), as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["messages"], told["questions"], told["accuracy"]) == (1, 1, 1.0)


@pytest.mark.parametrize("key", ["text", "intent", "split"])
def test_a_message_that_lacks_something_is_named(tmp_path: Path, key: str) -> None:
    lacking = {name: value for name, value in MESSAGE.items() if name != key}
    with pytest.raises(DataError, match=f"rows.jsonl, line 2, is not a labelled message: '{key}': Field required"):
        evaluate.evaluate_intents(messages=written(tmp_path, MESSAGE, lacking))


def test_a_split_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no lines of the split 'tset' in .*; give dev, test, or empty for both"):
        evaluate.evaluate_intents(messages=written(tmp_path, MESSAGE), split="tset")
