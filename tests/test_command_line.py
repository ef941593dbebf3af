"""`ask` and `chat`; and bad input: one sentence that says what to do, and exit code 2, before anything is loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from assistant.__main__ import COMMANDS, app, load, main
from assistant.commands import ask
from assistant.commands.common import print_table
from assistant.errors import ModelError, SequiturError
from assistant.library.collections import make, put
from assistant.library.index import add_documents, list_documents
from assistant.library.shelves import own_library
from assistant.protocols import Parts
from assistant.settings import Settings
from assistant.types import Answer, OmittedText, Turn
from tests.scripted import ScriptedLLM
from tests.sources import Given

Run = Callable[..., tuple[Result, ScriptedLLM]]


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
        (("ask", "Hello", "--library", "nope"), "There is no complete index in"),
        (("ask", "Hello", "--settings", "/nowhere.toml"), "/nowhere.toml can't be read"),
        (("chat", "--strategy", "nope"), "there are: concat, concat_pf"),
        (("facts", "add", ""), "The fact is empty; write a sentence about yourself."),
        (("facts", "remove", "none"), "There is no such fact"),
        (("facts", "import", "/nowhere.txt"), "/nowhere.txt"),
        (("facts", "list", "--data-dir", ""), "it is empty; name a folder"),
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


IKAT = ("ikat", "--run-name", "ours", "--out", "{folder}/run", "--topics")
TRAIN = ("train", "relevance", "--out", "{folder}/trained", "--corpus", "{broken}", "--questions", "{broken}")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("digest", "nope"), "There is no document 'nope' here; python -m assistant index --list shows"),
        (("digest", "nope", "--task", "nope"), "Invalid value for '--task'"),
        (("digest", "nope", "--library", ".."), "can't name a library"),
        (("digest", "nope", "--settings", "{broken}"), "is not valid TOML"),
        (("search", ""), "Type the words to search for."),
        (("search", "oats"), "There is nothing to search yet; add documents"),
        (("search", "oats", "--k", "0"), "Invalid value for '--k'"),
        (("search", "oats", "--settings", "{broken}"), "is not valid TOML"),
        (("serve", "--settings", "{folder}/loop.toml"), "'nope' is not one of the loops; there are: grg"),
        (("ikat-index", "{broken}", "--passages", "{folder}/p", "--out", "{broken}"), "can't be written to"),
        (("mcp", "--settings", "/nowhere.toml"), "/nowhere.toml can't be read"),
        (("mcp", "--settings", "{broken}"), "is not valid TOML"),
        (("mcp", "--data-dir", "{broken}"), "can't be made (File exists); choose another"),
        (("mcp", "--data-dir", "{folder}/damaged"), "is damaged or not a database; move it away"),
        (("mcp", "--backend", "nope"), "Invalid value for '--backend'"),
        (("reproduce", "nope"), "'nope' is no table; there are:"),
        (("reproduce", "relevance", "--data", "/nowhere"), "in the folder of --data"),
        (("reproduce", "--checkout", "/nowhere"), "in a checkout of it"),
        (("reproduce", "--checkout", "{folder}"), "tables.toml is broken"),
        ((*IKAT, "/nowhere.json"), "The topics /nowhere.json can't be read"),
        ((*IKAT, "{broken}"), "are not valid JSON"),
        ((*IKAT, "{broken}", "--depth", "1"), "Invalid value for '--depth'"),
        ((*TRAIN[:-1], "/nowhere.jsonl"), "The file /nowhere.jsonl can't be read"),
        (TRAIN, "broken.json, line 1, is not valid JSON"),
        ((*TRAIN, "--epochs", "0"), "Invalid value for '--epochs'"),
        ((*TRAIN, "--questions", "{broken}"), "give one --questions for each --corpus"),
        (("train", "pack", "--model", "/nowhere", "--out", "{folder}/packed"), "holds no weights that can be packed"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_missing_and_broken_files_and_impossible_numbers_are_told(
    told, tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    broken, tables = tmp_path / "broken.json", tmp_path / "docs/results/tables.toml"
    for file in (broken, tables, tmp_path / "damaged/sequitur.sqlite3"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text('{"id": 1\n' * 500)
    (tmp_path / "loop.toml").write_text('[turn]\nloop = "nope"\n')
    assert says in told(*(word.format(broken=broken, folder=tmp_path) for word in arguments))


def test_a_table_cuts_nothing_off(capsys: pytest.CaptureFixture[str]) -> None:
    fact = "".join(f"私は{number}番目の趣味が好きです" for number in range(40))  # no space to break a line at
    print_table(("id", "fact"), [("1", fact)])
    assert fact in "".join(capsys.readouterr().out.split())


def test_facts_are_listed_as_json_with_their_ids(tmp_path: Path) -> None:
    def typed(*arguments: str) -> str:
        return CliRunner().invoke(app, ["facts", *arguments, "--data-dir", str(tmp_path)]).stdout

    id_ = typed("add", "I'm vegan.").strip()
    assert [fact["id"] for fact in json.loads(typed("list", "--json"))] == [id_]


def test_an_unknown_setting_is_named(told, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text("[retrieve]\nkay = 3\n")
    assert "retrieve.kay" in told("ask", "Hello", "--settings", str(file))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_summarises_a_command_as_the_command_does(name: str) -> None:
    assert " ".join(load(name).get_short_help_str(limit=200).split()) == COMMANDS[name][1]


def test_benchmarks_are_told_to_come_with_the_source(tmp_path: Path) -> None:
    root = Path(__file__).parents[1]
    for name in ("assistant", "ptkb", "prompts"):
        (tmp_path / name).symlink_to(root / name)
    command = [sys.executable, "-m", "assistant", "bench", "turn"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: The benchmarks come with Sequitur's source alone:")


@pytest.fixture
def run(parts: Parts, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs a command with a model that gives these replies; gives what came of it, and the model."""

    def run(*arguments: str, replies: Sequence[object], lines: str = "") -> tuple[Result, ScriptedLLM]:
        llm = ScriptedLLM(list(replies))
        monkeypatch.setattr(ask, "load_with_bars", lambda _: Given(replace(parts, llm=llm)))
        words = [*arguments, "--data-dir", str(tmp_path)]
        return CliRunner().invoke(app, words, input=lines, env={"COLUMNS": "200"}), llm

    return run


