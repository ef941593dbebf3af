"""`evaluate chat`: its counts on scripted turns, the comparison of two runs, bad files, and the command for real."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assistant.__main__ import app
from assistant.errors import DataError
from assistant.evaluation.chat import Chat
from assistant.experiment.datasets import read_questions
from assistant.experiment.report import markdown
from assistant.experiment.runs import Run, jsonl, read_rows
from assistant.protocols import Parts, silent
from assistant.types import Choices, Passage
from tests.fixtures_models import sharing_models
from tests.scripted import FixedRetriever, ScriptedLLM
from tests.test_evaluate_answers import files  # noqa: F401 - a fixture
from tests.test_evaluation_data import lines

pytest_plugins = ["tests.fixtures_models"]

PASSAGES = [Passage("p1", "Lentils", "Lentils hold iron and protein."), Passage("p2", "Milk", "Milk holds lactose.")]
CHOICES = Choices(strategy="concat_pf", loop="retrieve_then_generate", k=2, below="answer")
YES = {"yes": 0.9, "no": 0.1}


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    return lines(
        tmp_path / "q.jsonl",
        {"id": "q1", "question": "What holds iron?", "answers": ["lentils"], "gold": ["p1"]},
        {"id": "q2", "question": "What holds gold?", "answers": [], "gold": ["p1"], "unanswerable": True},
    )


def ran(
    questions: Path, folder: Path, parts: Parts, replies: list[object], seen: list[dict[str, float]]
) -> tuple[Chat, Run[str]]:
    asked = {one.id: one for one in read_questions(questions)}
    corpus = questions.with_name("c.jsonl")
    if not corpus.exists():
        lines(corpus, *({"id": one.id, "title": one.title, "contents": one.text} for one in PASSAGES))
    task = Chat(corpus, questions, asked, CHOICES, parts.settings)
    run = task.open(folder)
    llm = ScriptedLLM(replies, seen)
    task.fill(run, replace(parts, llm=llm, retriever=FixedRetriever(PASSAGES)), silent)
    assert (llm.replies, llm.choices) == ([], [])
    return task, run


def shares(summary: dict[str, object]) -> dict[str, float]:
    return {name: one["value"] for name, one in summary["measures"].items()}


def test_gold_answers_and_what_they_rest_on_are_counted(questions: Path, parts: Parts, tmp_path: Path) -> None:
    replies = ["Lentils hold iron.", "Lentils hold iron and gold."]
    task, run = ran(questions, tmp_path / "out", parts, replies, [YES, YES])
    row = run.rows["q1"]
    assert (row["held"], row["cited"], row["right_source"], row["fallback"]) == (True, True, True, False)
    assert [(one["n"], one["sentence"]) for one in row["citations"]] == [(1, "Lentils hold iron.")]
    found = shares(task.summarise(run.rows))
    assert found["gold answer in the reply"] == found["gold answer in a reply that is cited"] == 1
    assert found["unanswerable: cited all the same"] == 1
    assert found["the fallback was tried"] == 0
    assert "gold answer in the reply, where it was tried" not in found


def test_a_fallback_that_helps_is_told_from_one_that_does_not(questions: Path, parts: Parts, tmp_path: Path) -> None:
    # The first question: all together gives nothing, one of the two passages does. The second: nothing at all.
    replies = ["unknown", "Lentils hold iron.", "unknown", "unknown", "unknown", "unknown"]
    task, run = ran(questions, tmp_path / "out", parts, replies, [YES])
    found = shares(task.summarise(run.rows))
    assert found["the fallback was tried"] == found["gold answer in the reply, where it was tried"] == 1
    assert found["unanswerable: cited all the same"] == 0
    assert run.rows["q2"]["reply"] == "The library doesn't hold an answer to this."


def test_two_runs_are_compared_question_by_question(questions: Path, parts: Parts, tmp_path: Path) -> None:
    task, good = ran(questions, tmp_path / "good", parts, ["Lentils hold iron.", "Lentils hold gold."], [YES, YES])
    _, bad = ran(questions, tmp_path / "bad", parts, ["Milk holds lactose.", "Lentils hold gold."], [YES, YES])
    beside = replace(task, other_rows=read_rows(bad.folder))
    summary = beside.summarise(good.rows)
    change = summary["measures"]["gold answer in the reply"]["difference"]
    assert (change["value"], change["low"], change["high"]) == (1, 1, 1)
    assert "| 1.000 [1.000, 1.000] |" in markdown(summary)
    with pytest.raises(DataError, match="has no question 'q1'"):
        replace(task, other_rows={}).summarise(good.rows)


def test_other_settings_want_another_folder(questions: Path, parts: Parts, tmp_path: Path) -> None:
    ran(questions, tmp_path / "out", parts, ["Lentils hold iron.", "Lentils hold gold."], [YES, YES])
    turn = parts.settings.turn.model_copy(update={"max_digest_chars": 300})
    other = replace(parts, settings=parts.settings.model_copy(update={"turn": turn}))
    with pytest.raises(DataError, match="another model and settings"):
        ran(questions, tmp_path / "out", other, [], [])


def test_a_corpus_that_has_changed_wants_another_folder(questions: Path, parts: Parts, tmp_path: Path) -> None:
    ran(questions, tmp_path / "out", parts, ["Lentils hold iron.", "Lentils hold gold."], [YES, YES])
    lines(questions.with_name("c.jsonl"), {"id": "p1", "title": "Lentils", "contents": "Lentils hold gold."})
    with pytest.raises(DataError, match="holds a run with another corpus;"):
        ran(questions, tmp_path / "out", parts, [], [])


def test_a_row_may_hold_line_breaks_of_any_kind(tmp_path: Path) -> None:
    rows = {"q1": {"id": "q1", "reply": "One\u2028two\u2029three\x85four\r\nfive"}, "q2": {"id": "q2", "reply": "six"}}
    (tmp_path / "rows.jsonl").write_text(jsonl(rows.values()), encoding="utf-8")
    assert read_rows(tmp_path) == rows


def test_what_is_no_run_cannot_be_compared_with(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no run"):
        read_rows(tmp_path / "nothing")
    (tmp_path / "rows.jsonl").write_text("{broken")
    with pytest.raises(DataError, match="broken or of another kind"):
        read_rows(tmp_path)


@pytest.mark.model
@pytest.mark.lucene
@pytest.mark.usefixtures("no_second_look")
def test_the_command_end_to_end(files, smollm_path, embedder, tmp_path: Path) -> None:  # noqa: F811
    corpus, questions = files
    words = ["evaluate", "chat", "--questions", questions, "--corpus", corpus, "--out", tmp_path / "c", "--limit", 2]
    words += ["--model", "smollm2-135m", "--data-dir", sharing_models(tmp_path), "--json"]
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["questions"] == 2
    assert len((tmp_path / "c" / "rows.jsonl").read_text().splitlines()) == 2
    assert "gold answer in the reply" in (tmp_path / "c" / "report.md").read_text()
