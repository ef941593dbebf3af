"""What watches over a page: health, readiness, figures, logs, and how it ends."""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event
from time import monotonic, sleep

import httpx
import pytest

from assistant.commands.logs import JsonLines
from assistant.errors import EndingError, ModelError
from assistant.protocols import Parts
from assistant.runs import SWEEP_SECONDS, Runs
from assistant.settings import LLMSettings, Settings, WebSettings
from assistant.store.conversations import Conversations
from assistant.store.database import connect
from assistant.store.shared import OUTDATED
from assistant.store.tokens import AccessTokens
from assistant.store.users import Logins, hash_password
from assistant.types import Answer, Choices, Completion, Message, Options, Passage, Tokens, Turn
from assistant.web.health import metrics_route
from assistant.web.metrics import Metrics
from assistant.web.server import Server, serve
from benchmarks.light import light_settings, served
from benchmarks.visitor import RefusedError, Visitor
from tests.browser.fake import SENTENCES, Loaded, Script, house
from tests.fixtures_postgres import newer
from tests.scripted import ScriptedLLM
from tests.sources import Given

SECRET = "my allergy to walnuts"
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def loading() -> Loaded:
    return Loaded()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, loading: Loaded) -> Iterator[Server]:
    server = serve(*house(tmp_path_factory.mktemp("watched"), Script(), loading))
    yield server
    server.close()


def asked(server: Server, path: str, **headers: str) -> httpx.Response:
    return httpx.get(server.url.rstrip("/") + path, headers=headers, timeout=20)


def value(text: str, name: str) -> float:
    """The figure of this name (with its labels) in Prometheus's text format."""
    return next(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.rsplit(" ", 1)[0] == name)


def test_it_lives_while_it_loads_and_is_ready_after_that(server: Server, loading: Loaded) -> None:
    for ready, error, status, said in (
        (False, "", 503, "loading"),
        (False, "No.", 503, "failed"),
        (True, "", 200, "ready"),
    ):
        loading.ready, loading.error = ready, error
        told = asked(server, "/readyz")
        assert (told.status_code, told.text) == (status, said)
        assert asked(server, "/healthz").status_code == 200


def test_a_turn_of_the_page_shows_in_the_figures_and_nothing_of_what_it_says(server: Server) -> None:
    chat = server.house.chat
    conversation = server.house.conversations.new("me").id
    *_, turn = chat.ask("me", conversation, SECRET, Choices(), Event())
    told = asked(server, "/metrics")
    assert told.headers["content-type"].startswith("text/plain")
    assert value(told.text, 'sequitur_turns_total{status="done"}') == 1
    assert value(told.text, "sequitur_tokens_read_total") == turn.tokens.prompt > 0
    assert value(told.text, "sequitur_first_source_seconds_count") == 1
    assert value(told.text, "sequitur_first_word_seconds_count") == 1
    assert value(told.text, "sequitur_turns_running") == 0
    assert "walnuts" not in told.text
    assert '"me"' not in told.text


@pytest.mark.parametrize(
    ("token", "shown", "logins", "client", "status"),
    [
        ("", "", False, "127.0.0.1", 200),
        ("", "", False, "192.0.2.7", 403),
        ("", "", True, "127.0.0.1", 403),
        ("open", "Bearer open", True, "192.0.2.7", 200),
        ("open", "Bearer shut", True, "127.0.0.1", 403),
        ("open", "", False, "127.0.0.1", 403),
    ],
)
def test_who_reads_the_figures(token: str, shown: str, logins: bool, client: str, status: int, tmp_path: Path) -> None:
    from starlette.applications import Starlette
    from starlette.testclient import TestClient

    known = Logins(
        connect(f"sqlite:///{tmp_path / 'users.sqlite3'}"), {"ann": hash_password("oats ann tea")} if logins else {}
    )
    app = Starlette(routes=[metrics_route(Metrics(), WebSettings(metrics_token=token), known)])
    with TestClient(app, client=(client, 5000)) as asking:
        assert asking.get("/metrics", headers={"Authorization": shown} if shown else {}).status_code == status


