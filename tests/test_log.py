"""The log of a page that is up, line by line: a process of its own, in which turns work, fail and break."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from assistant.library.shelves import library_folder
from assistant.settings import load
from assistant.store.database import connect
from assistant.store.users import Logins
from benchmarks.visitor import JOIN, RefusedError, Visitor
from tests.fixtures_models import fetched, sharing_models
from tests.servers import Json, Reply, StandIn, plain

ROOT = Path(__file__).parents[1]
SECONDS = 280.0
SECRET = "zanzibarwalnut"
PASSWORD = f"oats and {SECRET} tea"
# What is given to a page that serves as `python -m assistant serve` does, but for a bug: it breaks at some questions.
SERVE = """
import sys
from assistant import chat
from assistant.commands.exit_status import end_with
from assistant.commands.serve import main

run = chat.flow.run

def broken(turn, parts, stop):
    if "print" in turn.utterance:
        print(turn.utterance, file=sys.stderr)
        print(turn.utterance)
    if "break" in turn.utterance:
        raise ValueError(turn.utterance)
    return run(turn, parts, stop)

chat.flow.run = broken
end_with(main)
"""
SETTINGS = """
log = "json"
[llm]
backend = "server"
server = "{address}"
model = "small"
[relevance]
estimator = "none"
[turn]
support = "trained"
[facts]
suitability = "small"
"""


def says(messages: list[Json]) -> str:
    return f"Oats are a grain, {SECRET}."


def refusing(messages: list[Json]) -> Reply:
    """A server that fails and repeats what it was sent."""
    return Reply({"error": {"message": f"bad prompt: {messages[-1]['content']}"}}, 400)


@contextmanager
def page(folder: Path, address: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A page's address once it is ready, and its process; what it writes goes to `folder / "log"`."""
    settings = folder / "sequitur.toml"
    settings.write_text(SETTINGS.format(address=address))
    arguments = ["--settings", str(settings), "--data-dir", str(folder), "--port", "0"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SEQUITUR_")}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", SERVE, *arguments], cwd=ROOT, stdout=log, stderr=log, env=environment
        )
    try:
        url = ""
        until = time.monotonic() + SECONDS
        while not url or httpx.get(f"{url}readyz").status_code != 200:
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < until
            time.sleep(0.2)
            url = next((word for line in messages(folder) for word in line.split() if word.startswith("http://")), "")
        yield url, process
    finally:
        process.kill()
        process.wait()


def lines(folder: Path) -> list[Json]:
    """The lines of the log; one that is no JSON fails the test."""
    return [json.loads(line) for line in (folder / "log").read_text().splitlines()]


def messages(folder: Path) -> list[str]:
    return [str(line["message"]) for line in lines(folder)]


def test_every_line_is_json_and_holds_nothing_that_a_person_wrote(tmp_path: Path) -> None:
    fetched("all-MiniLM-L6-v2")
    sharing_models(tmp_path)
    with suppress(FileNotFoundError):  # it is built here where it was not before
        shutil.copytree(library_folder("starter", load()), tmp_path / "libraries" / "starter")
    engine = connect(f"sqlite:///{tmp_path / 'sequitur.sqlite3'}")
    Logins(engine).add("ann", PASSWORD)
    engine.dispose()
    with StandIn(plain(says)) as there, page(tmp_path, there.address) as (url, process):
        visitor = Visitor(url)
        with pytest.raises(RefusedError):
            visitor.log_in("ann", f"{PASSWORD} wrong")
        with pytest.raises(RefusedError):
            visitor.log_in(SECRET, PASSWORD)
        visitor.log_in("ann", PASSWORD)
        visitor.send("facts", "store", text=f"I eat {SECRET} every day.")
        visitor.upload(f"{SECRET}.txt", f"The {SECRET} is eaten at noon. Oats are a grain.".encode())
        with pytest.raises(RefusedError):
            visitor.upload(f"{SECRET}.pdf", f"%PDF-1.7 {SECRET}".encode())
        said = visitor.send("composer", "ask", utterance=f"What is oats, print {SECRET}?")
        assert "Oats are a grain" in said.text.replace("<span>", "")
        visitor.send("composer", "ask", utterance=f"Does it break the {SECRET}?")
        usual, chat = there.answers["/v1/chat/completions"], "/v1/chat/completions"
        there.answers[chat] = lambda request: refusing(request.body["messages"])
        visitor.send("composer", "ask", utterance=f"How much protein does {SECRET} hold?")
        there.answers[chat] = usual
        # what Gradio itself refuses, quoting it
        number = visitor.number("files", "upload")
        sent = {"data": [SECRET], "event_data": {}, "fn_index": number, "session_hash": visitor.session}
        assert visitor.client.post(JOIN, json=sent).status_code == 200
        assert any('"success":false' in line.replace(" ", "") for line in visitor.stream(visitor.session))
        visitor.client.post(JOIN, content=f'{{"data": {SECRET}'.encode())
        visitor.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    log = (tmp_path / "log").read_text()
    assert SECRET not in log
    turns = [line for line in lines(tmp_path) if line["message"] == "turn over"]
    assert {"done", "failed"} <= {line["status"] for line in turns}
    assert any(line.get("exception") == "ValueError" for line in lines(tmp_path))
    streams = [str(line["message"]) for line in lines(tmp_path) if line["logger"] == "streams"]
    assert any("characters, left out" in one for one in streams)
    assert "Sequitur ends as soon as the answers being written are done." in messages(tmp_path)


def test_a_traceback_that_is_printed_becomes_places_and_the_kind_of_the_error() -> None:
    code = f"""
from threading import Thread
from assistant.commands.exit_status import end_with
from assistant.commands.logs import write_logs

def main():
    write_logs("json")
    thread = Thread(target=lambda: int("{SECRET}"))
    thread.start()
    thread.join()

end_with(main)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    told = [json.loads(line)["message"] for line in said.stderr.splitlines()]
    assert any(one.startswith('File "') and ", line " in one for one in told)
    assert "ValueError" in told
    assert SECRET not in said.stdout + said.stderr


def test_why_the_page_does_not_start_is_a_line_of_the_log(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SEQUITUR_")}
    command = [
        sys.executable,
        "-m",
        "assistant",
        "serve",
        "--host",
        "0.0.0.0",
        "--port",
        "0",
        "--data-dir",
        str(tmp_path),
    ]
    environment["SEQUITUR_LOG"] = "json"
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 2
    told = [json.loads(line)["message"] for line in done.stderr.splitlines()]
    assert any(one.startswith("Error: ") and "users add NAME" in one for one in told)
