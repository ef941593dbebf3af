"""A citation of a PDF opens its page, with the sentence marked on it."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.conftest import tab
from tests.browser.fake import PAGES
from tests.test_readers import make_pdf


def upload(page: Page, folder: Path, *texts: str) -> None:
    """Adds house.pdf, with these pages."""
    file = make_pdf(folder / "house.pdf", *texts, title="The house")
    tab(page, "Documents")
    page.locator("#files input[type=file]").set_input_files(file)
    expect(page.locator("#documents .document")).to_have_count(1)


def in_view(page: Page) -> bool:
    """Whether the first mark is in the part of the page that is seen."""
    return page.evaluate(
        """() => {
            const leaf = document.querySelector(".viewer .leaf").getBoundingClientRect();
            const mark = document.querySelector(".viewer mark").getBoundingClientRect();
            return mark.width > 20 && mark.top >= leaf.top && mark.bottom <= leaf.bottom;
        }"""
    )


def test_a_citation_opens_its_page_with_the_sentence_marked(page: Page, site, ask, tmp_path: Path) -> None:
    below = "\n" * 40 + PAGES[0]
    upload(page, tmp_path, below, f"Water.\n{PAGES[1]}")
    ask(page, "Where is the key, in my PDF?")
    page.locator("#transcript .chip").first.click()
    viewer = page.get_by_role("dialog", name="The house")
    expect(viewer.get_by_role("img", name="Page 1")).to_be_visible()
    expect(viewer.locator("mark")).to_have_count(1)
    assert in_view(page)
    expect(viewer).to_contain_text("page 1 of 2")
    expect(viewer.get_by_label("Previous citation")).to_have_count(0)
    viewer.get_by_label("Next citation").click()
    expect(viewer.get_by_role("img", name="Page 2")).to_be_visible()
    expect(viewer.locator(".quoted")).to_have_text(PAGES[1])
    expect(viewer.locator("header")).to_contain_text("In winter > The boiler · house.pdf, page 2 of 2")
    assert in_view(page)
    with page.expect_download() as download:
        viewer.get_by_label("Download the document").click()
    assert download.value.path().read_bytes() == (tmp_path / "house.pdf").read_bytes()
    page.keyboard.press("Escape")
    expect(viewer).to_have_count(0)
    expect(page.locator("#sources .card").first).to_be_visible()
    expect(page.locator("#sources .section")).to_have_text(["In winter > The boiler"])


def test_it_fills_a_phone_and_goes_back_to_the_source(phone: Page, site, ask, tmp_path: Path) -> None:
    site.house.documents.add(
        "me", [make_pdf(tmp_path / "house.pdf", *PAGES, title="The house")], lambda *_: None, site.script.go
    )
    ask(phone, "Where is the key, in my PDF?")
    phone.locator("#transcript .chip").first.click()
    expect(phone.locator(".viewer mark")).to_have_count(1)
    box = phone.locator(".viewer").bounding_box()
    assert box
    assert (box["x"], box["y"], box["width"]) == (0, 0, 390)
    assert in_view(phone)
    phone.locator(".viewer").get_by_label("Close").click()
    expect(phone.locator(".viewer")).to_be_hidden()


def test_what_is_not_on_the_page_is_not_marked_and_it_says_so(page: Page, site, ask, tmp_path: Path) -> None:
    upload(page, tmp_path, "Something else entirely.", "Water.")
    ask(page, "Where is the key, in my PDF?")
    page.locator("#transcript .chip").first.click()
    expect(page.locator(".viewer .told")).to_contain_text("nothing is marked")
    expect(page.locator(".viewer img")).to_be_visible()
    expect(page.locator(".viewer mark")).to_have_count(0)


def test_a_document_that_is_gone_or_broken_is_told_in_a_sentence(page: Page, site, ask, tmp_path: Path) -> None:
    ask(page, "Where is the key, in my PDF?")
    page.locator("#transcript .chip").first.click()
    expect(page.locator(".viewer").get_by_role("alert")).to_contain_text("There is no copy of this document")
    page.keyboard.press("Escape")
    (tmp_path / "house.pdf").write_bytes(b"no PDF")
    site.house.documents.add("me", [tmp_path / "house.pdf"], lambda *_: None, site.script.go)
    page.locator("#sources").get_by_role("button", name="Open page 2").click()
    expect(page.locator(".viewer").get_by_role("alert")).to_contain_text("it is not a PDF that can be drawn")


def test_a_citation_is_copied(page: Page, context, site, ask) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    ask(page, "Where is the key, in my PDF?")
    page.locator("#transcript article").get_by_role("button", name="Sources").click()
    page.locator("#sources summary").first.click()
    page.get_by_role("button", name="As Markdown").first.click()
    expect(page.locator("#sources .done")).to_have_count(1)
    assert page.evaluate("navigator.clipboard.readText()") == f"> {PAGES[0]}\n>\n> — The house, house.pdf, page 1"