def broken(_: object) -> str:
    raise ModelError("The model [v2] ran out of memory.")


def test_ask_prints_the_answer_and_the_sentences_behind_it(run: Run) -> None:
    replies = ["Lentils hold protein.", "Lentils are rich in protein. They hold 99 grams of iron."]
    said, _ = run("ask", "What are lentils rich in?", replies=replies)
    assert said.exit_code == 0, said.output + repr(said.exception)
    assert "Lentils are rich in protein. [1] They hold 99 grams of iron." in said.stdout
    assert "[1] Lentils: Lentils are rich in protein." in said.stdout
    assert "Not found in the sources: They hold 99 grams of iron." in said.stdout
    assert "Read 3 passages, used 0 facts" in said.stdout


def test_what_was_left_out_is_named_with_the_fact(capsys: pytest.CaptureFixture[str]) -> None:
    omitted = OmittedText("peanut butter [smooth]", "I'm allergic to peanuts.")
    ask.show_sources(Turn("What is a good snack?", answer=Answer("Oats."), left_out=(omitted,)))
    said = " ".join(capsys.readouterr().out.split())
    assert "Left out, since you told me “I'm allergic to peanuts.”: peanut butter [smooth]" in said


def test_a_collection_that_is_not_there_is_told_before_anything_loads(run: Run) -> None:
    said, llm = run("ask", "What are lentils?", "--collection", "food", replies=["Lentils."])
    assert "There is no collection '@food': you have none yet" in str(said.exception)
    assert llm.replies == ["Lentils."]
    said, _ = run("ask", "What are lentils?", "--collection", "food", "--library", "starter", replies=[])
    assert "not both" in str(said.exception)