class TestMetrics:
    def test_a_second_side_is_charged_for_its_own_tokens_alone(self) -> None:
        metrics, spent = Metrics(), {"draft": Tokens(200, 40)}
        begun = Turn("?", spent=spent)
        done = replace(begun, spent={**spent, "answer": Tokens(30, 5)}, status="done")
        assert list(metrics.watch("me", iter([begun, done]))) == [begun, done]
        assert value(metrics.text().decode(), "sequitur_tokens_read_total") == 30

    def test_what_fails_is_told_by_kind_and_step(self) -> None:
        def failing() -> Iterator[Turn]:
            yield Turn("?", step="answer")
            raise ModelError(SECRET)

        metrics = Metrics()
        with pytest.raises(ModelError):
            list(metrics.watch("me", failing()))
        list(metrics.watch("me", iter([Turn("?", step="passages"), Turn("?", status="failed", error=SECRET)])))
        text = metrics.text().decode()
        assert value(text, 'sequitur_errors_total{kind="ModelError",step="answer"}') == 1
        assert value(text, 'sequitur_errors_total{kind="SequiturError",step="passages"}') == 1
        assert SECRET not in text

    def test_one_that_is_left_counts_as_stopped(self) -> None:
        metrics = Metrics()
        turns = metrics.watch("me", iter([Turn("?", passages=(Passage("1", "", "x"),)), Turn("?", answer=Answer("x"))]))
        next(turns)
        assert value(metrics.text().decode(), "sequitur_turns_running") == 1
        turns.close()
        assert value(metrics.text().decode(), 'sequitur_turns_total{status="stopped"}') == 1

    def test_the_queue_is_what_is_at_the_model_beyond_its_seats(self, parts: Parts) -> None:
        metrics, seen = Metrics(), []
        llm = ScriptedLLM(["one", "two", "three"])
        settings = Settings(llm=LLMSettings(slots=1))
        source = metrics.source(Given(replace(parts, llm=llm)), settings)
        prompt = (Message("user", "Hello"),)
        with source.lent("me", Choices()) as lent:
            first = lent.llm.stream(prompt, Options(), Event())
            second = lent.llm.stream(prompt, Options(), Event())
            assert isinstance(next(first), Completion)
            next(second)
            seen.append(value(metrics.text().decode(), "sequitur_model_queue"))
            list(first), list(second)
        seen.append(value(metrics.text().decode(), "sequitur_model_prompts"))
        assert seen == [1, 0]


class TestLogs:
    def line(self, logger: str, message: str, *given: object, error: Exception | None = None) -> dict[str, object]:
        info = (type(error), error, error.__traceback__) if error else None
        record = logging.LogRecord(logger, logging.ERROR, "f.py", 1, message, given, info)
        record.figures = {"tokens_read": 7}
        return dict(json.loads(JsonLines().format(record)))

    def test_an_exception_is_told_by_kind_and_place_and_not_in_its_words(self) -> None:
        try:
            int(SECRET)
        except ValueError as error:
            line = self.line("assistant.chat", "turn %s failed", "abc", error=error)
        assert (line["message"], line["exception"], line["tokens_read"]) == ("turn abc failed", "ValueError", 7)
        assert "test_health.py" in str(line["places"])
        assert SECRET not in json.dumps(line)

    def test_what_a_library_fills_in_is_left_out(self) -> None:
        assert self.line("gradio.queueing", "event %s", SECRET)["message"] == "event %s"


def test_nothing_begins_while_it_ends_and_what_runs_may_go_on() -> None:
    runs, go = Runs(), Event()

    def growing(_stop: Event) -> Iterator[Turn]:
        yield Turn("?")
        go.wait(5)
        yield Turn("?", status="done")

    run = runs.start("me", "c", growing)
    assert not runs.drain(0.01)
    assert runs.ending
    with pytest.raises(EndingError, match="ask again in a minute"):
        runs.start("ann", "d", growing)
    go.set()
    assert runs.drain(5)
    assert run.turn.status == "done"


