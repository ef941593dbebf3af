"""`evaluate intents` and `evaluate support`: what they read, and what they say of files that they can't use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assistant.commands import evaluate_gates
from assistant.errors import DataError
from tests.scripted import WORDS, ScriptedLLM

MESSAGE = {"text": "What is the capital of Norway?", "intent": "question", "split": "test"}
PAIR = {"id": "a", "sentence": "It is.", "title": "Oslo", "passage": "It is.", "supported": True, "kind": "copied"}


@pytest.fixture(autouse=True)
def words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate_gates, "load_embedder", lambda *_: WORDS)


def written(folder: Path, *rows: dict[str, object]) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def test_intents_of_a_split_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evaluate_gates.intents(written(tmp_path, MESSAGE, {**MESSAGE, "split": "dev"}), as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert (told["messages"], told["questions"], told["accuracy"]) == (1, 1, 1.0)


@pytest.mark.parametrize("key", ["text", "intent", "split"])
def test_a_message_that_lacks_something_is_named(tmp_path: Path, key: str) -> None:
    lacking = {name: value for name, value in MESSAGE.items() if name != key}
    with pytest.raises(DataError, match=f"rows.jsonl, line 2, is not a labelled message: it has no '{key}'"):
        evaluate_gates.intents(written(tmp_path, MESSAGE, lacking))


def test_a_split_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate_gates, "load_llm", lambda *_: pytest.fail("loaded for nothing"))
    with pytest.raises(DataError, match=r"no lines of the split 'tset' in .*; give dev, test, or empty for both"):
        evaluate_gates.intents(written(tmp_path, MESSAGE), "tset")
    with pytest.raises(DataError, match="no lines of the split 'tset'"):
        evaluate_gates.support(written(tmp_path, {**PAIR, "split": "test"}), "tset")


def test_support_is_measured_at_the_setting_and_at_its_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {**PAIR, "id": str(n), "sentence": "Oslo has many parks.", "passage": "Oslo has parks.", "split": "test"}
        | {"supported": supported}
        for n, supported in enumerate((True, True, False, False))
    ]
    scores = (0.9, 0.4, 0.6, 0.1)
    llm = ScriptedLLM(choices=[{"yes": score, "no": 1 - score} for score in scores])
    monkeypatch.setattr(evaluate_gates, "load_llm", lambda *_: llm)
    evaluate_gates.support(written(tmp_path, *rows), as_json=True)
    told = json.loads(capsys.readouterr().out)
    at, best = told["at_setting"], told["best_f1"]
    # over 0.5 are one right pair and one wrong; from 0.4 on both right ones and one wrong
    assert (at["threshold"], at["precision"], at["recall"], at["accuracy"]) == (0.5, 0.5, 0.5, 0.5)
    assert (at["pairs"], at["auc"]) == (4, 0.75)
    assert best["f1"] == pytest.approx(0.8)
    assert told["right"] == {"not supported: copied": "1 of 2", "supported: copied": "1 of 2"}
