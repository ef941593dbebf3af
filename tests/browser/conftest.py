"""A real Chromium on a real page whose model is scripted. Skips, saying why, where there is no Chromium."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Browser, BrowserContext, Page, expect  # noqa: E402

from assistant.web.server import Server, serve  # noqa: E402
from tests.browser.fake import PAUSE, Loaded, Script, Shelf, house  # noqa: E402

# Quiet: Chromium makes no requests of its own.
ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
# Contexts have no motion unless a test looks at it: what moves is drawn anew all the time, by the processor.
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
EMPTY = "about:blank"
WAIT = 60_000  # milliseconds; machines that test are slow, and a tab's first look at the page compiles all its scripts

expect.set_options(timeout=WAIT)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@dataclass
class Site:
    """A page that is being served, and what it stands on."""

    server: Server
    script: Script
    loading: Loaded

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def house(self):
        return self.server.house

    def clear(self) -> None:
        """Forget all users' things, and be ready and quick again."""
        self.script.pause, self.script.broken, self.script.wait = PAUSE, "", None
        self.script.go.set()
        self.loading.ready, self.loading.error, self.loading.notice, self.loading.judges = True, "", "", ""
        self.loading.embeds = None
        for user in ("me", "ann", "bob"):
            for one in self.house.conversations.list(user):
                self.house.conversations.delete(user, one.id)
            for fact in self.house.ptkb.facts(user):
                self.house.ptkb.remove(user, fact.id)
            self.house.conversations.set_preferences(user, {})
        assert isinstance(self.house.documents, Shelf)
        self.house.documents.kept.clear()


def site_in(folder: Path) -> Site:
    script, loading = Script(), Loaded()
    return Site(serve(*house(folder, script, loading)), script, loading)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    binary = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    with playwright.sync_playwright() as started:
        if not binary and not Path(started.chromium.executable_path).exists():
            pytest.skip("no Chromium is installed (apt install chromium, or playwright install chromium)")
        browser = started.chromium.launch(executable_path=binary, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = site_in(tmp_path_factory.mktemp("site"))
    yield site
    site.server.close()


@pytest.fixture
def site(served: Site) -> Site:
    served.clear()
    return served


@pytest.fixture(scope="session")
def desktop(browser: Browser) -> Iterator[BrowserContext]:
    yield from _context(browser, viewport=DESKTOP, accept_downloads=True)


@pytest.fixture(scope="session")
def handheld(browser: Browser) -> Iterator[BrowserContext]:
    yield from _context(browser, viewport=PHONE, has_touch=True, is_mobile=True)


def _context(browser: Browser, **options: Any) -> Iterator[BrowserContext]:
    context = browser.new_context(reduced_motion="reduce", **options)
    context.set_default_timeout(WAIT)
    yield context
    context.close()


@pytest.fixture
def context(desktop: BrowserContext, site: Site) -> Iterator[BrowserContext]:
    """A browser that knows nothing yet but the scripts and styles that every test loads."""
    yield desktop
    forget(desktop)


@pytest.fixture
def page(context: BrowserContext, site: Site) -> Page:
    return _opened_again(context, site)


@pytest.fixture
def phone(handheld: BrowserContext, site: Site) -> Iterator[Page]:
    yield _opened_again(handheld, site)
    forget(handheld)


def _opened_again(context: BrowserContext, site: Site) -> Page:
    """The tab of the last test, which has the scripts compiled, with the page anew."""
    return _shown(context.pages[0], site) if context.pages else opened(context, site)


def forget(context: BrowserContext) -> None:
    """Leaves one empty tab at most, as a browser has it that was never used."""
    context.set_offline(False)
    context.clear_permissions()
    context.clear_cookies()
    for page in context.pages:
        if page.url != EMPTY:
            page.route("**", lambda route: route.fulfill(body=""))  # its own scripts may load it again at any moment
            page.goto(page.url.partition("#")[0])
            page.evaluate("localStorage.clear(); sessionStorage.clear()")
    for page in context.pages[1:]:
        page.close()
    for page in context.pages:
        page.unroute_all()
        page.goto(EMPTY)
        page.emulate_media(color_scheme="null")
        page.mouse.move(0, 0)


def opened(context: BrowserContext, site: Site, path: str = "") -> Page:
    """A tab with the page, ready to be used; an error of its scripts fails the test."""
    page = context.new_page()
    page.on("pageerror", _fail)
    return _shown(page, site, path)


def _shown(page: Page, site: Site, path: str = "") -> Page:
    page.goto(site.url + path)
    filled(page)
    return page


def filled(page: Page) -> None:
    """Waits until the conversation and the header are there."""
    for piece in ("#conversations nav", "#transcript [data-conversation]", "#header header"):
        expect(page.locator(piece)).to_be_attached()


def quiet(page: Page) -> None:
    """Waits until the page has asked the server for nothing for a second."""
    with suppress(playwright.TimeoutError):
        while True:
            page.wait_for_event("request", timeout=1000)


def _fail(error: Exception) -> None:
    raise AssertionError(f"a script of the page failed: {error}")


@pytest.fixture
def ask() -> Callable[..., None]:
    """Sends a message; waits for the reply unless told not to."""

    def sends(page: Page, text: str, *, wait: bool = True) -> None:
        before = page.locator("#transcript article").count()
        page.locator("#box").fill(text)
        page.keyboard.press("Enter")
        if wait:
            expect(page.locator("#transcript article")).to_have_count(before + 1)
            expect(page.locator("body")).not_to_have_class(re.compile("answering"))

    return sends


def expect_preferences(page: Page, site: Site, wanted: dict[str, object]) -> None:
    """Waits until these are the preferences that the server keeps."""
    for _ in range(WAIT // 50):
        if site.house.conversations.preferences("me") == wanted:
            break
        page.wait_for_timeout(50)
    assert site.house.conversations.preferences("me") == wanted


def tab(page: Page, name: str) -> None:
    """Opens a tab of the panel."""
    page.get_by_role("tab", name=name).click()