@contextmanager
def page(folder: Path, pause: float, grace: float = 30.0) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a page whose scripted model takes `pause` seconds a word, and its process."""
    options = {"--data-dir": folder, "--port": 0, "--pause": pause, "--grace": grace}
    command = [sys.executable, "-m", "tests.browser.fake", *(str(one) for pair in options.items() for one in pair)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.kill()


def test_a_process_that_is_told_to_end_answers_what_was_asked_first(tmp_path: Path) -> None:
    with page(tmp_path, pause=0.03) as (url, process):
        token = AccessTokens(connect(f"sqlite:///{tmp_path / 'sequitur.sqlite3'}")).make("me")

        def ask() -> httpx.Response:
            body = {"model": "sequitur", "messages": [{"role": "user", "content": "What is a good diet?"}]}
            headers = {"Authorization": f"Bearer {token}"}
            return httpx.post(f"{url}v1/chat/completions", json=body, headers=headers, timeout=30)

        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(ask)
            while "sequitur_turns_running 1.0" not in httpx.get(f"{url}metrics").text:
                assert not first.done()
            process.send_signal(signal.SIGTERM)
            while httpx.get(f"{url}readyz").text != "ending":
                assert process.poll() is None
            refused = ask()
            assert refused.status_code == 503
            assert "ask again in a minute" in refused.text
            assert first.result().status_code == 200
            assert "Lentils" in first.result().text
        assert process.wait(30) == 0


def until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    end = monotonic() + seconds
    while not holds():
        assert monotonic() < end
        sleep(0.05)


def test_a_page_whose_database_a_newer_version_has_changed_answers_no_more_and_loses_nothing(
    database_url: str, tmp_path: Path
) -> None:
    """In a process of its own, as a worker that is left beside those of the newer version."""
    engine = connect(database_url)
    store, token = Conversations(engine), AccessTokens(engine).make("me")
    with served(light_settings(tmp_path, database=database_url), 0.2) as page, ThreadPoolExecutor(1) as beside:
        url = page.url.rstrip("/")
        asked = beside.submit(Visitor(url).send, "composer", "ask", utterance="How rich in protein are lentils?")
        until(lambda: any(one.turns for one in store.list("me")))
        with newer(engine):
            with pytest.raises(RefusedError, match="A newer version of Sequitur uses this database now"):
                Visitor(url).send("composer", "ask", utterance="And beans?")
            body = {"model": "sequitur", "messages": [{"role": "user", "content": "And beans?"}]}
            told = httpx.post(f"{url}/v1/chat/completions", json=body, headers={"Authorization": f"Bearer {token}"})
            assert (told.status_code, told.json()["error"]["message"]) == (503, OUTDATED)
            until(lambda: httpx.get(f"{url}/readyz").text == "outdated", 3 * SWEEP_SECONDS)
            assert [httpx.get(url + path).status_code for path in ("/readyz", "/healthz")] == [503, 200]
            asked.result()
    [talk] = store.list("me")
    assert [turn.status for turn in store.get("me", talk.id).turns] == ["done"]


@contextmanager
def answering(folder: Path, grace: float) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A page that is writing an answer which would take it a minute; the first words of it are there."""
    begun = Event()

    def watch(visitor: Visitor) -> None:
        with suppress(httpx.HTTPError):  # the page goes away under it
            for line in visitor.stream(visitor.session):
                if "eggs give" in line.replace("<span>", "").replace("</span>", ""):
                    begun.set()

    with page(folder, pause=0.5, grace=grace) as (url, process), ThreadPoolExecutor(1) as pool:
        visitor = Visitor(url)
        visitor.join("composer", "ask", visitor.session, values={"utterance": "What is a good diet?"})
        watching = pool.submit(watch, visitor)
        assert begun.wait(120)
        yield url, process
        watching.result(30)
        visitor.close()


def kept(folder: Path) -> Turn:
    """The only turn that is kept of this computer's user."""
    conversations = Conversations(connect(f"sqlite:///{folder / 'sequitur.sqlite3'}"))
    [one] = conversations.list("me")
    [turn] = conversations.get("me", one.id).turns
    return turn


WHOLE = " ".join(text for text, *_ in SENTENCES)


def test_an_answer_that_takes_longer_than_it_may_is_kept_as_far_as_it_was_written(tmp_path: Path) -> None:
    with answering(tmp_path, grace=5.0) as (url, process):
        began = monotonic()
        process.send_signal(signal.SIGTERM)
        while httpx.get(f"{url}readyz").text != "ending":
            assert monotonic() < began + 5
        assert process.wait(60) == 0
        assert monotonic() - began >= 5
    turn = kept(tmp_path)
    assert turn.status == "stopped"
    assert turn.answer
    # something came in the seconds that it had left
    assert WHOLE.startswith(turn.answer.text)
    assert 2 <= len(turn.answer.text.split()) < len(WHOLE.split()) / 2


def test_a_second_sigterm_ends_it_at_once_and_what_was_written_is_kept(tmp_path: Path) -> None:
    with answering(tmp_path, grace=300.0) as (url, process):
        process.send_signal(signal.SIGTERM)
        while httpx.get(f"{url}readyz").text != "ending":
            assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(3)
        began = monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert monotonic() - began < 30
    turn = kept(tmp_path)
    assert turn.status == "stopped"
    assert turn.answer
    assert turn.answer.text
    assert WHOLE.startswith(turn.answer.text)
