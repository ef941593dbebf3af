"""Bad input on the command line: one sentence that says what to do, and exit code 2, before anything is loaded."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assistant.__main__ import app, main
from assistant.commands import ask
from assistant.errors import ModelError
from assistant.types import Choices, Parts
from tests.scripted import ScriptedLLM


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs a command that has to fail; gives what it says."""
    monkeypatch.setenv("SEQUITUR_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("SEQUITUR_HUB", "false")

    def run(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["python -m assistant", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        said = capsys.readouterr()
        assert "Traceback" not in said.out + said.err
        assert not (tmp_path / "models").exists(), "it began to load"
        return " ".join(said.err.split())

    return run


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("ask", ""), "The message is empty; type a question first."),
        (("ask", " \x00 "), "The message is empty"),
        (("ask", "x" * 100_000), "at most 20,000 are read at once"),
        (("ask", "Hello", "--fact", ""), "The fact is empty"),
        (("ask", "Hello", "--fact", "x" * 501), "at most 500"),
        (("ask", "Hello", "--strategy", "nope"), "there are: concat, concat_pf"),
        (("ask", "Hello", "--loop", "nope"), "there are: grg"),
        (("ask", "Hello", "--k", "0"), "--k"),
        (("ask", "Hello", "--settings", "/nowhere.toml"), "/nowhere.toml can't be read"),
        (("chat", "--strategy", "nope"), "there are: concat, concat_pf"),
        (("facts", "add", ""), "The fact is empty; write a sentence about yourself."),
        (("facts", "remove", "none"), "There is no such fact"),
        (("facts", "import", "/nowhere.txt"), "/nowhere.txt"),
        (("index", "/nowhere"), "Nothing was changed"),
        (("index", ".", "--library", ".."), "can't name a library"),
        (("index", "--delete", "--library", "nope"), "There is no library 'nope'"),
        (("index", "notes.txt", "--delete"), "use --remove for those"),
        (("models", "fetch", "nope"), "There is no model 'nope'"),
        (("models", "fetch", "[/x]"), "There is no model '[/x]'"),
        (("models", "verify", "nope"), "There is no model 'nope'"),
        (("users", "remove", "nobody"), "There is no user 'nobody'"),
        (("users", "remove", "[/x]"), "There is no user '[/x]'"),
        (("ask", "Hello", "--settings", "/my [v2].toml"), "/my [v2].toml can't be read"),
        (("evaluate", "support", "--pairs", "/nowhere.jsonl"), "/nowhere.jsonl"),
        (("nope",), "No such command 'nope'"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_one_sentence_and_exit_code_2(told, arguments: tuple[str, ...], says: str) -> None:
    assert says in told(*arguments)


def test_an_unknown_setting_is_named(told, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("[retrieve]\nkay = 3\n")
    assert "retrieve.kay" in told("ask", "Hello", "--settings", str(file))


def test_chat_says_why_a_turn_failed_and_goes_on(parts: Parts, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(_: object) -> str:
        raise ModelError("The model [v2] ran out of memory.")

    class Loaded:
        def parts(self, user: str, choices: Choices) -> Parts:
            return replace(parts, llm=ScriptedLLM([broken]))

    monkeypatch.setattr(ask, "ready", lambda _: Loaded())
    lines = "What are lentils rich in?\n" * 2 + "\n"
    said = CliRunner().invoke(app, ["chat", "--data-dir", str(tmp_path)], input=lines, env={"COLUMNS": "200"})
    assert said.exit_code == 0, said.output + repr(said.exception)
    assert said.stderr.count("The model [v2] ran out of memory.") == 2
