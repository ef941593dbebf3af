"""`evaluate scenarios`: what passes and what doesn't, documents that come and go, and files that can't be used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assistant.__main__ import app
from assistant.commands import evaluate
from assistant.errors import DataError, ModelError
from assistant.evaluation.scenarios import Scenario, Scenarios, find_problems, place_facts, read_scenarios
from assistant.experiment.report import markdown
from assistant.experiment.runs import Run
from assistant.library.shelves import open_shelves, own_library
from assistant.protocols import Parts, silent
from assistant.settings import RelevanceSettings, Settings, TurnSettings
from assistant.types import Answer, Choices, Citation, Passage, Turn
from assistant.wording.replies import FIXED
from tests.scripted import WORDS, FixedRetriever, ScriptedLLM, library_of
from tests.test_evaluation_data import lines

ROW = {"id": "a", "kind": "library", "ask": "What holds iron?", "expect": "answer"}
CHOICES = Choices("concat", "retrieve_then_generate", 1)
LENTILS = Passage("p1", "Lentils", "Lentils hold iron and protein in good amounts.")
CITED = (Citation(1, "p1", 0, 18, "Lentils hold iron.", "Lentils hold iron", 0.9),)


class Scripted:
    """A source of scripted parts; its language model says `replies` over the turns."""

    def __init__(self, parts: Parts, *replies: object) -> None:
        self.llm = ScriptedLLM(list(replies))
        self._parts = replace(parts, llm=self.llm, retriever=FixedRetriever([LENTILS]))
        self.settings = parts.settings
        self.asked_for: list[str] = []

    def loaded(self, seconds: float, model: str = "") -> bool:
        return True

    @contextmanager
    def lent(self, user: str, choices: Choices, model: str = "") -> Iterator[Parts]:
        yield self.parts(user, choices)

    def parts(self, user: str, choices: Choices) -> Parts:
        self.asked_for.append(user)
        return self._parts


def task_of(path: Path, folder: Path, choices: Choices = CHOICES) -> Scenarios:
    return Scenarios(path, read_scenarios(path), choices, "m", folder)


def ran(path: Path, folder: Path, source: Scripted) -> Run[str]:
    task = task_of(path, folder)
    run = task.open(folder)
    task.fill(run, source, silent)
    return run


def scenario(**changes: object) -> Scenario:
    return Scenario.model_validate({**ROW, **changes})


def turn(text: str, citations: tuple[Citation, ...] = ()) -> Turn:
    return Turn("?", answer=Answer(text), citations=citations, status="done")


@pytest.mark.parametrize(
    ("expect", "reply", "citations", "passes"),
    [
        ("answer", "Lentils. [1]", CITED, True),
        ("answer", "Lentils. [1]", (), False),  # a number in the text alone is no citation
        ("no_answer", "The library doesn't say.", (), True),
        ("no_answer", "Lentils. [1]", CITED, False),
        ("uncited", "Hello!", (), True),
        ("uncited", "Hello! [1]", CITED, False),
        ("either", "Lentils.", (), True),
        ("either", "Lentils. [1]", CITED, True),
        ("either", " ", (), False),
        ("no_answer", "", (), False),
    ],
)
def test_what_is_expected_is_judged_by_the_citations(
    expect: str, reply: str, citations: tuple[Citation, ...], passes: bool
) -> None:
    assert (find_problems(scenario(expect=expect), turn(reply, citations)) == []) is passes


def test_patterns_are_searched_for_whatever_the_case_and_each_failure_is_told() -> None:
    one = scenario(expect="either", must=["lentil|bean", "iron"], must_not=[r"\bmilk\b"])
    assert find_problems(one, turn("LENTILS hold Iron, not buttermilk.")) == []
    assert find_problems(one, turn("Milk.")) == [
        "The reply lacks 'lentil|bean'.",
        "The reply lacks 'iron'.",
        r"The reply has '\bmilk\b'.",
    ]


def test_a_turn_that_failed_or_never_answered_does_not_pass() -> None:
    one = scenario(expect="either")
    assert find_problems(one, Turn("?", status="failed", error="No model.")) == ["The turn failed: No model."]
    assert find_problems(one, Turn("?", status="done")) == ["There is no reply."]


def test_facts_may_be_stated_in_the_conversation_instead() -> None:
    one = scenario(facts=["I'm vegan.", "I run."], history=[["Hello", "Hello!"]])
    assert place_facts(one, "stored") == one
    said = place_facts(one, "in_message")
    assert (said.facts, said.history, said.ask) == ((), one.history, "I'm vegan. I run. What holds iron?")
    earlier = place_facts(one, "in_earlier_message")
    assert (earlier.facts, earlier.history[1:], earlier.ask) == ((), one.history, one.ask)
    assert earlier.history[0] == ("I'm vegan. I run.", FIXED["acknowledged"])
    without = scenario()
    assert place_facts(without, "in_message") == without


def test_whole_turns_are_run_and_judged_and_a_run_goes_on(parts: Parts, tmp_path: Path) -> None:
    path = lines(
        tmp_path / "s.jsonl",
        {**ROW, "must": ["iron"]},
        {**ROW, "id": "b", "kind": "talk", "ask": "And why?", "facts": ["I'm vegan."], "expect": "uncited",
         "history": [["What holds iron?", "Lentils hold iron. [1]"]]},
    )  # fmt: skip
    source = Scripted(parts, "Lentils hold iron.", "Why do lentils hold iron?", "Lentils hold protein.")
    run = ran(path, tmp_path / "out", source)
    assert source.llm.replies == []
    # the reply of the history is given without its marker, as the page keeps it
    assert "Lentils hold iron." in str(source.llm.prompts[1])
    assert "[1]" not in str(source.llm.prompts[1])
    good, bad = run.rows["a"], run.rows["b"]
    assert (good["passed"], good["why"], good["origin"]) == (True, "", "passages")
    assert [(one["n"], one["passage_id"], one["title"]) for one in good["citations"]] == [(1, "p1", "Lentils")]
    assert (bad["passed"], bad["why"]) == (False, "1 citation(s), where none should be.")
    again = task_of(path, tmp_path / "out").open(tmp_path / "out")
    assert task_of(path, tmp_path / "out").is_done(again)
    assert again.rows == run.rows
    with pytest.raises(DataError, match="another strategy"):
        task_of(path, tmp_path / "out", replace(CHOICES, strategy="summary")).open(tmp_path / "out")


def test_parts_that_cannot_be_had_fail_the_turn_alone(parts: Parts, tmp_path: Path) -> None:
    path = lines(tmp_path / "s.jsonl", ROW)
    source = Scripted(parts)
    source.parts = lambda user, choices: (_ for _ in ()).throw(ModelError("There is no library 'x'."))
    run = ran(path, tmp_path / "out", source)
    assert run.rows["a"]["why"] == "The turn failed: There is no library 'x'."


@pytest.mark.lucene
def test_documents_are_searched_beside_the_library_and_removed(settings: Settings, tmp_path: Path) -> None:
    library_of(settings, "starter", [LENTILS])
    seen: dict[str, list[str]] = {}

    class Shelves(Scripted):
        def parts(self, user: str, choices: Choices) -> Parts:
            shelves = open_shelves(choices.library, user, self.settings)
            seen[user] = [one.title for one in shelves.search("launch iron", 5)]
            return replace(super().parts(user, choices), retriever=shelves)

    path = lines(
        tmp_path / "s.jsonl",
        {**ROW, "kind": "document", "ask": "When is the launch?", "must": ["24 June"],
         "documents": [{"name": "../heron.md", "text": "The launch of Heron is on 24 June."}]},
        {**ROW, "id": "b", "ask": "When is the launch?", "expect": "either"},
    )  # fmt: skip
    source = Shelves(Parts(settings, ScriptedLLM(), WORDS, FixedRetriever([])), "It is on 24 June.", "unknown")
    source.llm.replies += ["unknown"] * 4
    ran(path, tmp_path / "out", source)
    with_document, without = seen.values()
    assert with_document[0] == "heron"
    assert set(with_document) == {"heron", "Lentils"}
    assert without == ["Lentils"]
    assert [one.name for one in settings.libraries_dir.iterdir() if one.is_dir()] == ["starter"]
    assert own_library("me") not in str(seen)


@pytest.mark.lucene
def test_a_document_that_cannot_be_read_is_named(parts: Parts, tmp_path: Path) -> None:
    path = lines(tmp_path / "s.jsonl", {**ROW, "documents": [{"name": "a.xyz", "text": "Text."}]})
    with pytest.raises(DataError, match=r"Scenario a: the document a.xyz can't be used \(this kind of file"):
        ran(path, tmp_path / "out", Scripted(parts))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"kind": ""}, "line 2, is no scenario: 'kind': String should have at least 1 character"),
        ({"expect": "maybe"}, "'expect': Input should be 'answer'"),
        ({"must": ["(("]}, r"'must.0': Value error, '\(\(' is no regular expression"),
        ({"must_not": "milk"}, "'must_not'"),
        ({"history": [["alone"]]}, "'history.0"),
        ({"documents": [{"name": "a.txt"}]}, "'documents.0.text': Field required"),
        ({"facts": [" "]}, "'facts.0': Value error, The fact is empty"),
        ({"ask": ""}, "'ask'"),
        ({"mustnt": ["x"]}, "'mustnt'"),
        ({"id": "a"}, "line 2, repeats the id 'a'"),
    ],
)
def test_a_broken_scenario_is_named(tmp_path: Path, change: dict[str, object], told: str) -> None:
    path = lines(tmp_path / "s.jsonl", ROW, {**ROW, "id": "b", **change})
    with pytest.raises(DataError, match=told):
        read_scenarios(path)


def test_files_that_cannot_be_used_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="can't be read"):
        read_scenarios(tmp_path / "missing.jsonl")
    (tmp_path / "bad.jsonl").write_text("{nonsense\n")
    with pytest.raises(DataError, match="line 1, is not valid JSON"):
        read_scenarios(tmp_path / "bad.jsonl")
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(DataError, match="There are no scenarios"):
        read_scenarios(tmp_path / "empty.jsonl")


def test_shares_have_wilson_intervals_and_answers_stand_in_full(tmp_path: Path) -> None:
    some = [scenario(id=str(n), kind="library" if n < 4 else "talk") for n in range(5)]
    row = {"why": "", "citations": [], "origin": "passages", "seconds": 2.0, "answer": "Lentils.\n\nBeans."}
    rows = {one.id: {**row, "id": one.id, "passed": one.id in {"0", "1", "2"}} for one in some}
    task = Scenarios(lines(tmp_path / "s.jsonl", ROW), {one.id: one for one in some}, CHOICES, "m", tmp_path)
    run = task.open(tmp_path)
    run.rows.update(rows)
    summary = task.summarise(rows)
    # Wilson (1927) for 3 of 4 at z = 1.96
    assert summary["kinds"]["library"] == {
        "value": 0.75, "low": pytest.approx(0.3006, abs=1e-3), "high": pytest.approx(0.9544, abs=1e-3), "n": 4,
    }  # fmt: skip
    assert summary["kinds"]["talk"]["value"] == 0
    assert (summary["overall"]["value"], summary["overall"]["n"]) == (0.6, 5)
    assert "| library | 0.750 [0.301, 0.954] of 4 |" in markdown(summary)
    assert "> Lentils.\n> \n> Beans." in task.details(summary, run)
    assert "### 4: FAILED" in task.details(summary, run)


def test_the_command_writes_rows_summary_and_report(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Scripted(parts, "Lentils hold iron.")
    usual = Settings(
        data_dir=tmp_path, hub=False, relevance=RelevanceSettings(estimator="none"),
        turn=TurnSettings(strategy="concat", loop="retrieve_then_generate"),
    )  # fmt: skip
    monkeypatch.setattr(evaluate, "load_with_bars", lambda knobs: source)
    monkeypatch.setattr("assistant.commands.option_groups.settings_of", lambda *_, **__: usual)
    path = lines(tmp_path / "s.jsonl", ROW)
    given = ["evaluate", "scenarios", "--scenarios", str(path), "--out", str(tmp_path / "out"), "--json"]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == 0, result.output
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert summary["overall"]["value"] == 1
    [row] = map(json.loads, (tmp_path / "out/rows.jsonl").read_text().splitlines())
    assert set(row) == {"id", "passed", "why", "answer", "citations", "origin", "seconds"}
    assert row["answer"] in (tmp_path / "out/report.md").read_text()
