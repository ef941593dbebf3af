"""A played run of TREC iKAT measured: facts, passages, responses beside the canonical ones, and nuggets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from assistant.commands import evaluate
from assistant.errors import DataError
from assistant.evaluation.ikat import Labels, measure, qrels_by_turn, read_nuggets
from assistant.ikat.topics import read_topics
from tests.scripted import WordJudge
from tests.test_ikat_topics import topics_of, write


def played(id_: str, response: str, used: str, **more: Any) -> dict[str, Any]:
    facts = [{"id": n, "text": f"Fact {n}.", "score": 0.5, "used": n == used} for n in ("2", "1")]
    row = {"id": id_, "question": "?", "response": response, "ranking": ["p2", "p1"], "cited": ["p2"]}
    return {**row, "facts": facts, "unknown": False, "seconds": 2.0, **more}


ROWS = {
    "9-1_1": played("9-1_1", "The DASH diet does.", "1"),
    "9-1_2": played("9-1_2", "", "2", cited=[], unknown=True, seconds=4.0),
}


def test_facts_passages_and_responses_are_measured_over_the_turns_that_have_labels(tmp_path: Path) -> None:
    topics = read_topics(write(tmp_path, topics_of(2023)))
    labels = Labels(
        {"9-1_1": {"1": 1, "2": 0}},
        qrels_by_turn({"2023_test/9-1_1": {"p1": 1}}),
        {"9-1_1": ["The DASH diet", "low salt"]},
    )
    found, rows = measure(topics, ROWS, labels, WordJudge(), seed=0)
    assert (found["turns"], found["topics, whole"]) == (2, 1)
    assert (found["with a citation"]["value"], found["said to be unknown"]["value"]) == (0.5, 0.5)
    assert found["facts"]["turns"] == 1
    assert found["facts"]["SetF"]["value"] == 1.0
    assert found["facts"]["nDCG@3"]["value"] == pytest.approx(0.631, abs=0.001)  # the second of two
    assert found["passages"]["RR"]["value"] == 0.5
    assert found["like the canonical response"]["ROUGE-1 recall"]["value"] == 0.5
    assert (found["nugget recall"]["value"], found["nugget recall"]["n"]) == (0.5, 2)
    assert (found["seconds, median"], rows[0]["nuggets held"], rows[1]["words"]) == (3.0, 1, 0)
    bare, _ = measure(topics, ROWS, Labels({}, {}, {}), WordJudge(), seed=0)
    assert not {"facts", "passages", "nugget recall"} & set(bare)
    with pytest.raises(DataError, match=r"The run has no turn of topics\.json"):
        measure(topics, {}, labels, WordJudge(), seed=0)


def test_some_topics_can_be_played_alone(tmp_path: Path) -> None:
    topics = read_topics(write(tmp_path, topics_of(2023)))
    assert list(topics.only(["9-2"]).turns) == ["9-2_1"]
    assert topics.only([]) == topics
    with pytest.raises(DataError, match=r"has no topic '7'; it has 9-1, 9-2"):
        topics.only(["7"])


def test_the_command_reads_a_run_and_its_nuggets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "opened", lambda *_: WordJudge())
    app = typer.Typer()
    app.command()(evaluate.evaluate_ikat)
    run, nuggets = tmp_path / "run", tmp_path / "nuggets.jsonl"
    run.mkdir()
    (run / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS.values()))
    nuggets.write_text('{"turn": "9-1_1", "text": "The DASH diet"}\n')
    topics = write(tmp_path, topics_of(2023))
    words = ["--run", str(run), "--topics", str(topics), "--nuggets", str(nuggets), "--json"]
    found = json.loads(CliRunner().invoke(app, words, catch_exceptions=False).stdout)
    assert found["nugget recall"]["value"] == 1.0
    assert found["facts"]["turns"] == 1
    nuggets.write_text('{"turn": "9-1_1"}\n')
    with pytest.raises(DataError, match="is no nugget: 'text'"):
        read_nuggets(nuggets)
