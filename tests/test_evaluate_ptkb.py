"""`evaluate ptkb` and `evaluate memory`: measures that can be checked by hand, bad files, and the real data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from numpy.typing import NDArray
from typer.testing import CliRunner

from assistant.commands import evaluate
from assistant.errors import DataError
from assistant.evaluation import memory, ptkb
from assistant.experiment.runs import Run
from assistant.protocols import Embedder, silent
from assistant.settings import FactSettings

IKAT = Path(__file__).parents[2] / "shared" / "data" / "ikat"


class Compass:
    """Texts as directions: "a 30" points 30 degrees away from "b 0"."""

    name = "evaluation compass"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        angles = np.radians([float(text.split()[-1]) for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def topics() -> list[dict[str, Any]]:
    turns = [
        {"turn_id": 1, "utterance": "0", "response": "", "ptkb_provenance": [2]},
        {"turn_id": 2, "utterance": "180", "response": "0", "ptkb_provenance": []},
    ]
    return [{"number": "7-1", "ptkb": {"1": "10", "2": "20", "3": "60", "4": "80"}, "turns": turns}]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "topics.json"
    path.write_text(json.dumps(topics()))
    return path


def test_the_measures_are_ir_measures_own(file: Path) -> None:
    turns, labels = ptkb.labelled_turns(ptkb.read_topics(file), None)
    knobs = FactSettings(threshold=0.4, max_facts=5)
    summary, [row] = ptkb.measure(turns, labels, Compass(), knobs, seed=0)
    assert [fact["text"] for fact in row["facts"]] == ["10", "20", "60", "80"]
    assert row["nDCG@3"] == pytest.approx(1 / np.log2(3))
    assert (row["P@3"], row["R@3"], row["RR"]) == pytest.approx((1 / 3, 1, 1 / 2))
    assert (row["SetP"], row["SetR"], row["SetF"]) == pytest.approx((1 / 3, 1, 1 / 2))
    assert summary["measures"]["RR"] == {"value": 0.5, "low": 0.5, "high": 0.5}


def test_the_baseline_is_the_mean_of_utterance_and_whole_history(tmp_path: Path) -> None:
    path = tmp_path / "topics.json"
    facts = {"1": "10", "2": "50"}
    said = [
        {"turn_id": 1, "utterance": "60", "response": "60", "ptkb_provenance": [2]},
        {"turn_id": 2, "utterance": "0", "response": "0", "ptkb_provenance": [1]},
    ]
    path.write_text(json.dumps([{"number": "7-1", "ptkb": facts, "turns": said}]))
    turns, labels = ptkb.labelled_turns(ptkb.read_topics(path), None)
    first, second = (ptkb.rank_by_history(turn, Compass(), FactSettings(threshold=0.8)) for turn in turns)
    # alone: 50 degrees away from 60, and 10; then the mean of the cosines to "0" and to "60 60"
    assert [(fact.id, fact.used) for fact in first] == [("2", True), ("1", False)]
    assert [fact.relevance for fact in first] == pytest.approx(np.cos(np.radians([10, 50])), abs=1e-5)
    means = [(np.cos(np.radians(at)) + np.cos(np.radians(60 - at))) / 2 for at in (10, 50)]
    assert {fact.id: fact.relevance for fact in second} == pytest.approx(dict(zip("12", means, strict=True)), abs=1e-5)
    summary, rows = ptkb.measure(turns, labels, Compass(), FactSettings(threshold=0.8), seed=0, seen_ids={"7-1_1"})
    assert rows[0]["baseline"]["RR"] == 1
    for name in ("nDCG@3", "SetP", "SetR", "SetF"):
        ours, theirs = [row[name] for row in rows], [row["baseline"][name] for row in rows]
        assert summary["difference"][name]["value"] == pytest.approx(np.mean(ours) - np.mean(theirs))
        assert summary["unseen"]["difference"][name]["value"] == pytest.approx(ours[1] - theirs[1])
    assert summary["unseen"]["turns"] == 1


def test_nothing_is_told_apart_where_all_or_none_were_seen(file: Path) -> None:
    turns, labels = ptkb.labelled_turns(ptkb.read_topics(file), None)
    for seen in ((), {"7-1_1"}):
        summary, _ = ptkb.measure(turns, labels, Compass(), FactSettings(), seed=0, seen_ids=seen)
        assert "unseen" not in summary


def test_a_turn_that_uses_no_fact_counts_as_nothing_found(file: Path) -> None:
    turns, labels = ptkb.labelled_turns(ptkb.read_topics(file), None)
    summary, _ = ptkb.measure(turns, labels, Compass(), FactSettings(threshold=1), seed=0)
    assert summary["measures"]["SetF"]["value"] == 0


def test_qrels_take_the_place_of_the_topics_own_labels(file: Path, tmp_path: Path) -> None:
    qrels = tmp_path / "qrels.txt"
    qrels.write_text("7-1_2 0 4 1\n7-1_2 0 1 0\n")
    [turn], labels = ptkb.labelled_turns(ptkb.read_topics(file), qrels)
    assert turn.id == "7-1_2"
    assert [one.reply for one in turn.history] == [""]
    assert labels == {"7-1_2": {"4": 1, "1": 0}}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda topic: topic.pop("turns"), "topic 1, has no number or no turns"),
        (lambda topic: topic.pop("number"), "topic 1, has no number"),
        (lambda topic: topic.pop("ptkb"), "topic 7-1, has no ptkb"),
        (lambda topic: topic["turns"][1].pop("turn_id"), "topic 7-1, turn 2, has no turn_id"),
        (lambda topic: topic["turns"][1].update(utterance=" "), "topic 7-1, turn 2, has no utterance"),
        (lambda topic: topic["turns"][0].update(ptkb_provenance=[9]), "topic 7-1, turn 1, names the facts 9"),
    ],
)
def test_broken_topics_are_named(tmp_path: Path, change: Any, says: str) -> None:
    broken = topics()
    change(broken[0])
    path = tmp_path / "topics.json"
    path.write_text(json.dumps(broken))
    with pytest.raises(DataError, match=says):
        ptkb.read_topics(path)


@pytest.mark.parametrize("text", ["{", "[]", "{}", "[7]"])
def test_files_that_are_no_topics_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "topics.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"topics\.json"):
        ptkb.read_topics(path)
    with pytest.raises(DataError, match=r"missing\.json"):
        ptkb.read_topics(tmp_path / "missing.json")


@pytest.mark.parametrize(
    ("line", "says"), [("8-1_1 0 1 1", "the turn '8-1_1'"), ("7-1_1 0 9 1", "fact '9' in turn '7-1_1'")]
)
def test_qrels_of_other_topics_are_refused(file: Path, tmp_path: Path, line: str, says: str) -> None:
    qrels = tmp_path / "qrels.txt"
    qrels.write_text(line + "\n")
    with pytest.raises(DataError, match=says):
        ptkb.labelled_turns(ptkb.read_topics(file), qrels)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    app = typer.Typer()
    app.command("ptkb")(evaluate.evaluate_ptkb)
    app.command("memory")(evaluate.evaluate_memory)

    def run(embedder: Embedder, *arguments: str) -> dict[str, Any]:
        monkeypatch.setattr(evaluate, "embedder_of", lambda settings: embedder)
        done = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    return run


def test_the_command_writes_rows_and_summary(run: Any, file: Path, tmp_path: Path) -> None:
    summary = run(Compass(), "ptkb", "--topics", str(file), "--out", str(tmp_path / "out"))
    assert json.loads((tmp_path / "out" / "summary.json").read_text()) == summary
    assert len((tmp_path / "out" / "rows.jsonl").read_text().splitlines()) == summary["turns"] == 1
    with pytest.raises(DataError, match="can't be written"):
        run(Compass(), "ptkb", "--topics", str(file), "--out", str(file))


@pytest.mark.parametrize("command", ["ptkb", "memory"])
def test_the_rows_of_a_run_are_not_written_over(run: Any, file: Path, tmp_path: Path, command: str) -> None:
    dialogues = tmp_path / "dialogues.jsonl"
    dialogues.write_text(json.dumps(DIALOGUE) + "\n")
    done = Run(tmp_path / "out", {"seed": 0}, lambda row: str(row["id"]))
    done.fill([("1", lambda: {"id": "1"})], 1, silent)
    data = ["--topics", str(file)] if command == "ptkb" else ["--dialogues", str(dialogues)]
    with pytest.raises(DataError, match=r"out holds a run, whose rows would be lost; choose another folder"):
        run(Compass(), command, *data, "--out", str(done.folder))
    assert (done.folder / "rows.jsonl").read_text() == '{"id": "1"}\n'
    assert not (done.folder / "summary.json").exists()


@pytest.mark.model
def test_the_train_topics_are_ranked_as_the_results_say(run: Any, embedder: Embedder) -> None:
    if not IKAT.exists():
        pytest.skip("the iKAT topics are not here")
    summary = run(embedder, "ptkb", "--topics", str(IKAT / "2023_train_topics.json"))
    assert summary["turns"] == 42
    assert summary["measures"]["nDCG@3"]["value"] == pytest.approx(0.546, abs=0.005)


DIALOGUE = {
    "id": "d",
    "persona_1": ["I have a dog.", "I am a nurse."],
    "persona_2": ["I live in Rome."],
    "turns": ["User 1: Hi! I have a dog.", "User 2: Nice. I live in Rome.", "User 1: I have a dog. I'm 30."],
}


@pytest.mark.model
def test_memory_is_measured_by_hand_checkable_shares(run: Any, embedder: Embedder, tmp_path: Path) -> None:
    path = tmp_path / "dialogues.jsonl"
    path.write_text(json.dumps(DIALOGUE) + "\n")
    summary = run(embedder, "memory", "--dialogues", str(path), "--out", str(tmp_path / "out"))
    rows = [json.loads(line) for line in (tmp_path / "out" / "rows.jsonl").read_text().splitlines()]
    assert [row["text"] for row in rows] == ["I have a dog.", "I'm 30.", "I live in Rome."]
    assert (summary["speakers"], summary["utterances"], summary["offers"], summary["statements"]) == (2, 3, 3, 3)
    values = {name: found["value"] for name, found in summary["measures"].items()}
    assert values == pytest.approx({"precision": 2 / 3, "junk": 1 / 3, "recall": 2 / 3, "sayable": 2 / 3})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"turns": None}, "line 1, is no dialogue of .*: 'turns'"),
        ({"turns": [3]}, "'turns.0'"),
        ({"persona_2": []}, "'persona_2'"),
    ],
)
def test_broken_dialogues_are_named(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    path = tmp_path / "dialogues.jsonl"
    path.write_text(json.dumps({**DIALOGUE, **change}) + "\n")
    with pytest.raises(DataError, match=says):
        memory.read_speakers(path)


def test_no_dialogues_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "dialogues.jsonl"
    path.write_text("")
    with pytest.raises(DataError, match="no dialogues"):
        memory.read_speakers(path)
