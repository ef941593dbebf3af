"""What survives: a reload, a closed tab, a second tab, a server that goes and comes back."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from sqlalchemy import Engine, event

from assistant.store.database import connect
from tests.browser import fake
from tests.browser.conftest import Site, opened, site_in, tab

ROOT = Path(__file__).parents[2]
DIET = "What is a good diet?"


def test_a_reload_shows_the_same_conversation(page: Page, ask) -> None:
    ask(page, DIET)
    page.reload()
    expect(page.locator("#transcript .reply")).to_contain_text("Hard cheese")
    expect(page.locator("#sources .card")).to_have_count(4)


def test_a_half_typed_message_survives_a_reload(page: Page) -> None:
    page.locator("#box").fill("half a thou")
    page.reload()
    expect(page.locator("#box")).to_have_value("half a thou")


def test_a_half_typed_message_of_several_lines_has_room_after_a_reload(page: Page) -> None:
    page.locator("#box").fill("\n".join("abcde"))
    high = page.locator("#box").bounding_box()["height"]
    page.reload()
    expect(page.locator("#box")).to_have_value("a\nb\nc\nd\ne")
    assert page.locator("#box").bounding_box()["height"] == high


def test_more_tabs_than_a_browser_has_connections(context: BrowserContext, site) -> None:
    for _ in range(7):
        page = opened(context, site)
    expect(page.locator(".welcome")).to_be_visible()


def test_a_reload_in_the_middle_of_an_answer_goes_on_with_it(page: Page, site, ask) -> None:
    site.script.go.clear()
    ask(page, DIET, wait=False)
    expect(page.locator("#answering .steps summary")).to_have_text("Writing the answer")
    page.reload()
    expect(page.locator("#answering .steps summary")).to_have_text("Writing the answer")
    site.script.go.set()
    expect(page.locator("#transcript .reply")).to_contain_text("Combine legumes")
    expect(page.locator("#answering article")).to_have_count(0)


def test_a_tab_closed_in_the_middle_of_an_answer(page: Page, site, context: BrowserContext, ask) -> None:
    site.script.go.clear()
    ask(page, DIET, wait=False)
    expect(page.locator("#answering .steps summary")).to_have_text("Writing the answer")
    page.close()
    site.script.go.set()
    page = opened(context, site)
    page.locator("#conversations li .title").click()
    expect(page.locator("#transcript .reply")).to_contain_text("Combine legumes")


def test_two_tabs_see_the_same_answer_grow(page: Page, site, context: BrowserContext, ask) -> None:
    site.script.go.clear()
    ask(page, DIET, wait=False)
    expect(page.locator("#answering .steps")).to_be_visible()
    other = opened(context, site, page.url.removeprefix(site.url))
    expect(other.locator("#answering .steps summary")).to_have_text("Writing the answer")
    other.locator("#box").fill("Hello")
    site.script.go.set()
    for one in (page, other):
        expect(one.locator("#transcript .reply")).to_contain_text("Combine legumes")


def test_two_tabs_with_their_own_conversations(page: Page, site, context: BrowserContext, ask) -> None:
    ask(page, DIET)
    other = opened(context, site)
    expect(other.locator(".welcome")).to_be_visible()
    ask(other, "Hello")
    expect(page.locator("#transcript .said")).to_have_text(DIET)
    page.reload()
    expect(page.locator("#transcript .said")).to_have_text(DIET)


def test_a_tab_that_comes_back_to_the_front_shows_what_others_did(page: Page, site, context, ask) -> None:
    ask(page, DIET)
    other = opened(context, site, page.url.removeprefix(site.url))
    expect(other.locator("#transcript article")).to_have_count(1)
    ask(other, "Hello")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator("#transcript article")).to_have_count(2)


def test_a_tab_that_comes_back_to_the_front_keeps_the_citation_that_was_read(page: Page, site, ask) -> None:
    ask(page, DIET)
    ask(page, "Hello")
    page.locator("#transcript .chip").nth(1).click()
    expect(page.locator("#sources .card.current")).to_contain_text("Living without lactose")
    conversation = site.house.conversations.get("me", page.url.partition("#")[2])
    site.house.conversations.save_turn(
        "me", conversation.id, replace(conversation.turns[0], utterance="And elsewhere?")
    )
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator("#sources")).to_contain_text("For “And elsewhere?”")
    expect(page.locator("#sources .card.current")).to_contain_text("Living without lactose")
    expect(page.locator("#sources mark.current")).to_have_count(1)


def test_back_and_forward_go_through_conversations(page: Page, ask) -> None:
    ask(page, DIET)
    first = page.url
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".welcome")).to_be_visible()
    page.evaluate("address => { location.href = address }", first)
    expect(page.locator("#transcript .said")).to_have_text(DIET)


def test_an_unknown_address_shows_an_empty_page_and_says_so(context: BrowserContext, site) -> None:
    page = opened(context, site, "#nosuchthing")
    expect(page.locator(".welcome")).to_be_visible()
    expect(page.locator("#notice").get_by_role("alert")).to_contain_text("was not found")


def test_a_model_that_stands_in_for_another_is_told(page: Page, site: Site) -> None:
    site.loading.notice = "The model big could not be had. Until then the CPU's default model answers."
    page.reload()
    expect(page.get_by_role("status").filter(has_text="the CPU's default model answers")).to_be_visible()


@pytest.fixture
def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A page of its own, without free space in its database, whose file SQLite itself refuses to let grow."""
    engines: list[Engine] = []

    def kept(url: str) -> Engine:
        engines.append(connect(url))
        return engines[-1]

    monkeypatch.setattr(fake, "connect", kept)
    site = site_in(tmp_path)

    def limit(connection: sqlite3.Connection, *_: object) -> None:
        connection.execute("PRAGMA max_page_count=1")

    event.listen(engines[0], "checkout", limit)
    yield site
    site.server.close()


