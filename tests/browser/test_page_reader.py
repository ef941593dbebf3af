"""A citation of a document that is no PDF opens its text, with the sentence marked in it."""

from __future__ import annotations

from pathlib import Path

import docx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import tab
from tests.browser.fake import HOSTILE, PAGES
from tests.browser.test_page_viewer import in_view

FILLER = "Nothing much is said here, and nothing else either."
KINDS = ("house.docx", "house.md", "house.html", "house.txt")


def made(folder: Path, name: str) -> Path:
    """A document with filler between its two sentences, so that it has to be scrolled."""
    file, paragraphs = folder / name, [*[FILLER] * 60, PAGES[0], *[FILLER] * 60, PAGES[1]]
    if name.endswith(".docx"):
        document = docx.Document()
        document.add_heading("The house", 1)
        for text in paragraphs:
            document.add_paragraph(text)
        document.save(file)
        return file
    if name.endswith(".html"):
        text = "<h1>The house</h1>" + "".join(f"<p>{one}" for one in paragraphs) + f"<script>x</script><p>{HOSTILE}"
    else:
        text = "# The house\n\n" + "\n\n".join(paragraphs) + f"\n\n{HOSTILE}\n"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize("name", KINDS)
def test_the_sentence_is_marked_and_scrolled_to(page: Page, site, ask, tmp_path: Path, name: str) -> None:
    tab(page, "Documents")
    page.locator("#files input[type=file]").set_input_files(made(tmp_path, name))
    expect(page.locator("#documents .document")).to_have_count(1)
    ask(page, f"Where is the key, in my {name}?")
    page.locator("#transcript .chip").first.click()
    viewer = page.get_by_role("dialog", name="The house")
    expect(viewer.locator("mark")).to_have_text(PAGES[0])
    assert in_view(page)
    expect(viewer.get_by_role("heading", name="The house").last).to_be_attached()
    viewer.get_by_label("Next citation").click()
    expect(viewer.locator("mark")).to_have_text(PAGES[1])
    assert in_view(page)
    viewer.get_by_label("Previous citation").click()
    expect(viewer.locator("mark")).to_have_text(PAGES[0])
    assert page.locator(".leaf :is(script, img, iframe, a, b)").count() == 0
    assert page.evaluate("window.hacked") is None


def test_it_fills_a_phone(phone: Page, site, ask, tmp_path: Path) -> None:
    site.house.documents.add("me", [made(tmp_path, "house.md")], lambda *_: None, site.script.go)
    ask(phone, "Where is the key, in my house.md?")
    phone.locator("#transcript .chip").first.click()
    expect(phone.locator(".viewer mark")).to_have_text(PAGES[0])
    assert in_view(phone)
    box = phone.locator(".viewer").bounding_box()
    assert box
    assert (box["x"], box["y"], box["width"]) == (0, 0, 390)
    inner, outer = phone.locator(".leaf").evaluate("leaf => [leaf.scrollWidth, leaf.clientWidth]")
    assert inner <= outer


def test_what_is_gone_or_has_changed_is_told(page: Page, site, ask, tmp_path: Path) -> None:
    (tmp_path / "house.txt").write_text(FILLER)
    site.house.documents.add("me", [tmp_path / "house.txt"], lambda *_: None, site.script.go)
    ask(page, "Where is the key, in my house.txt?")
    page.locator("#transcript .chip").first.click()
    expect(page.locator(".viewer .told")).to_contain_text("nothing is marked")
    expect(page.locator(".viewer .text-view")).to_contain_text(FILLER)
    expect(page.locator(".viewer mark")).to_have_count(0)
    page.keyboard.press("Escape")
    site.house.documents.remove("me", "house.txt")
    page.locator("#sources").get_by_role("button", name="Open document").first.click()
    expect(page.locator(".viewer").get_by_role("alert")).to_contain_text("There is no copy of this document")