def test_ask_answers_from_a_collection(run: Run, settings: Settings) -> None:
    library = own_library("me")
    (file := settings.data_dir / "oats.md").write_text("Oats are a cereal.")
    add_documents(library, [file], settings)
    [document] = list_documents(library, settings)
    make("me", "food", settings)
    put("me", "food", document.id, settings)
    replies = ["Lentils hold protein.", "Lentils are rich in protein."]
    said, _ = run("ask", "What are lentils rich in?", "--json", "--collection", "food", replies=replies)
    assert said.exit_code == 0, repr(said.exception)
    assert json.loads(said.stdout)["choices"]["library"] == "@food"
    said, _ = run("ask", "@food What are lentils rich in?", "--json", replies=replies)
    assert json.loads(said.stdout)["choices"]["library"] == "@food"
    assert json.loads(said.stdout)["utterance"] == "What are lentils rich in?"


def test_ask_prints_what_happened_in_the_turn(run: Run) -> None:
    said, _ = run("ask", "Which drink holds no lactose?", replies=["Oat drink.", *["unknown"] * 5])
    assert "The passages together gave no answer, so each was asked alone: none of them gave an answer." in " ".join(
        said.stdout.split()
    )


def test_ask_says_what_is_not_from_the_library_unless_it_is_told_not_to(run: Run) -> None:
    question, replies = ("ask", "Which drink holds no lactose?"), ["A draft.", *["unknown"] * 4, "Oat drink."]
    said, _ = run(*question, replies=replies)
    assert "Not from your library" in said.stdout
    assert "Oat drink." in said.stdout
    said, _ = run(*question, "--if-unanswerable", "refuse", replies=replies)
    assert "The library doesn't hold an answer to this." in said.stdout
    assert "Not from your library" not in said.stdout


def test_ask_prints_the_turn_as_json(run: Run) -> None:
    replies = ["Which drink is oat drink?", "Oat drink.", "Oat drink holds no lactose."]
    question = ("ask", replies[0], "--fact", "Oat drink is my drink", "--k", "2", "--json")
    said, llm = run(*question, replies=replies)
    turn = json.loads(said.stdout)
    assert (turn["status"], turn["answer"]["text"]) == ("done", "Oat drink holds no lactose. [1]")
    assert [fact["used"] for fact in turn["facts"]] == [True]
    assert len(turn["passages"]) == 2
    assert "Oat drink is my drink" in llm.prompts[-1][-1].content


def test_ask_fails_with_the_sentence_of_its_turn(run: Run) -> None:
    said, _ = run("ask", "What are lentils rich in?", replies=[broken])
    assert isinstance(said.exception, SequiturError)
    assert str(said.exception) == "The model [v2] ran out of memory."


def test_chat_knows_what_was_said_before(run: Run) -> None:
    first = ["Lentils hold protein.", "Lentils are rich in protein."]
    second = ["How much protein do lentils hold?", "18 grams.", "A cup of cooked lentils holds 18 grams of protein."]
    lines = "What are lentils rich in?\nHow much of it do they hold?\n\n"
    said, llm = run("chat", replies=[*first, *second], lines=lines)
    assert said.exit_code == 0, said.output + repr(said.exception)
    assert "A cup of cooked lentils holds 18 grams of protein. [1]" in said.stdout
    assert "What are lentils rich in?" in "".join(message.content for message in llm.prompts[2])


def test_chat_says_why_a_turn_failed_and_goes_on(run: Run) -> None:
    said, _ = run("chat", replies=[broken, broken], lines="What are lentils rich in?\n" * 2 + "\n")
    assert said.exit_code == 0, said.output + repr(said.exception)
    assert said.stderr.count("The model [v2] ran out of memory.") == 2
