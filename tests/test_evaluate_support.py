"""`evaluate support`: what it reads, its measures on scores that can be checked by hand, and the language model's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assistant.__main__ import app
from assistant.commands import evaluate
from assistant.errors import DataError
from assistant.evaluation.looked_at import looked_at_ids, with_looked_at_remark
from assistant.evaluation.support import Pair, measure, read_pairs
from tests.scripted import WORDS, ScriptedLLM
from tests.test_evaluation_data import lines

PAIR = {"claim": "Oslo has many parks.", "evidence": "Oslo has parks.", "label": "supported"}
OLD = {"id": "a", "sentence": "It is.", "title": "Oslo", "passage": "It is.", "supported": True, "kind": "copied"}


def pairs(*labels: str) -> list[Pair]:
    return [Pair.model_validate({**PAIR, "label": label}) for label in labels]


def test_a_pair_is_not_taken_for_a_question_of_another_set_by_its_place() -> None:
    of_scifact = next(id_ for id_ in looked_at_ids() if id_.isdigit())
    _, each = measure(pairs(*["supported"] * 1500), lambda some: [0.9] * len(some), 0.5, lambda n: None)
    assert of_scifact in {row["id"] for row in each}
    assert with_looked_at_remark({}, (row["id"] for row in each)) == {}
    assert "remarks" in with_looked_at_remark({}, [of_scifact])


def test_both_formats_are_read(tmp_path: Path) -> None:
    listed = {
        **PAIR,
        "question": "Where?",
        "evidence": ["One.", "Two."],
        "label": "partially_supported",
        "split": "dev",
    }
    new, old = read_pairs(lines(tmp_path / "p.jsonl", listed, {**OLD, "split": "test"}))
    assert (new.question, new.evidence, new.supported, new.split) == ("Where?", "One. Two.", False, "dev")
    assert (old.claim, old.evidence, old.title, old.supported, old.kind) == ("It is.", "It is.", "Oslo", True, "copied")
    assert [pair.split for pair in read_pairs(tmp_path / "p.jsonl", "test")] == ["test"]


def test_evidence_may_be_a_passage_of_a_corpus(tmp_path: Path) -> None:
    named = {"claim": "Oslo has parks.", "source": "o1", "label": "supported"}
    path = lines(tmp_path / "p.jsonl", named, PAIR)
    corpus = lines(tmp_path / "c.jsonl", {"id": "o1", "title": "Oslo", "contents": "It has many parks."})
    first, second = read_pairs(path, corpora=[corpus])
    assert (first.passage.titled, second.evidence) == ("Oslo: It has many parks.", PAIR["evidence"])
    with pytest.raises(DataError, match=r"line 1, points to 'o1', which is in no corpus given; add it with --corpus"):
        read_pairs(path)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"label": "perhaps"}, "line 2, is not a labelled pair: 'label': Input should be 'supported'"),
        ({"evidence": ["One.", 2]}, "'evidence'"),
        ({"evidence": []}, "'evidence'"),
        ({"claim": " "}, "'claim'"),
        ({"claim": None}, "'claim'"),
    ],
)
def test_a_line_that_is_no_pair_is_named(tmp_path: Path, change: dict[str, object], told: str) -> None:
    with pytest.raises(DataError, match=told):
        read_pairs(lines(tmp_path / "p.jsonl", PAIR, {**PAIR, **change}))


def test_a_line_that_lacks_something_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 1, is not a labelled pair: 'claim': Field required"):
        read_pairs(lines(tmp_path / "p.jsonl", {"evidence": "x", "label": "supported"}))


def test_files_without_pairs_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no pairs of the split 'tset' in .*; give lines of"):
        read_pairs(lines(tmp_path / "p.jsonl", PAIR), "tset")
    with pytest.raises(DataError, match="can't be read"):
        read_pairs(tmp_path / "missing.jsonl")


def test_measures_are_those_of_supported_against_the_rest() -> None:
    rows = pairs("supported", "supported", "partially_supported", "not_supported")
    found, each = measure(rows, lambda some: [0.9, 0.4, 0.6, 0.1][: len(some)], 0.5, lambda n: None)
    # over 0.5 are one right pair and one wrong; of three pairs of a true and a false one, three are in order of four
    assert (found["precision"], found["recall"], found["balanced_accuracy"], found["auc"]) == (0.5, 0.5, 0.5, 0.75)
    assert found["right"] == {"not supported": "1 of 1", "partially supported": "0 of 1", "supported": "1 of 2"}
    assert found["ms"] >= 0
    assert [(row["id"], row["label"], row["probability"]) for row in each[:2]] == [
        ("1", "supported", 0.9),
        ("2", "supported", 0.4),
    ]


def test_pairs_of_one_label_have_no_auc() -> None:
    found, _ = measure(pairs("supported"), lambda some: [0.9], 0.5, lambda n: None)
    assert (found["auc"], found["balanced_accuracy"], found["recall"]) == (None, None, 1)


@pytest.mark.parametrize("given", [["--json"], []])
@pytest.mark.parametrize("judge", ["llm", "addresses"])
def test_the_language_model_is_asked_yes_or_no(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judge: str, given: list[str]
) -> None:
    path = lines(tmp_path / "p.jsonl", PAIR, PAIR, {**PAIR, "label": "not_supported"})
    scores = (0.9, 0.9, 0.6, 0.1)  # the first pair is asked twice, the first time to warm up
    llm = ScriptedLLM(choices=[{"yes": score, "no": 1 - score} for score in scores])
    monkeypatch.setattr(evaluate, "load_llm", lambda *_: llm)
    monkeypatch.setattr(evaluate, "load_embedder", lambda *_: WORDS)
    result = CliRunner().invoke(app, ["evaluate", "support", "--pairs", str(path), "--judge", judge, *given])
    assert result.exit_code == 0, result.output
    assert llm.choices == []
    if given:
        assert json.loads(result.stdout)["auc"] == 1
    else:
        assert "auc 1.000" in result.stdout


def test_a_judge_that_is_not_there_is_told(tmp_path: Path) -> None:
    path = lines(tmp_path / "p.jsonl", PAIR)
    result = CliRunner().invoke(app, ["evaluate", "support", "--pairs", str(path), "--judge", str(tmp_path / "none")])
    assert result.exit_code != 0
    assert "The support judge can't be used" in str(result.exception)
