"""`python app.py` as a person starts it, from an empty data folder, on a real (small) model, Lucene and SQLite.

The tests go on with one another's page: nothing is loaded twice.
"""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import openai
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from playwright.sync_api import Browser, Page, expect

from assistant.api.replies import MODEL
from tests.browser.app import ROOT, App, small, started
from tests.browser.conftest import tab
from tests.browser.pulse import Pulse, control
from tests.fixtures_models import fetched, sharing_models

pytestmark = [pytest.mark.model, pytest.mark.lucene, pytest.mark.timeout(600)]

QUESTION = "Which languages are spoken in Switzerland?"
SLOW = 240_000  # milliseconds for a turn or an index on a busy machine


@pytest.fixture(scope="module")
def app(smollm_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    fetched("all-MiniLM-L6-v2")
    with started(sharing_models(tmp_path_factory.mktemp("data"))) as app:
        yield app


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(reduced_motion="reduce")
    yield context.new_page()
    context.close()


def ask(page: Page, text: str) -> None:
    before = page.locator("#transcript article").count()
    page.locator("#box").fill(text)
    page.keyboard.press("Enter")
    expect(page.locator("#transcript article")).to_have_count(before + 1, timeout=SLOW)


def test_the_page_answers_while_everything_loads_and_a_question_waits_in_it(
    app: App, page: Page, tmp_path: Path
) -> None:
    assert app.seconds <= 60
    pulse = Pulse(f"{app.url.rstrip('/')}/gradio_api/app_id")
    with control(tmp_path) as other:
        for one in (pulse, other):
            one.start()
        page.goto(app.url, timeout=SLOW)
        page.evaluate("""() => new MutationObserver(() => {
            window.wasDown ||= document.body.classList.contains("down");
        }).observe(document.body, {attributeFilter: ["class"]})""")
        page.locator("#box").fill(QUESTION)
        page.keyboard.press("Enter")
        expect(page.locator("#answering .said, #transcript .said")).to_have_text(QUESTION)
        expect(page.locator("#loading .stage").first).to_be_visible()
        expect(page.locator("#answering .doing")).to_have_text("Waiting until everything is ready")
        expect(page.locator("#answering .wait")).not_to_be_empty(timeout=SLOW)
        expect(page.locator("#loading .loading")).to_have_count(0, timeout=SLOW)
        for one in (pulse, other):
            one.stop()
    assert len(pulse.seconds) > 10, "loading was over before anything could be measured"
    assert max(pulse.seconds) < 1.0 * max(other.seconds) / min(other.seconds)
    assert not page.evaluate("window.wasDown")
    expect(page.locator("#transcript article .reply")).not_to_be_empty(timeout=SLOW)
    expect(page.locator("#notice").get_by_role("alert")).to_have_count(0)


def test_what_waited_is_answered_from_the_library(page: Page) -> None:
    turn = page.locator("#transcript article").last
    expect(turn.locator(".steps summary")).to_have_text(re.compile(r"^Read \d+ passages, used 0 facts, [\d.]+ s$"))
    expect(page.locator("#sources .card", has_text="Switzerland").first).to_be_visible()
    expect(turn.locator(".reply")).not_to_be_empty()
    turn.locator(".steps summary").click()
    expect(turn.locator(".inside")).to_contain_text("smollm2")


def test_two_strategies_answer_one_turn_and_one_is_kept(page: Page) -> None:
    page.get_by_text("Answer again with…").last.click()
    ways = page.locator("#transcript article").last.locator(".ways")
    ways.get_by_label("The first way").select_option("concat")
    ways.get_by_label("The second way").select_option("post_fusion")
    ways.get_by_role("button", name="Compare").click()
    expect(page.locator(".keep")).to_have_count(2, timeout=SLOW)
    expect(page.locator(".side .ballots")).to_contain_text(re.compile(r"1 of [2-4] votes"))
    for costs in page.locator(".side .costs").all():
        expect(costs).to_contain_text(re.compile(r"Time\s*[\d.]+ s\s*Tokens read\s*[1-9]"))
    page.locator(".keep").last.click()
    expect(page.locator(".comparison")).to_have_count(0)
    expect(page.locator("#transcript .versions")).to_have_text("3/3")
    expect(page.locator("#transcript .event").last).to_contain_text("Each passage was asked alone:")


def test_small_talk_needs_no_sources(page: Page) -> None:
    ask(page, "Hello, how are you?")
    expect(page.locator("#sources")).to_contain_text("This reply needed no sources.")


def test_what_was_said_of_oneself_is_offered_for_remembering(page: Page) -> None:
    ask(page, "I've just become vegan.")
    page.locator("#transcript article").last.locator(".offer").first.click()
    tab(page, "My facts")
    expect(page.locator("#facts .fact")).to_contain_text("vegan")


def test_an_own_document_is_found(page: Page, tmp_path: Path) -> None:
    note, broken = tmp_path / "shed.txt", tmp_path / "broken.pdf"
    note.write_text("The key of the garden shed hangs behind the kitchen door, on the brass hook. " * 3)
    broken.write_bytes(b"not a pdf")
    tab(page, "Documents")
    page.locator("#files input[type=file]").set_input_files([note, broken])
    expect(page.locator("#documents .document")).to_have_count(1, timeout=SLOW)
    expect(page.locator("#documents").get_by_role("alert")).to_contain_text("broken.pdf")
    ask(page, "Where does the key of the garden shed hang?")
    tab(page, "Sources")
    expect(page.locator("#sources")).to_contain_text("brass hook")


def test_a_folder_is_followed_while_the_page_runs(page: Page, tmp_path: Path) -> None:
    (tmp_path / "cellar.txt").write_text("The wine in the cellar of Quill House is kept at twelve degrees. " * 3)
    tab(page, "Documents")
    page.locator("#follow summary").click()
    page.get_by_label("Folder on this computer").fill(str(tmp_path))
    page.get_by_role("button", name="Follow", exact=True).click()
    listed = page.locator("#documents .document")
    expect(listed.filter(has_text="cellar.txt")).to_have_count(1, timeout=SLOW)
    (tmp_path / "attic.txt").write_text("The attic of Quill House holds the skis and the winter tyres. " * 3)
    (tmp_path / "cellar.txt").unlink()
    expect(listed.filter(has_text="attic.txt")).to_have_count(1, timeout=SLOW)
    expect(listed.filter(has_text="cellar.txt")).to_have_count(0, timeout=SLOW)
    ask(page, "What does the attic of Quill House hold?")
    tab(page, "Sources")
    expect(page.locator("#sources")).to_contain_text("winter tyres")
    tab(page, "Documents")
    page.get_by_label("Folder on this computer").fill("")
    page.get_by_role("button", name="Follow", exact=True).click()
    expect(page.locator("#follow summary")).to_have_text("Follow a folder")


def test_a_collection_is_asked_by_its_name_and_nothing_else_is(page: Page) -> None:
    page.get_by_label("Name of a new collection").fill("shed")
    page.get_by_role("button", name="Make", exact=True).click()
    page.get_by_label("Document for shed").select_option(label="shed.txt")
    page.get_by_role("button", name="Put in").click()
    expect(page.get_by_role("button", name="Take shed.txt out of shed")).to_be_visible()
    ask(page, "@shed Where does the key of the garden shed hang?")
    tab(page, "Sources")
    expect(page.locator("#sources .card")).to_have_count(1, timeout=SLOW)
    expect(page.locator("#sources .card")).to_contain_text("brass hook")
    ask(page, "@all What does the attic of Quill House hold?")
    expect(page.locator("#sources")).to_contain_text("winter tyres")


def test_a_program_with_a_token_is_answered_with_passages_and_citations(app: App) -> None:
    command = [sys.executable, "-m", "assistant", "users", "token", "me"]
    made = subprocess.run(command, cwd=ROOT, env=small(app.folder), capture_output=True, text=True, check=True)
    token = made.stdout.strip()
    client = openai.OpenAI(base_url=f"{app.url.rstrip('/')}/v1", api_key=token, max_retries=0, timeout=SLOW / 1000)
    said = [{"role": "user", "content": QUESTION}]
    reply = client.chat.completions.create(model=MODEL, messages=said)
    grounds = reply.model_extra["sequitur"]
    texts = {passage["id"]: passage["text"] for passage in grounds["passages"]}
    assert any("Switzerland" in text for text in texts.values())
    assert grounds["citations"]
    for one in grounds["citations"]:
        assert texts[one["passage_id"]][one["start"] : one["end"]] == one["quote"]


def test_a_program_that_speaks_mcp_is_answered_with_sources(app: App, tmp_path: Path) -> None:
    started = StdioServerParameters(
        command=sys.executable, args=["-m", "assistant", "mcp"], cwd=str(ROOT), env=small(app.folder)
    )

    async def asked() -> str:
        with (tmp_path / "log").open("w") as errors:
            async with Client(stdio_client(started, errlog=errors)) as client:
                [content] = (await client.call_tool("ask", {"question": QUESTION})).content
                return content.text

    with ThreadPoolExecutor(1) as pool:  # the browser keeps a loop running in this thread
        reply = pool.submit(asyncio.run, asked()).result()
    assert "Sources:\n[1]" in reply


def test_stopping_is_quick(page: Page) -> None:
    page.locator("#box").fill("What is a good diet for somebody who studies all day?")
    page.keyboard.press("Enter")
    expect(page.locator("#sources")).to_contain_text("studies all day", timeout=SLOW)
    page.get_by_role("button", name="Stop", exact=True).click()
    began = time.perf_counter()
    expect(page.locator("#transcript .halted")).to_be_visible()
    assert time.perf_counter() - began < 8


def test_an_index_that_is_gone_is_told_and_nothing_is_lost(app: App, page: Page) -> None:
    kept = page.locator("#transcript article").count()
    for commit in (app.folder / "libraries" / "starter").glob("segments_*"):
        commit.unlink()
    ask(page, "What is a good diet for runners?")
    expect(page.locator("#transcript article").last).to_contain_text("There is no complete index")
    page.reload()
    expect(page.locator("#transcript article")).to_have_count(kept + 1)
    expect(page.locator("#transcript .said").last).to_contain_text("runners")


def test_ctrl_c_ends_it(app: App) -> None:
    app.process.send_signal(signal.SIGINT)
    assert app.process.wait(30) == 0
