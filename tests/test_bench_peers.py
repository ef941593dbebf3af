"""Systems side by side: how they are asked, what is counted of their replies, and the stand that they share."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

from assistant.errors import DataError, ModelError, SettingsError
from assistant.evaluation.scenarios import Scenario
from assistant.experiment.datasets import Question
from assistant.types import Answer, Citation, Passage, Turn
from benchmarks.commands import app
from benchmarks.peers.asked import SystemProcess, command_of, list_systems
from benchmarks.peers.stand import standing, tokens
from benchmarks.peers.systems.sequitur import reply_of
from benchmarks.peers.task import Peers, Work, interleaved, of_scenario, passed, row_of
from benchmarks.peers.wire import Document, Stand
from tests.scripted import WORDS

NOWHERE = Stand("http://127.0.0.1:9/v1", "m", "http://127.0.0.1:9/v1", "e", 3)
OSLO, LIMA = Document("oslo", "Oslo", "Oslo lies in Norway."), Document("lima", "", "Lima lies in Peru.")
# says which documents it has, prints where it shouldn't, fails when it is told to, and dies or sleeps
SYSTEM = """
import os, sys, time
from benchmarks.peers.wire import Reply, serve
class Echo:
    def __init__(self, stand): self.stand = stand
    def learn(self, documents):
        self.ids = tuple(one.id for one in documents)
        if "broken" in self.ids: raise ValueError("no such document")
    def ask(self, question):
        print("a library's chatter")
        if question == "fail": raise ValueError("no idea")
        if question == "die": os._exit(3)
        if question == "sleep": time.sleep(60)
        return Reply(f"{question} by {self.stand.model}", self.ids, self.ids[:1], False)
