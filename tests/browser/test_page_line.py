"""People who share a model with one seat: the place in line is shown, and what nobody watches gives its seat back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from assistant import runs
from assistant.llm.turn_queue import TurnQueue
from assistant.types import Options, Turn
from assistant.web.server import serve
from tests.browser import fake
from tests.browser.conftest import Site, opened
from tests.browser.fake import Loaded, Script, ScriptedChat, house, scripted

DIET = "What is a good diet?"


class SeatedChat(ScriptedChat):
    """Waits for a seat at the model before it answers, and keeps that to its end, as turns do."""

    def _answered(self, user: str, turn: Turn, stop: Event) -> Iterator[Turn]:
        with self.models.lent(user, turn.model) as llm:
            yield turn
            list(llm.stream((), Options(), stop))
            yield from scripted(turn, self.script, stop)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    script, loading = Script(), Loaded()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fake, "ScriptedChat", SeatedChat)
        built, logins = house(tmp_path_factory.mktemp("line"), script, loading, slots=1)
    site = Site(serve(built, logins), script, loading)
    yield site
    site.server.close()


@pytest.fixture
def page(context: BrowserContext, shared: Site) -> Page:
    return opened(context, shared)


def line_of(site: Site) -> TurnQueue:
    return site.house.models.line


def until(happens: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_the_place_in_line_is_shown_above_the_reply(page: Page, shared: Site, ask) -> None:
    line, bob = line_of(shared), Event()
    assert line.enter("ann", Event())
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(line.enter, "bob", bob)
        try:
            until(lambda: line.ahead(bob) == 0)
            ask(page, DIET, wait=False)
            place = page.locator("#answering .steps summary .wait")
            expect(place).to_have_text("1 person before you")
        except BaseException:
            bob.set()  # nothing would end the pool otherwise
            raise
        line.leave("ann")
        assert waiting.result(10)
    expect(place).to_have_text("you are next")
    expect(page.locator("#transcript article")).to_have_count(0)
    line.leave("bob")
    expect(page.locator("#transcript .reply")).to_contain_text("Combine legumes")
    expect(place).to_have_count(0)


def test_what_nobody_watches_any_more_stops_and_its_seat_is_free_for_others(
    page: Page, shared: Site, monkeypatch: pytest.MonkeyPatch, ask
) -> None:
    monkeypatch.setattr(runs, "MAX_UNWATCHED_SECONDS", 2.0)
    monkeypatch.setattr(runs, "SWEEP_SECONDS", 0.2)
    monkeypatch.setattr(shared.script, "pause", 0.4)  # too slow to come to its end by itself
    conversations, line, ann = shared.house.conversations, line_of(shared), Event()
    before = {one.id for one in conversations.list("me")}
    ask(page, DIET, wait=False)
    expect(page.locator("#answering .reply")).to_contain_text("Lentils,")
    page.wait_for_timeout(4000)  # it is watched
    [talk] = [one.id for one in conversations.list("me") if one.id not in before]
    assert shared.house.runs.busy("me", talk)
    page.close()
    with ThreadPoolExecutor(1) as pool:
        seated = pool.submit(line.enter, "ann", ann)
        until(lambda: line.ahead(ann) == 0)
        assert seated.result(20)
    line.leave("ann")
    until(lambda: not shared.house.runs.busy("me", talk))
    [turn] = conversations.get("me", talk).turns
    assert turn.status == "stopped"
    assert turn.answer is not None
    assert turn.answer.text.startswith("Lentils, beans")
    assert "Combine legumes" not in turn.answer.text
