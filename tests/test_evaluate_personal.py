"""`evaluate personal`: what counts as a right rewrite, runs that go on, and files that can't be used."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from assistant.commands import evaluate
from assistant.commands.experiment import EmptyRetriever
from assistant.errors import DataError
from assistant.evaluation.personal import Pair, PersonalRewriting, read_pairs
from assistant.experiment.runs import Run
from assistant.protocols import Parts, silent
from assistant.settings import FactSettings, Settings
from tests.scripted import WORDS, ScriptedLLM

LIVES = {"facts": ["I live in Oslo."], "question": "How large is my country?", "must": ["norw"], "kind": "country"}
WRITTEN = Path(__file__).parent / "data" / "personal.jsonl"


def written(folder: Path, *rows: dict[str, object]) -> Path:
    path = folder / "pairs.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def ran(path: Path, pairs: list[Pair], folder: Path, given: Parts) -> tuple[PersonalRewriting, Run[str]]:
    task = PersonalRewriting(path, {pair.id: pair for pair in pairs}, "m")
    run = task.open(folder)
    task.fill(run, given, silent)
    return task, run


def parts(*replies: str) -> Parts:
    # to an embedder that counts words no fact is near to these questions
    settings = Settings(facts=FactSettings(rewrite_threshold=-1))
    return Parts(settings, ScriptedLLM(list(replies)), WORDS, EmptyRetriever())


def test_a_rewrite_is_right_that_says_what_it_must_say(tmp_path: Path) -> None:
    plain = {"facts": ["I live in Oslo."], "question": "Is the earth flat?", "must": ["^is the earth flat"]}
    path = written(tmp_path, LIVES, LIVES, plain)
    given = parts("How large is Norway?", "How large is Oslo?", plain["question"])
    task, run = ran(path, read_pairs(path), tmp_path / "out", given)
    assert [row["right"] for row in run.rows.values()] == [True, False, True]
    summary = task.summarise(run.rows)
    assert (summary["n"], summary["accuracy"]) == (3, pytest.approx(2 / 3))
    assert summary["kinds"]["country"]["value"] == 0.5


def test_a_rewrite_is_wrong_that_says_what_it_must_not(tmp_path: Path) -> None:
    row = {"facts": [], "history": [["How big is Chad?", "Big."]], "question": "And Mali?", "must": ["mali"]}
    path = written(tmp_path, {**row, "never": ["chad"]}, row)
    _, run = ran(path, read_pairs(path), tmp_path / "out", parts(*["How big are Chad and Mali?"] * 2))
    assert [one["right"] for one in run.rows.values()] == [False, True]


def test_the_facts_and_what_was_said_are_told_to_the_model(tmp_path: Path) -> None:
    row = {**LIVES, "history": [["Is Norway in the EU?", "No, it isn't."]]}
    given = parts("How large is Norway?")
    path = written(tmp_path, row)
    ran(path, read_pairs(path), tmp_path / "out", given)
    assert isinstance(given.llm, ScriptedLLM)
    shown = given.llm.prompts[0][-1].content
    assert all(text in shown for text in ("I live in Oslo.", "Is Norway in the EU?", "How large is my country?"))


def test_a_run_goes_on_where_it_was(tmp_path: Path) -> None:
    path = written(tmp_path, LIVES, {**LIVES, "question": "How old is my country?"})
    pairs = read_pairs(path)
    ran(path, pairs[:1], tmp_path / "out", parts("How large is Norway?"))
    task, run = ran(path, pairs, tmp_path / "out", parts("How old is Norway?"))
    assert all(run.rows[pair.id]["right"] for pair in pairs)
    with pytest.raises(DataError, match="another model"):
        replace(task, model="another").open(tmp_path / "out")


def test_the_command_prints_the_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEQUITUR_FACTS__REWRITE_THRESHOLD", "-1")
    monkeypatch.setattr(evaluate, "embedder_of", lambda *_: WORDS)
    monkeypatch.setattr(evaluate, "language_model", lambda _: ScriptedLLM(["How large is Norway?"] * 2))
    path = written(tmp_path, {**LIVES, "split": "dev"}, {**LIVES, "split": "test"})
    data = {"data_dir": tmp_path / "data"}
    evaluate.evaluate_personal(pairs=path, split="test", as_json=True, **data)
    told = json.loads(capsys.readouterr().out)
    assert (told["accuracy"], told["n"]) == (1.0, 1)
    evaluate.evaluate_personal(pairs=path, **data)
    assert "accuracy 1.000" in capsys.readouterr().out
    # the run of the one pair goes on with the other; its report has every rewrite
    [folder] = (tmp_path / "data" / "runs").iterdir()
    assert "How large is Norway?" in (folder / "report.md").read_text()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"must": ["("]}, "'must.0': .* is no regular expression"),
        ({"must": []}, "'must'"),
        ({"question": ""}, "'question'"),
        ({"facts": "I live in Oslo."}, "'facts'"),
    ],
)
def test_a_line_that_is_no_pair_is_named(tmp_path: Path, change: dict[str, object], why: str) -> None:
    with pytest.raises(DataError, match=f"pairs.jsonl, line 2, is no pair of facts and question: {why}"):
        read_pairs(written(tmp_path, LIVES, {**LIVES, **change}))


def test_a_split_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="There are no pairs of the split 'test'"):
        read_pairs(written(tmp_path, LIVES), "test")


def test_the_pairs_that_come_with_it_are_whole() -> None:
    pairs = read_pairs(WRITTEN)
    assert len(pairs) == len({pair.id for pair in pairs}) == 100
    assert {pair.split for pair in pairs} == {"dev", "test"}
