"""A conversation as a file of HTML and on paper."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect
from pypdf import PdfReader

from tests.browser.fake import HOSTILE
from tests.browser.test_page_viewer import upload

DIET = "What is a good diet?"
FILLER = "Tea is a drink."


def test_a_conversation_is_exported_as_html_whose_links_open(page: Page, site, ask, tmp_path: Path) -> None:
    upload(page, tmp_path, FILLER)
    ask(page, "Where is the key, in my PDF?")
    ask(page, f"hostile {HOSTILE}")
    page.get_by_label("More for Where is the key").click()
    with page.expect_download() as given:
        page.get_by_role("button", name="Export as HTML").click()
    assert given.value.suggested_filename == "Where-is-the-key--in-my-PDF.html"
    saved = tmp_path / "saved.html"
    given.value.save_as(saved)
    assert page.evaluate("window.hacked") is None
    shown = page.context.new_page()
    shown.goto(saved.as_uri())
    shown.get_by_role("link", name="2", exact=True).click()
    expect(shown.locator("li:target")).to_contain_text("The house, In winter > The boiler, house.pdf, page 2")
    assert shown.evaluate("window.hacked") is None
    assert shown.locator("script, img, iframe").count() == 0
    with shown.expect_download() as original:
        shown.get_by_role("link", name="The house, house.pdf, page 1").click()
    assert original.value.path().read_bytes() == (tmp_path / "house.pdf").read_bytes()
    shown.close()


def test_on_paper_are_the_conversation_and_its_sources_alone(page: Page, site, ask, tmp_path: Path) -> None:
    page.emulate_media(color_scheme="dark")
    ask(page, DIET)
    for _ in range(8):
        ask(page, f"{DIET} Again.")
    page.pdf(path=tmp_path / "paper.pdf", format="A4")
    pages = [" ".join(one.extract_text().split()) for one in PdfReader(tmp_path / "paper.pdf").pages]
    text = " ".join(pages)
    assert len(pages) > 2  # all that is above and below what the window shows
    assert text.count("Lentils, beans, tofu and eggs give you protein without meat. [1]") == 9
    assert text.count("Lentils, beans, tofu and eggs are rich in protein. — A vegetarian plate, Everyday shelf") == 9
    for name in ("New conversation", "My facts", "Ask a question", "Answer again", "Confidence", "Well supported"):
        assert name not in text
    expect(page.locator(".printed")).to_have_count(0)
    page.emulate_media(media="print", color_scheme="dark")
    ink, ground = page.locator("#transcript .reply").first.evaluate(
        "reply => [getComputedStyle(reply).color, getComputedStyle(document.body).backgroundColor]"
    )
    assert (ink, ground) == ("rgb(0, 0, 0)", "rgb(255, 255, 255)")
    page.emulate_media(media="screen")