def test_a_full_disk_is_told_and_loses_nothing(context: BrowserContext, ask, full: Site, tmp_path: Path) -> None:
    page = opened(context, full)
    long = "What is a good diet? " + "x" * 9000
    ask(page, long, wait=False)
    expect(page.locator("#notice").get_by_role("alert")).to_contain_text("full disk")
    expect(page.locator("#box")).to_have_value(long)
    tab(page, "My facts")
    file = tmp_path / "facts.txt"
    file.write_text("\n".join(f"{n} {'x' * 400}" for n in range(50)), encoding="utf-8")
    page.locator("#bring input[type=file], input[type=file][accept*='.json']").first.set_input_files(file)
    expect(page.locator("#notice").get_by_role("alert")).to_contain_text("full disk")
    assert full.house.ptkb.facts("me") == []


def test_a_message_for_a_server_that_was_replaced_stays_in_the_box(page: Page, ask) -> None:
    ask(page, "Hello")
    page.locator("#box").fill(DIET)
    another = "window.fetch = async () => Response.json({app_id: 'another'})"
    with page.expect_event("load"):  # both at once: the page asks for the server every few seconds, too
        page.evaluate(f"() => {{ {another}; document.querySelector('#box').form.requestSubmit(); }}")
    expect(page.locator("#transcript .said")).to_have_text("Hello")
    expect(page.locator("#box")).to_have_value(DIET)


def test_a_server_that_is_killed_and_comes_back(browser, start, ask) -> None:
    process, url = start(0)
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(url)
    expect(page.locator(".welcome")).to_be_visible()
    ask(page, "Hello")
    ask(page, DIET, wait=False)
    expect(page.locator("#answering .reply")).to_contain_text("Lentils")
    process.kill()
    process.wait()
    page.locator("#box").fill("Hello again")
    page.keyboard.press("Enter")
    page.wait_for_function("document.body.classList.contains('down')")
    expect(page.locator("#box")).to_have_value("Hello again")
    process, _ = start(int(url.rstrip("/").rsplit(":", 1)[1]))
    page.wait_for_function("!document.body.classList.contains('down')")
    expect(page.locator("#transcript article")).to_have_count(2)
    expect(page.locator("#transcript .halted")).to_be_visible()  # what the killed one was writing
    expect(page.locator("#box")).to_have_value("Hello again")
    page.locator("#box").press("Enter")
    expect(page.locator("#transcript article")).to_have_count(3)
    context.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[int], tuple[subprocess.Popen[str], str]]]:
    """Starts servers in processes of their own, slow enough to be killed in the middle of an answer."""
    processes = []

    def starts(port: int) -> tuple[subprocess.Popen[str], str]:
        options = ["--data-dir", tmp_path, "--port", str(port), "--pause", "0.05"]
        command = [sys.executable, "-m", "tests.browser.fake", *options]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        return process, process.stdout.readline().strip()

    yield starts
    for process in processes:
        process.kill()
        process.wait()
