"""`evaluate groundedness`: its counts on scripted turns, labels and agreement, bad files, and the command for real."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assistant.commands.evaluate import app
from assistant.errors import DataError
from assistant.evaluation.groundedness import Groundedness, Label, agreement, is_meta_talk, sentences_to_label
from assistant.experiment.datasets import read_questions
from assistant.experiment.runs import Run
from assistant.protocols import Parts, silent
from assistant.types import Choices, Passage
from tests.fixtures_models import sharing_models
from tests.scripted import FixedRetriever, ScriptedLLM, WordJudge
from tests.test_evaluate_answers import files  # noqa: F401 - a fixture
from tests.test_evaluation_data import lines

pytest_plugins = ["tests.fixtures_models"]

LENTILS = "Lentils hold iron and protein in good amounts."
MILK = "Milk holds lactose and some calcium as well."
PASSAGES = [Passage("p1", "Lentils", LENTILS), Passage("p2", "Milk", MILK)]
YES, NO = {"yes": 0.9, "no": 0.1}, {"yes": 0.2, "no": 0.8}


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    return lines(tmp_path / "q.jsonl", {"id": "q1", "question": "What holds iron?"})


def run_of(
    task: Groundedness, folder: Path, parts: Parts, replies: list[object], choices: list[dict[str, float]]
) -> Run[str]:
    run = task.open(folder)
    llm = ScriptedLLM(replies, choices)
    task.fill(run, replace(parts, llm=llm, retriever=FixedRetriever(PASSAGES)), silent)
    assert (llm.replies, llm.choices) == ([], [])
    return run


def plan_of(questions: Path, **changes: object) -> Groundedness:
    choices = Choices(strategy="concat", loop="retrieve_then_generate", k=2, below="answer")
    asked = {one.id: one for one in read_questions(questions)}
    return replace(Groundedness(questions, asked, choices, "extractive", 0.5, "m"), **changes)


def values(summary: dict[str, object]) -> dict[str, float]:
    return {name: of["value"] for name, of in summary["measures"].items()}


def test_citations_and_support_are_counted_by_asking_whole_passages(questions: Path, parts: Parts, tmp_path) -> None:
    plan = plan_of(questions)
    answer = "Lentils hold iron. Milk holds calcium. Both are quite cheap. Right?"
    parts = replace(parts, support=lambda _: WordJudge(replies={"Milk holds calcium.": "not"}))
    # The turn cites the first sentence alone, and looks at the reply again. Here its passage says it not, p1 says
    # nothing of the others, and p2 says the second.
    check = [{"yes": 1.0, "no": 0.0}, NO, NO, NO, NO, YES, NO]
    run = run_of(plan, tmp_path / "out", parts, [answer], check)
    [row] = run.rows.values()
    first, second, third = row["claims"]
    assert (first["cited"], first["asked"]) == (["p1"], {"p1": 0.2, "p2": 0.2})
    assert (second["cited"], second["asked"]) == ([], {"p1": 0.2, "p2": 0.9})
    assert third["asked"] == {"p1": 0.2, "p2": 0.2}
    summary = plan.summarise(run.rows)
    assert values(summary) == {
        "answered": 1,
        "supported": pytest.approx(1 / 3),
        "citation precision": 0,
        "citation recall": 0,
    }
    assert (summary["claims"], summary["citations"]) == (3, 1)


def test_an_answer_that_is_cited_rightly(questions: Path, parts: Parts, tmp_path: Path) -> None:
    plan = plan_of(questions)
    run = run_of(plan, tmp_path / "out", parts, ["Lentils hold iron."], [YES])
    summary = plan.summarise(run.rows)
    assert set(values(summary).values()) == {1.0}


def test_a_run_goes_on_and_only_as_it_was_begun(questions: Path, parts: Parts, tmp_path: Path) -> None:
    plan = plan_of(questions)
    run_of(plan, tmp_path / "out", parts, ["Lentils hold iron."], [YES])
    run_of(plan, tmp_path / "out", parts, [], [])
    with pytest.raises(DataError, match="another digest"):
        replace(plan, digest="llm").open(tmp_path / "out")


def test_nothing_answered_is_told(questions: Path, parts: Parts, tmp_path: Path) -> None:
    plan = plan_of(questions)
    run = run_of(plan, tmp_path / "out", parts, ["unknown"], [])
    with pytest.raises(DataError, match="None of the questions was answered"):
        plan.summarise(run.rows)


@pytest.mark.parametrize(
    ("text", "meta"),
    [
        ("This passage explains how lentils are cooked.", True),
        ("The text describes three diets.", True),
        ("According to the following short article, iron helps.", True),
        ("Here is a summary of the passage.", True),
        ("Lentils hold iron and protein.", False),
        ("The passage of time heals wounds.", True),
        ("Read the label before you buy it.", False),
    ],
)
def test_meta_talk_is_told_by_its_words(text: str, meta: bool) -> None:
    # "The passage of time" is taken for it too; summaries of passages on time are rare.
    assert is_meta_talk(text) is meta


def test_meta_talk_is_counted_where_passages_are_summarised(questions: Path, parts: Parts, tmp_path: Path) -> None:
    plan = plan_of(questions, digest="llm")
    settings = parts.settings
    turn = settings.turn.model_copy(update={"digest": "llm"})
    parts = replace(parts, settings=settings.model_copy(update={"turn": turn}))
    summaries = ["This passage is about lentils.", "Milk holds lactose."]
    run = run_of(plan, tmp_path / "out", parts, [*summaries, "Lentils hold iron."], [YES])
    assert values(plan.summarise(run.rows))["meta talk"] == 0.5


def test_agreement_with_a_reading(questions: Path, parts: Parts, tmp_path: Path) -> None:
    plan = plan_of(questions)
    answer = "Lentils hold iron. Milk holds calcium."
    run = run_of(plan, tmp_path / "out", parts, [answer], [YES, YES])
    asked = sentences_to_label(run.rows.values())
    assert {row["id"] for row in asked} == {"q1/0", "q1/1"}
    assert "asked" not in asked[0]
    assert [one["id"] for one in asked[0]["passages"]] == ["p1", "p2"]
    said = {"q1/0": ["p1"], "q1/1": []}
    file = lines(tmp_path / "l.jsonl", *({**row, "supporting": said[row["id"]]} for row in asked))
    found = agreement(Label.read(file), run.rows, plan.threshold)
    assert found["sentences"]["agree"] == 1
    assert found["sentences"]["supported by the check alone"] == 1
    assert found["citations"]["read"] == 2
    assert found["citations"]["kappa"] == 0


def test_labels_that_do_not_fit_are_refused(questions: Path, parts: Parts, tmp_path: Path) -> None:
    run = run_of(plan_of(questions), tmp_path / "out", parts, ["Lentils hold iron."], [YES])
    other = lines(tmp_path / "other.jsonl", {"id": "q1/0", "sentence": "Another one.", "supporting": []})
    with pytest.raises(DataError, match="'q1/0' is of a sentence that this run does not have"):
        agreement(Label.read(other), run.rows, 0.5)
    with pytest.raises(DataError, match=r"open.jsonl, line 1, is no label"):
        Label.read(lines(tmp_path / "open.jsonl", {"id": "q1/0", "sentence": "x", "supporting": None}))
    for wrong in ({"supporting": "p7"}, {"supporting": [7]}, {"supporting": [], "id": ["q1/0"]}):
        with pytest.raises(DataError, match=r"wrong.jsonl, line 1, is no label"):
            Label.read(lines(tmp_path / "wrong.jsonl", {"id": "q1/0", "sentence": "x", **wrong}))
    with pytest.raises(DataError, match="no labels"):
        Label.read(lines(tmp_path / "empty.jsonl"))


def test_a_corpus_that_has_changed_wants_another_folder(questions: Path, tmp_path: Path) -> None:
    corpus = lines(tmp_path / "c.jsonl", {"id": "p1", "contents": LENTILS})
    plan = plan_of(questions)
    plan = replace(plan, choices=replace(plan.choices, library=str(corpus)))
    plan.open(tmp_path / "out")
    plan.open(tmp_path / "out")
    lines(corpus, {"id": "p1", "contents": MILK})
    with pytest.raises(DataError, match="holds a run with another searched;"):
        plan.open(tmp_path / "out")
    named = replace(plan, choices=replace(plan.choices, library="starter"))
    assert named.claim()["searched"] == "starter"


@pytest.mark.model
@pytest.mark.lucene
def test_a_summariser_that_cannot_be_had_is_no_evaluation(files, embedder, tmp_path, monkeypatch) -> None:  # noqa: F811
    monkeypatch.setenv("SEQUITUR_TURN__DIGEST", "seq2seq")
    monkeypatch.setenv("SEQUITUR_TURN__SUMMARISER", "/no/such/model")
    words = ["groundedness", "--questions", files[1], "--corpus", files[0], "--out", tmp_path / "g"]
    words += ["--data-dir", sharing_models(tmp_path)]
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert "There is no model at /no/such/model" in str(result.exception)
    assert '"digest": "seq2seq (/no/such/model)"' in (tmp_path / "g" / "run.json").read_text()


@pytest.mark.model
@pytest.mark.lucene
@pytest.mark.usefixtures("no_second_look")
def test_the_command_end_to_end(files, smollm_path, embedder, tmp_path: Path) -> None:  # noqa: F811
    corpus, questions = files
    words = ["groundedness", "--questions", questions, "--corpus", corpus, "--out", tmp_path / "g", "--limit", 1]
    words += ["--model", "smollm2-135m", "--strategy", "concat", "--loop", "retrieve_then_generate", "--read", 5]
    words += ["--data-dir", sharing_models(tmp_path)]
    result = CliRunner().invoke(app, [str(word) for word in [*words, "--json"]])
    rows = (tmp_path / "g" / "rows.jsonl").read_text().splitlines()
    assert len(rows) == 1
    if json.loads(rows[0])["unknown"]:  # the tiny model may find nothing to say
        assert isinstance(result.exception, DataError)
    else:
        assert result.exit_code == 0
        assert 0 <= json.loads(result.stdout)["measures"]["supported"]["value"] <= 1
        assert (tmp_path / "g" / "reading.jsonl").exists()
