"""`evaluate guesses`: what the model tells by itself, and what it only offers as a guess."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from math import log
from pathlib import Path
from threading import Event

import pytest

from assistant.commands.experiment import EmptyRetriever, RunOptions
from assistant.evaluation import looked_at
from assistant.evaluation.guesses import Guesses
from assistant.experiment.datasets import read_questions
from assistant.protocols import Parts, silent
from assistant.settings import Settings
from assistant.types import Completion, Messages, Options
from tests.scripted import WORDS, ScriptedLLM


class Unsure(ScriptedLLM):
    """Isn't sure of what mentions Oslo."""

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        for one in super().stream(messages, options, stop):
            yield replace(one, logprobs=(log(0.1 if "Oslo" in one.text else 0.9),))


def test_replies_and_guesses_are_counted_apart(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    rows = [
        {"id": f"q{n}", "question": "Which city is it?", "answers": [gold]} for n, gold in enumerate(["Rome", "Bern"])
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    parts = Parts(Settings(), Unsure(["It is Rome.", "It is Oslo."]), WORDS, EmptyRetriever())
    task = Guesses(path, {one.id: one for one in read_questions(path)}, "m", 0.3)
    run = task.open(tmp_path / "out")
    task.fill(run, parts, silent)
    assert [(row["reply"], row["held"], row["guess"]) for row in run.rows.values()] == [
        ("It is Rome.", True, False),
        ("It is Oslo.", False, True),
    ]
    measures = task.summarise(run.rows)["measures"]
    assert measures["told"]["value"] == pytest.approx(0.5)
    assert measures["gold answer in what is told"]["value"] == 1.0
    assert measures["gold answer in a guess"]["value"] == 0.0


def test_a_smaller_sample_of_a_kept_run_counts_what_was_looked_at_of_its_own(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(looked_at, "looked_at_ids", lambda: frozenset({"qa", "qb"}))
    path = tmp_path / "q.jsonl"
    rows = [{"id": name, "question": "Which city is it?", "answers": ["Rome"]} for name in ("qa", "qb")]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    parts = Parts(Settings(), Unsure(["It is Rome."] * 2), WORDS, EmptyRetriever())
    questions = {one.id: one for one in read_questions(path)}
    for items in (questions, {"qa": questions["qa"]}):
        RunOptions(into=tmp_path / "out").perform(Guesses(path, items, "m", 0.3), lambda: parts)
        summary = json.loads((tmp_path / "out" / "summary.json").read_text())
        [(remark, count)] = summary["remarks"].items()
        assert remark.startswith(f"of {len(items)} questions")
        assert count == len(items)
