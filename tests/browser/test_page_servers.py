"""The Model tab on `python app.py` as a person starts it: a real llama-server is added, answers, and dies.

The tests go on with one another's page: nothing is loaded twice.
"""

from __future__ import annotations

import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.app import App, started
from tests.browser.conftest import tab
from tests.fixtures_models import fetched, sharing_libraries, sharing_models
from tests.servers import (
    KEY,
    Answer,
    Reply,
    Request,
    Running,
    StandIn,
    llama_server,
    lm_studio,
    ollama,
    plain,
    vllm,
)

pytestmark = [pytest.mark.model, pytest.mark.lucene, pytest.mark.timeout(600)]

QUESTION = "Which languages are spoken in Switzerland?"
OWN, SERVED = "smollm2-135m", "served"
SLOW = 240_000  # milliseconds for a turn on a busy machine
SAID = "The languages of Switzerland are German, French, Italian and Romansh."
KINDS = {
    "Ollama": lambda: ollama(says, top={"Yes": 0.9, "No": 0.1}),
    "LM Studio": lambda: lm_studio(says),
    "vLLM": lambda: vllm(says, {"y": 0.9, "n": 0.1}),
    "OpenAI-compatible": lambda: plain(says),
}


def says(_: object) -> str:
    return SAID


@pytest.fixture(scope="module")
def app(smollm_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    fetched("all-MiniLM-L6-v2")
    with started(sharing_libraries(sharing_models(tmp_path_factory.mktemp("data")))) as app:
        yield app


@pytest.fixture(scope="module")
def served(smollm_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of another name than the one that runs in the app."""
    path = tmp_path_factory.mktemp("served") / f"{SERVED}.gguf"
    path.symlink_to(smollm_path)
    return path


@pytest.fixture(scope="module")
def server(served: Path) -> Iterator[Running]:
    with llama_server(served) as running:
        yield running


@pytest.fixture(scope="module")
def page(browser: Browser, app: App) -> Iterator[Page]:
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(app.url, timeout=SLOW)
    expect(page.locator("#loading .loading")).to_have_count(0, timeout=SLOW)
    yield page
    context.close()


def ask(page: Page) -> None:
    before = page.locator("#transcript article").count()
    page.locator("#box").fill(QUESTION)
    page.keyboard.press("Enter")
    expect(page.locator("#transcript article")).to_have_count(before + 1, timeout=SLOW)


def written_by(page: Page, name: str) -> None:
    """The last reply tells this model in its steps, whatever kind of reply it became."""
    turn = page.locator("#transcript article").last
    expect(turn.locator(".reply")).not_to_be_empty(timeout=SLOW)
    turn.locator(".steps summary").click()
    expect(turn.locator(".inside")).to_contain_text(name)
    turn.locator(".steps summary").click()


def test_a_real_server_is_tested_and_added(app: App, page: Page, server: Running) -> None:
    ask(page)
    written_by(page, OWN)
    tab(page, "Model")
    page.locator("#add-server summary").click()
    page.locator("#server-address").fill(server.address)
    page.locator("#server-key").fill(KEY)
    page.get_by_role("button", name="Test").click()
    expect(page.locator("#probed")).to_contain_text(f"llama-server answers with {SERVED}.", timeout=SLOW)
    expect(page.locator("#probed dl")).to_contain_text("1,024 tokens a request")
    page.get_by_role("button", name="Add", exact=True).last.click()
    expect(page.locator("#servers .engine")).to_have_count(1)
    file = app.folder / "models.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert KEY in file.read_text()
    assert KEY not in page.content()


def test_it_answers_the_next_message_and_its_speed_is_told(page: Page) -> None:
    page.locator("#servers").get_by_role("button", name="Use").click()
    expect(page.locator("#notice")).to_contain_text(f"{SERVED} answers from the next message on.", timeout=SLOW)
    ask(page)
    written_by(page, SERVED)
    tab(page, "Sources")
    expect(page.locator("#sources .card", has_text="Switzerland").first).to_be_visible()
    tab(page, "Model")
    expect(page.locator("#models .pace")).to_contain_text("tokens a second in the last")


@contextmanager
def slowed(process: subprocess.Popen[str]) -> Iterator[None]:
    """Lets a process run a seventh of the time: a busy browser must not see its reply's beginning after its end."""
    over = Event()

    def pace() -> None:
        while not over.is_set():
            process.send_signal(signal.SIGSTOP)
            over.wait(0.12)
            process.send_signal(signal.SIGCONT)
            over.wait(0.02)

    thread = Thread(target=pace)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_one_that_dies_while_it_writes_leaves_what_was_written_and_answers_again_once_it_is_back(
    page: Page, server: Running, served: Path
) -> None:
    kept = page.locator("#transcript article").count()
    page.locator("#box").fill("Write a long story about a keeper of a lighthouse.")  # long enough to die in the middle
    with slowed(server.process):
        page.keyboard.press("Enter")
        expect(page.locator("#answering .reply:not(.waiting)")).not_to_be_empty(timeout=SLOW)
        server.process.kill()
        server.process.wait()
    turn = page.locator("#transcript article").last
    expect(turn.get_by_role("alert")).to_contain_text(f"The server at {server.address} broke off its reply")
    expect(turn.locator(".reply")).not_to_be_empty()
    page.reload()
    expect(page.locator("#transcript article")).to_have_count(kept + 1)
    expect(turn.get_by_role("alert")).to_contain_text("broke off its reply")
    with llama_server(served, port=int(server.address.rpartition(":")[2])):
        turn.get_by_role("button", name="Answer again", exact=True).click()
        expect(turn.locator(".versions")).to_have_text("2/2", timeout=SLOW)
        expect(turn.get_by_role("alert")).to_have_count(0)
        written_by(page, SERVED)


def test_one_that_is_down_fails_the_turn_with_a_sentence_and_the_conversation_is_kept(
    page: Page, server: Running
) -> None:
    kept = page.locator("#transcript article").count()
    ask(page)
    turn = page.locator("#transcript article").last
    expect(turn.get_by_role("alert")).to_contain_text(f"No server answers at {server.address}; start it")
    expect(page.locator("#transcript article")).to_have_count(kept + 1)
    tab(page, "Model")
    tab(page, "Sources")
    tab(page, "Model")
    expect(page.locator("#models .engine").first.get_by_role("alert")).to_contain_text("No server answers at")


def test_another_model_answers_the_failed_message_again(page: Page) -> None:
    turn = page.locator("#transcript article").last
    turn.get_by_text("Answer again with…").click()
    turn.get_by_role("group", name="Models").get_by_role("button", name="smollm2-135m").click()
    expect(page.locator("#transcript article").last.get_by_role("alert")).to_have_count(0, timeout=SLOW)
    written_by(page, OWN)
    expect(page.locator("#transcript article").last.locator(".versions")).to_have_text("2/2")


def breaking_off(answer: Answer) -> Answer:
    """The same answer, of which what is streamed breaks off half-way."""

    def cut(request: Request) -> Reply:
        reply = answer(request)
        return Reply(parts=[*reply.parts[: len(reply.parts) // 2], None]) if reply.parts else reply

    return cut


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_of_each_kind_answers_in_this_page_and_is_cited_and_again_once_it_broke_off(
    page: Page, kind: str
) -> None:
    with StandIn(KINDS[kind]()) as there:
        tab(page, "Model")
        page.locator("#add-server summary").click()
        page.locator("#server-address").fill(there.address)
        page.get_by_role("button", name="Test").click()
        expect(page.locator("#probed")).to_contain_text(f"{kind} answers with small", timeout=SLOW)
        page.get_by_role("button", name="Add", exact=True).last.click()
        added = page.locator("#servers .engine", has_text=there.address.rpartition("/")[2])
        added.get_by_role("button", name="Use").click()
        expect(page.locator("#notice")).to_contain_text("answers from the next message on.", timeout=SLOW)
        ask(page)
        turn = page.locator("#transcript article").last
        written_by(page, "small")
        turn.locator(".reply .chip").first.click()
        expect(page.locator("#sources .card.current mark.current")).to_contain_text("Romansh")
        well = dict(there.answers)
        there.answers.update({path: breaking_off(answer) for path, answer in well.items() if "chat" in path})
        kept = page.locator("#transcript article").count()
        ask(page)
        expect(turn.get_by_role("alert")).to_contain_text(f"The server at {there.address} broke off its reply")
        expect(page.locator("#transcript article")).to_have_count(kept + 1)
        there.answers.update(well)
        turn.get_by_role("button", name="Answer again", exact=True).click()
        expect(turn.locator(".versions")).to_have_text("2/2", timeout=SLOW)
        expect(turn.get_by_role("alert")).to_have_count(0)
        written_by(page, "small")
        expect(turn.locator(".reply .chip").first).to_be_visible()
        tab(page, "Model")
        page.once("dialog", lambda dialog: dialog.accept())
        added.get_by_role("button", name="Remove").click()
        expect(added).to_have_count(0)