serve(Echo, ["pytest"])
"""


@pytest.fixture
def echo(tmp_path: Path):
    path = tmp_path / "echo.py"
    path.write_text(SYSTEM)
    asked = SystemProcess("echo", [sys.executable, str(path)], NOWHERE, patience=20)
    yield asked
    asked.close()


def test_a_system_answers_fails_and_comes_back_after_it_died(echo: SystemProcess) -> None:
    first = echo.ask([OSLO, LIMA], "hello")
    assert first["text"] == "hello by m"
    assert (first["shown"], first["cited"], first["declined"]) == (["oslo", "lima"], ["oslo"], False)
    assert first["seconds"] >= 0
    assert first["peak"] > 1_000_000 or sys.platform != "linux"
    assert echo.learning_report["versions"] == {"pytest": pytest.__version__}
    assert echo.ask([OSLO, LIMA], "fail")["failed"] == "ValueError: no idea"
    assert echo.ask([LIMA], "other documents")["shown"] == ["lima"]
    assert echo.ask([LIMA], "die")["failed"] == "its process ended"
    assert echo.ask([LIMA], "again")["shown"] == ["lima"]
    with pytest.raises(DataError, match=r"echo can't take the documents \(ValueError: no such document\)"):
        echo.ask([replace(LIMA, id="broken")], "hello")


def test_a_system_that_takes_too_long_is_ended(echo: SystemProcess) -> None:
    echo.ask([LIMA], "hello")
    echo.patience = 0.3
    assert echo.ask([LIMA], "sleep")["failed"] == "no reply within 0 s"


def test_systems_are_found_by_their_files_and_want_an_environment(tmp_path: Path) -> None:
    assert list_systems()[0] == "sequitur"
    assert {"langchain_rag", "llama_index_rag"} < set(list_systems())
    assert command_of("sequitur", None) == [sys.executable, "-m", "benchmarks.peers.systems.sequitur"]
    with pytest.raises(SettingsError, match="There is no system 'nobody'; there are: sequitur, "):
        command_of("nobody", tmp_path)
    with pytest.raises(SettingsError, match="install --requirements-from-script benchmarks/peers/systems/langchain"):
        command_of("langchain_rag", tmp_path)
    python = tmp_path / "langchain_rag" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    assert command_of("langchain_rag", tmp_path)[0] == str(python)


def test_the_folder_of_environments_may_stand_in_the_environment(tmp_path: Path) -> None:
    told = {"PEERS_ENVIRONMENTS": str(tmp_path / "here")}
    done = CliRunner().invoke(app, ["peers", *_files(tmp_path), "--system", "langchain_rag"], env=told)
    with pytest.raises(SettingsError, match=re.escape(f"-m venv {tmp_path / 'here' / 'langchain_rag'} ")):
        raise done.exception


def test_each_question_goes_to_all_and_another_is_first_each_time() -> None:
    works = [Work(Question(id_, "?", ()), (OSLO,)) for id_ in ("q1", "q2")]
    assert list(interleaved(["a", "b"], works)) == [("a", "q1"), ("b", "q1"), ("b", "q2"), ("a", "q2")]


def _row(system: str, id_: str, reply: str, **more: object):
    gold = {"q1": ("Norway",), "q2": ("Peru",), "q3": ()}[id_]
    question = Question(id_, "Where?", gold, ("oslo",), unanswerable=not gold)
    told = {"text": reply, "shown": ["oslo"], "seconds": 2.0, "peak": 10**9, **more}
    return row_of(system, Work(question, (OSLO,)), told, 100, 7) | {"versions": {}, "learning": 1.0}


def test_a_row_counts_what_a_reply_holds() -> None:
    row = _row("a", "q1", "It lies in Norway.", cited=["lima"])
    assert (row["held"], row["exact"], row["gold_shown"], row["gold_cited"]) == (True, False, True, False)
    assert row["f1"] == pytest.approx(0.4)
    assert (row["prompt_tokens"], row["completion_tokens"], row["gigabytes"]) == (100, 7, 1.0)
    failed = row_of("a", Work(Question("q1", "?", ("Norway",), ("oslo",)), (OSLO,)), {"failed": "no"}, 0, 0)
    assert (failed["held"], failed["gold_shown"], failed["failed"]) == (False, False, "no")
    both = Work(Question("q1", "?", ("Norway",), ("oslo", "lima")), (OSLO, LIMA))
    rows = [row_of("a", both, {"text": "?", "shown": shown}, 0, 0) for shown in (["oslo"], ["lima", "oslo"])]
    assert [(row["gold_shown"], row["all_gold_shown"]) for row in rows] == [(True, False), (True, True)]


def test_ours_is_compared_with_each_other_on_the_same_questions() -> None:
    rows = [
        _row("sequitur", "q1", "Norway", cited=["oslo"]), _row("sequitur", "q2", "Peru"), _row("sequitur", "q3", "?"),
        _row("other", "q1", "Norway"), _row("other", "q2", "Chile"), _row("other", "q3", "Sweden", failed="late"),
        _row("third", "q1", "not asked for this time"),
    ]  # fmt: skip
    by_key = {(row["system"], row["id"]): row for row in rows}
    items = {key: (key[0], Work(Question(key[1], "?", ()), ())) for key in by_key if key[0] != "third"}
    by_key["sequitur", "q3"] |= {"own": True}
    read = {("sequitur", "q3"): True, ("other", "q3"): False}
    found = Peers(items, {}, read).summarise(by_key)
    assert list(found["systems"]) == ["sequitur", "other"]
    ours, other = found["systems"].values()
    assert (ours["gold answer in the reply"]["value"], other["gold answer in the reply"]["value"]) == (1.0, 0.5)
    assert ours["gold answer in the reply"]["n"] == 2
    assert (ours["failed"], other["failed"]) == (0, 1)
    less = found["sequitur less"]["other"]
    assert (less["gold answer in the reply"]["value"], less["gold answer in the reply"]["n"]) == (0.5, 2)
    assert less["a gold document cited"]["value"] == 0.5
    assert less["unanswerable: admitted, by reading"]["value"] == 1.0
    assert ours["unanswerable: told to be from no document"]["value"] == 1.0
    assert ours["unanswerable: a document cited all the same"]["value"] == 0.0
    assert "unanswerable: told to be from no document" not in other
    assert "as the scenario's marks ask" not in ours


def test_scenarios_are_judged_by_their_words_alone() -> None:
    one = Scenario.model_validate({
        "id": "s", "kind": "document", "documents": [{"name": "a.md", "text": "40 euros"}], "ask": "How much?",
        "expect": "answer", "must": ["40"], "must_not": ["96"],
    })  # fmt: skip
    work = of_scenario(one)
    assert work.documents == (Document("a.md", "a.md", "40 euros"),)
    assert [passed(work, reply) for reply in ("40 euros", "96 euros", "40, not 96")] == [True, False, False]
    assert passed(Work(Question("q", "?", ()), ()), "40") is None


def test_our_own_reply_has_no_markers_and_names_documents() -> None:
    passages = (Passage("a", "A", "x", source="s"), Passage("a#2", "A", "y", source="s"), Passage("b", "B", "z"))
    cited = Citation(1, "a#2", 0, 1, "It is x.", "y", 0.9)
    turn = Turn("?", passages=passages, answer=Answer("It is x [1]."), citations=(cited,))
    reply = reply_of(turn)
    assert (reply.text, reply.shown, reply.cited, reply.declined) == ("It is x.", ("a", "b"), ("a",), False)
    assert reply.own is False
    assert reply_of(replace(turn, answer=Answer("It is x.", origin="model"))).own is True
    with pytest.raises(ModelError, match="no model"):
        reply_of(replace(turn, status="failed", error="no model"))


@pytest.mark.model
def test_the_stand_speaks_as_others_expect_and_counts(smollm_path: Path, tmp_path: Path) -> None:
    with standing(smollm_path, WORDS, tmp_path, 2) as stand, httpx.Client(timeout=60) as client:
        assert client.get(f"{stand.llm}/models").json()["data"][0]["id"] == stand.model == smollm_path.stem
        before = tokens(stand)
        asked = {"messages": [{"role": "user", "content": "Say hi."}], "max_tokens": 3, "temperature": 0}
        usage = client.post(f"{stand.llm}/chat/completions", json=asked).json()["usage"]
        read, written = (after - since for after, since in zip(tokens(stand), before, strict=True))
        assert (read, written) == (usage["prompt_tokens"], usage["completion_tokens"])
        told = client.post(f"{stand.embeddings}/embeddings", json={"input": ["lentils", "milk"]}).json()
        assert [one["index"] for one in told["data"]] == [0, 1]
        assert len(told["data"][0]["embedding"]) == stand.dimensions
        assert np.allclose(told["data"][1]["embedding"], WORDS.encode(["milk"])[0])
    with pytest.raises(ModelError, match="give a GGUF model"), standing(Path("folder"), WORDS, tmp_path, 1):
        pass


def _files(tmp_path: Path) -> list[str]:
    corpus, questions = tmp_path / "corpus.jsonl", tmp_path / "questions.jsonl"
    _write(corpus, [{"id": f"p{n}", "title": "", "contents": f"Text {n}."} for n in (1, 2)])
    _write(questions, [{"id": f"q{n}", "question": "?", "answers": ["x"], "gold": [f"p{n}"]} for n in (1, 2)])
    return ["--corpus", str(corpus), "--questions", str(questions), *_usual(tmp_path)]


def _usual(tmp_path: Path) -> list[str]:
    return ["--system", "sequitur", "--out", str(tmp_path / "out")]


def _write(path: Path, records: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(one) + "\n" for one in records))


@pytest.mark.parametrize(("more", "says"), [
    (["--limit", "3"], "2 questions of .* were never looked at"),
    (["--limit", "2", "--passages", "1"], "1 documents hold those of 1 questions alone; give more --passages"),
])  # fmt: skip
def test_what_can_not_be_asked_is_told_before_anything_is_loaded(tmp_path: Path, more: list[str], says: str) -> None:
    done = CliRunner().invoke(app, ["peers", *_files(tmp_path), *more])
    with pytest.raises(DataError, match=says):
        raise done.exception
    with pytest.raises(DataError, match="What is to be asked"):
        raise CliRunner().invoke(app, ["peers", *_usual(tmp_path)]).exception
