"""The validator of runs: a good run of each year, broken in every way that the track's rules know."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assistant.errors import DataError
from assistant.ikat.runs import RunLabel, write_run
from assistant.ikat.topics import Topics, read_topics
from assistant.ikat.validate import Problem, validate
from tests.test_ikat_topics import topics_of, write

IDS = [f"clueweb22-en0000-00-0000{n}:{n}" for n in range(3)]


def run_of(year: int, folder: Path) -> tuple[Topics, Path, Path]:
    """Topics and a good run on them."""
    topics = read_topics(write(folder, topics_of(year)))
    rows = {
        turn: {
            "id": turn,
            "response": "The DASH diet does.",
            "digests": "",
            "ranking": IDS,
            "used": {IDS[0]: "The DASH diet is healthy."},
            "facts": [{"id": fact.id, "text": fact.text, "score": 0.5, "used": True} for fact in topic.facts],
        }
        for turn, (topic, _) in topics.turns.items()
    }
    return topics, *write_run(topics, rows, RunLabel("good"), folder)


def problems(year: int, folder: Path, change: Callable[[Any], Any]) -> list[Problem]:
    """What is found in a good run after a change: of the whole object, or of the list of lines in 2025."""
    topics, path, _ = run_of(year, folder)
    text = path.read_text()
    run = [json.loads(line) for line in text.splitlines()] if year == 2025 else json.loads(text)
    change(run)
    path.write_text("\n".join(map(json.dumps, run)) if year == 2025 else json.dumps(run))
    return validate(path, topics)


@pytest.mark.parametrize("year", [2023, 2024, 2025])
def test_a_good_run_has_no_problem(tmp_path: Path, year: int) -> None:
    topics, run, trec = run_of(year, tmp_path)
    assert validate(run, topics) == validate(trec, topics) == []


def first(run: Any) -> Any:
    return run["turns"][0]["responses"][0]


@pytest.mark.parametrize(
    ("change", "level", "says"),
    [
        (lambda run: run.update(run_name="two words"), "error", "run_name is not one word"),
        (lambda run: run.pop("run_type"), "error", "run_type is None, not one of automatic, manual"),
        (lambda run: run.update(run_type="only_response"), "error", "run_type is 'only_response'"),
        (lambda run: run.update(eval_response=True), "error", "unknown field 'eval_response'"),
        (lambda run: run.pop("turns"), "error", "not an object with a list of turns"),
        (lambda run: run["turns"].pop(1), "error", "it lacks 1 of the 3 turns of topics.json: 9-1_2"),
        (lambda run: run["turns"].append(run["turns"][0]), "error", "has the turn '9-1_1' twice"),
        (lambda run: run["turns"][1].update(turn_id="9-1_7"), "error", "has the turn '9-1_7', which topics.json lacks"),
        (lambda run: run["turns"].append("turn"), "error", "has the turn None"),
        (lambda run: run["turns"][1].update(turn_id=["9-1_2"]), "error", "has the turn None"),
        (lambda run: run["turns"][0].update(responses=[]), "error", "9-1_1: it has no responses"),
        (lambda run: run["turns"][0].update(note=1), "error", "9-1_1: it has the unknown field 'note'"),
        (lambda run: first(run).update(rank=0), "error", "responses are ranked 0, not from 1 upwards"),
        (lambda run: run["turns"][0]["responses"].append(first(run)), "error", "are ranked 1, 1, not"),
        (lambda run: first(run).update(text=" "), "error", "9-1_1, response 1: it has no text"),
        (lambda run: first(run).update(text="word " * 251), "warning", "it has 251 words; 250 are read"),
        (lambda run: first(run).update(score=1), "error", "unknown field 'score'"),
        (lambda run: first(run).update(passage_provenance="x"), "error", "not a list of objects"),
        (lambda run: first(run).update(passage_provenance=[]), "warning", "names no passage"),
        (lambda run: first(run)["passage_provenance"][0].update(score=0.1), "error", "do not go down"),
        (lambda run: first(run)["passage_provenance"][0].update(score="1"), "error", "a score that is not a number"),
        (lambda run: first(run)["passage_provenance"][0].pop("score"), "error", "a score that is not a number"),
        (lambda run: first(run)["passage_provenance"][0].update(used=False), "warning", "no passage is marked as used"),
        (lambda run: first(run)["passage_provenance"][0].update(id="p1"), "warning", "not ClueWeb22's, such as p1"),
        (lambda run: first(run)["passage_provenance"][1].update(id=IDS[0]), "error", "names a passage twice"),
        (
            lambda run: first(run)["passage_provenance"].extend([{"id": "x", "score": 0}] * 998),
            "error",
            "1001 passages",
        ),
        (lambda run: first(run).pop("ptkb_provenance"), "error", "ptkb_provenance is not a list"),
        (lambda run: first(run).update(ptkb_provenance=[]), "warning", "ptkb_provenance is empty"),
        (lambda run: first(run).update(ptkb_provenance=[1]), "error", "not a list of objects with id, text and score"),
        (lambda run: first(run)["ptkb_provenance"][0].update(id="9"), "error", "names fact '9', which the topic's"),
        (lambda run: first(run)["ptkb_provenance"][0].update(id=["1"]), "error", "names fact ['1'], which the topic's"),
        (lambda run: first(run)["ptkb_provenance"][0].update(text="?"), "error", "the text of fact 1 is not that of"),
        (lambda run: first(run)["ptkb_provenance"][1].update(score=0.9), "error", "do not go down"),
    ],
)
def test_a_broken_run_of_2023(tmp_path: Path, change: Any, level: str, says: str) -> None:
    found = problems(2023, tmp_path, change)
    assert any(one.level == level and says in str(one) for one in found), found


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda run: first(run).update(ptkb_provenance=[3]), "names fact 3, which the topic's ptkb lacks"),
        (lambda run: first(run).update(ptkb_provenance=["x"]), "holds 'x', which is not the number of a fact"),
        (lambda run: first(run).update(ptkb_provenance=[{"id": "1"}]), "which is not the number of a fact"),
        (lambda run: run.update(run_type="best"), "not one of automatic, manual, only_response"),
    ],
)
def test_a_broken_run_of_2024(tmp_path: Path, change: Any, says: str) -> None:
    found = problems(2024, tmp_path, change)
    assert any(one.level == "error" and says in str(one) for one in found), found


def test_2024_allows_what_its_guidelines_do(tmp_path: Path) -> None:
    assert problems(2024, tmp_path, lambda run: first(run).update(ptkb_provenance=[])) == []
    assert problems(2024, tmp_path, lambda run: first(run).update(ptkb_provenance=["2"])) == []
    assert problems(2024, tmp_path, lambda run: run.update(run_type="only_response")) == []


@pytest.mark.parametrize(
    ("change", "level", "says"),
    [
        (lambda lines: lines.pop(0), "error", "it lacks 1 of the 3 turns"),
        (lambda lines: lines.append(7), "error", "line 4: it is not an object"),
        (lambda lines: lines[0].update(turn_id={}), "error", "has the turn None"),
        (lambda lines: lines[0].pop("metadata"), "error", "9-1_1: metadata is not an object"),
        (lambda lines: lines[0]["metadata"].pop("team_id"), "error", "team_id is not one word"),
        (lambda lines: lines[0]["metadata"].update(run_type="interactive"), "error", "run_type is 'interactive'"),
        (lambda lines: lines[0]["metadata"].update(run_id="other"), "error", "different run_ids: good, other"),
        (lambda lines: lines[0]["metadata"].update(topic_id="9-1_2"), "error", "says that it is turn '9-1_2'"),
        (lambda lines: lines[0].update(references=IDS), "error", "references is not an object"),
        (lambda lines: lines[0]["references"].update({"p": 0}), "warning", "not ClueWeb22's, such as p"),
        (lambda lines: lines[0]["references"].update({IDS[0]: "1"}), "error", "a score that is not a number"),
        (lambda lines: lines[0]["metadata"].update(run_type="generation-only"), "error", "must be empty"),
        (lambda lines: lines[0]["responses"][0].update(citations=IDS), "error", "citations is not an object"),
        (lambda lines: lines[0]["responses"][0].update(citations={}), "warning", "it cites no passage"),
        (lambda lines: lines[0]["responses"][0].update(citations={"p": 1}), "error", "it cites p, which its"),
        (lambda lines: lines[0]["responses"][0].update(ptkb_provenance=[1]), "error", "not a list of texts"),
        (lambda lines: lines[0]["responses"][0].update(ptkb_provenance=["I ski."]), "warning", "counts as newly"),
        (lambda lines: lines[0]["responses"][0].pop("text"), "error", "it has no text"),
    ],
)
def test_a_broken_run_of_2025(tmp_path: Path, change: Any, level: str, says: str) -> None:
    found = problems(2025, tmp_path, change)
    assert any(one.level == level and says in str(one) for one in found), found


def test_a_generation_only_run_cites_without_references(tmp_path: Path) -> None:
    def change(lines: Any) -> None:
        for line in lines:
            line["metadata"]["run_type"] = "generation-only"
            line["references"] = {}

    assert problems(2025, tmp_path, change) == []


def test_what_ends_a_line_for_unicode_alone_may_be_in_a_text(tmp_path: Path) -> None:
    topics, path, _ = run_of(2025, tmp_path)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    lines[0]["responses"][0]["text"] = "The DASH\u2028diet\u2029does\u0085so."
    texts = [json.dumps(line, ensure_ascii=False) for line in lines]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    assert validate(path, topics) == []
    path.write_text("\n".join([*texts, "{"]), encoding="utf-8")
    assert "line 4: it is not valid JSON" in str(validate(path, topics)[0])
    path.write_text("", encoding="utf-8")
    assert ["it lacks 3 of the 3 turns" in str(one) for one in validate(path, topics)] == [True]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("9-1_1 Q0", "9-1_1 0", "line 1: it does not read 'turn Q0 passage rank score run'"),
        (" 1 1.0 good", " 1 1.0 good plus", "line 1: it does not read"),
        ("9-2_1 Q0", "9-3_1 Q0", "which topics.json lacks"),
        (" 2 0.5 ", " 3 0.5 ", "9-1_1: its ranks do not count up from 1"),
        (" 2 0.5 ", " 2 1.5 ", "do not go down"),
        (" 2 0.5 ", " 2 high ", "a score that is not a number"),
        (f"{IDS[1]} 2", f"{IDS[0]} 2", "names a passage twice"),
        ("1.0 good", "1.0 better", "names several runs: better, good"),
    ],
)
def test_broken_columns(tmp_path: Path, old: str, new: str, says: str) -> None:
    topics, _, trec = run_of(2023, tmp_path)
    trec.write_text(trec.read_text().replace(old, new, 1 if old != "9-2_1 Q0" else -1))
    found = validate(trec, topics)
    assert any(one.level == "error" and says in str(one) for one in found), found


@pytest.mark.parametrize("year", [2023, 2025])
def test_what_is_no_run_at_all(tmp_path: Path, year: int) -> None:
    topics, run, _ = run_of(year, tmp_path)
    run.write_text("{")
    assert "is not valid JSON" in str(validate(run, topics)[0])
    run.write_text("[" * 100_000)
    assert "is not valid JSON" in str(validate(run, topics)[0])
    run.write_text("[1]")
    assert "not an object" in str(validate(run, topics)[0])
    with pytest.raises(DataError, match=r"missing\.json can't be read"):
        validate(tmp_path / "missing.json", topics)
