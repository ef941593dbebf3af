"""Search without the model, as a page of its own, on real documents and their real index."""

from __future__ import annotations

from threading import Event
from urllib.parse import quote

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from assistant.library.collections import make, put
from assistant.library.shelves import library_folder, locked, own_library
from assistant.protocols import silent
from assistant.web.searching import PAGE_SIZE
from tests.browser.test_page_documents import Desk, kept  # noqa: F401 - a fixture
from tests.test_readers import make_pdf

pytestmark = pytest.mark.lucene

KEY, BOILER = "The key hangs behind the <green> door.", "The boiler is drained in November."
FILLER = "Nothing much is said here, and nothing else either.\n\n" * 60


@pytest.fixture(scope="module")
def filled(kept: Desk, tmp_path_factory: pytest.TempPathFactory) -> Desk:  # noqa: F811 - the fixture
    """With a text, a PDF and many notes, and the text in a collection; no test here changes any of them."""
    folder, settings = tmp_path_factory.mktemp("filled"), kept.house.settings
    text = folder / "house.txt"
    text.write_text(f"{FILLER}{KEY}\n\n{FILLER}")
    notes = [folder / f"note{n}.txt" for n in range(PAGE_SIZE + 2)]
    for n, file in enumerate(notes):
        file.write_text(f"A note of number {n} on barley.")
    files = [text, make_pdf(folder / "winter.pdf", "Water.\n", f"Heating.\n{BOILER}", title="Winter"), *notes]
    assert kept.documents.add("me", files, silent, Event()) == []
    make("me", "homes", settings)
    put("me", "homes", next(one.id for one in kept.documents.list("me") if one.name == "house.txt"), settings)
    return kept


@pytest.fixture
def page(context: BrowserContext, filled: Desk) -> Page:
    page = context.pages[0] if context.pages else context.new_page()
    page.goto(f"{filled.url}search")
    return page


def searched(page: Page, words: str, where: str = "Everything") -> None:
    page.get_by_label("Words to search for").fill(words)
    page.get_by_label("Where").select_option(label=where)
    page.get_by_role("button", name="Search").click()
    page.wait_for_url(f"**words={quote(words)}**")


def marked_in_view(page: Page) -> bool:
    """Whether the first mark is seen."""
    return page.locator("mark").first.evaluate(
        """mark => {
            const box = mark.getBoundingClientRect();
            return box.width > 20 && box.top >= 0 && box.bottom <= innerHeight;
        }"""
    )


def test_words_are_marked_and_a_hit_opens_its_text_at_the_passage(page: Page, filled: Desk) -> None:
    expect(page.locator(".nothing")).to_contain_text("Type words")
    searched(page, "key")
    card = page.locator(".card")
    expect(card).to_have_count(1)
    expect(card.locator("mark")).to_have_text(["key"])
    expect(card).to_contain_text("<green>")
    expect(page.get_by_label("Words to search for")).to_have_value("key")
    address = page.url
    card.get_by_role("link", name="house").click()
    expect(page.locator(".text-view mark").first).to_contain_text("Nothing much")
    assert marked_in_view(page)
    with page.expect_download() as download:
        page.get_by_label("Download the document").click()
    assert KEY in download.value.path().read_text()
    page.get_by_role("link", name="To what was found").click()
    expect(card).to_have_count(1)
    page.goto("about:blank")
    page.goto(address)  # as a bookmark
    expect(card.locator("mark")).to_have_text(["key"])


def test_a_hit_in_a_pdf_opens_its_page(page: Page) -> None:
    searched(page, "boiler", "My documents")
    page.locator(".card").get_by_role("link", name="Winter").click()
    expect(page.get_by_role("img", name="Page 2")).to_be_visible()
    expect(page.locator(".picture mark").first).to_be_attached()
    assert marked_in_view(page)


def test_a_library_is_chosen_pages_are_turned_and_what_is_not_there_is_told(page: Page) -> None:
    searched(page, "barley")
    expect(page.locator(".card")).to_have_count(PAGE_SIZE)
    expect(page.get_by_text("Before")).to_have_count(0)
    page.get_by_role("link", name="More").click()
    expect(page.locator(".card")).to_have_count(2)
    expect(page.locator("ol")).to_have_attribute("start", str(PAGE_SIZE + 1))
    expect(page.get_by_role("link", name="More")).to_have_count(0)
    page.get_by_role("link", name="Before").click()
    expect(page.locator(".card")).to_have_count(PAGE_SIZE)
    searched(page, "barley", "Collection @homes")
    expect(page.locator(".nothing")).to_contain_text("No passage has these words in Collection @homes")
    page.get_by_role("link", name="search everything").click()
    expect(page.locator(".card")).to_have_count(PAGE_SIZE)


def test_a_library_that_is_being_indexed_is_told(page: Page, filled: Desk) -> None:
    notes = page.get_by_role("status")
    searched(page, "barley")
    expect(notes).to_have_count(0)
    with locked(library_folder(own_library("me"), filled.house.settings)):
        page.reload()
        expect(notes).to_contain_text("My documents: it is being indexed")
        expect(page.locator(".card")).to_have_count(PAGE_SIZE)
    with filled.house.chat.arrivals.track("me", ["tea.txt"]) as tell:
        tell(1, 4)
        page.reload()
        expect(notes).to_contain_text("Documents of yours are being added (25 %)")
    page.reload()
    expect(notes).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_in_both_themes(handheld: BrowserContext, filled: Desk, scheme: str) -> None:
    page = handheld.new_page()
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{filled.url}search?words=boiler+key")
    expect(page.locator(".card")).to_have_count(2)
    for _ in range(2):
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        ground = page.locator("body").evaluate("body => getComputedStyle(body).backgroundColor")
        assert ground == {"light": "rgb(251, 250, 248)", "dark": "rgb(22, 25, 27)"}[scheme]
        page.goto(page.locator(".card a").first.evaluate("a => a.href") if page.locator(".card").count() else page.url)
    page.close()


def test_the_theme_that_was_chosen_on_the_page_holds_here_too(page: Page) -> None:
    page.evaluate('localStorage.setItem("sequitur-theme", "dark")')
    page.reload()
    expect(page.locator("html.dark")).to_be_attached()


def test_the_page_leads_here(context: BrowserContext, filled: Desk) -> None:
    page = context.pages[0] if context.pages else context.new_page()
    page.goto(filled.url)
    with context.expect_page() as fresh:
        page.get_by_role("link", name="Search the library, on a page of its own").click()
    expect(fresh.value.get_by_role("heading", name="Search")).to_be_visible()
    fresh.value.get_by_role("link", name="To the conversations").click()
    expect(fresh.value.locator("#box")).to_be_visible()
