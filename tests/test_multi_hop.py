"""The judge of multi-hop questions, and how it is taught."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assistant.__main__ import app
from assistant.errors import DataError, ModelError
from assistant.judges import load
from assistant.judges.multi_hop import FILE, SHIPPED, Curve, MultiHop, plain
from assistant.llm.embedder import SentenceEmbedder
from assistant.training.multi_hop.train import Source, part_of, train
from tests.scripted import WORDS

SEVERAL = tuple(f"Where was the director of film {n} born?" for n in range(60))
SINGLE = tuple(f"How tall is tower {n}?" for n in range(60))


def test_what_was_taught_is_told_again(tmp_path: Path) -> None:
    summary = train(tmp_path, WORDS, [Source("films", SEVERAL, True), Source("towers", SINGLE, False)])
    assert summary["auc"] == 1
    assert summary["precision"] == 1
    assert summary["test"]["films"]["found"] == 1
    assert summary["test"]["towers"] == {
        "questions": sum(part_of(one) == "test" for one in SINGLE),
        "several": False,
        "found": 0,
    }
    judge = MultiHop(Curve.load(tmp_path), WORDS)
    assert judge.needs_several("Where was the director of film 99 born?")
    assert not judge.needs_several("How tall is tower 99?")


def test_a_question_is_in_one_part_however_it_is_typed() -> None:
    assert plain(" Where is it? ") == plain("where is it") == "where is it"
    assert part_of("Where is it?") == part_of("where is it")
    parts = [part_of(f"Question {n}?") for n in range(1000)]
    assert 0.15 < parts.count("test") / 1000 < 0.25
    assert 0.15 < parts.count("dev") / 1000 < 0.25


def test_too_few_questions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="too few questions"):
        train(tmp_path, WORDS, [Source("films", SEVERAL, True)])


def test_the_shipped_judge_tells_such_questions(embedder: SentenceEmbedder) -> None:
    judge = load.multi_hop(embedder)
    assert judge.needs_several("Where was the director of Jaws born?")
    for question in ("What is the capital of Peru?", "How do I lower my blood pressure?", "Is the earth flat?"):
        assert not judge.needs_several(question)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"weights": ["a"], "embedder": "words", "threshold": 1}'])
def test_a_broken_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    with pytest.raises(ModelError, match="no complete one"):
        Curve.load(tmp_path)


def test_another_embedder_needs_another_judge(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"trained for all-MiniLM-L6-v2, not for words"):
        MultiHop(Curve.load(SHIPPED), WORDS)
    with pytest.raises(ModelError, match=r"turn\.plan to never"):
        load.multi_hop(WORDS).needs_several("Where was the director of Jaws born?")
    renamed = replace(Curve.load(SHIPPED), embedder="words", weights=(0.0,) * 2049)
    assert not MultiHop(renamed, WORDS).needs_several("Who?")


def test_the_command_teaches_from_files(tmp_path: Path) -> None:
    for name, questions in (("several", SEVERAL), ("single", SINGLE)):
        rows = (json.dumps({"id": str(n), "question": one, "answers": []}) for n, one in enumerate(questions))
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    command = ["train", "multi-hop", "--several", str(tmp_path / "several.jsonl"), "--json"]
    done = CliRunner().invoke(
        app, [*command, "--single", str(tmp_path / "single.jsonl"), "--out", str(tmp_path / "out")]
    )
    assert done.exit_code == 0, done.output
    assert Curve.load(tmp_path / "out").embedder == "all-MiniLM-L6-v2"
