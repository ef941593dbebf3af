"""Conversations: new, open, rename, delete, search, export."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

DIET = "What is a good diet?"


def items(page: Page):
    return page.locator("#conversations li")


def more(page: Page, title: str) -> None:
    page.get_by_label(f"More for {title}").click()


def test_a_conversation_takes_its_name_from_the_first_message(page: Page, ask) -> None:
    ask(page, DIET)
    expect(items(page)).to_have_count(1)
    expect(items(page).locator(".title span")).to_have_text(DIET)
    expect(items(page).locator(".title")).to_have_attribute("aria-current", "page")


def test_a_new_conversation_and_back_to_the_old_one(page: Page, ask) -> None:
    ask(page, DIET)
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".welcome")).to_be_visible()
    expect(page.locator("#sources")).not_to_contain_text("A vegetarian plate")
    ask(page, "Hello")
    expect(items(page)).to_have_count(2)
    items(page).nth(1).locator(".title").click()
    expect(page.locator("#transcript .said")).to_have_text(DIET)
    expect(page.locator("#sources .card")).to_have_count(4)


def test_an_answer_goes_on_while_another_conversation_is_looked_at(page: Page, site, ask) -> None:
    ask(page, "Hello")
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".welcome")).to_be_visible()
    site.script.go.clear()
    ask(page, DIET, wait=False)
    expect(page.locator("#answering .steps")).to_be_visible()
    items(page).nth(1).locator(".title").click()
    expect(page.locator("#transcript .said")).to_have_text("Hello")
    expect(page.locator("#answering article")).to_have_count(0)
    site.script.go.set()
    page.wait_for_timeout(1500)
    expect(page.locator("#transcript .said")).to_have_text("Hello")  # the other one's end is not shown here
    items(page).filter(has_text=DIET).locator(".title").click()
    expect(page.locator("#transcript .reply")).to_contain_text("Hard cheese")


def test_rename(page: Page, site, ask) -> None:
    ask(page, DIET)
    more(page, DIET)
    name = page.get_by_label("Name")
    name.fill("Food")
    name.press("Enter")
    expect(items(page).locator(".title span")).to_have_text("Food")
    expect(page.get_by_label("More for Food")).to_be_focused()
    more(page, "Food")
    name.fill("  ")
    name.press("Enter")
    expect(page.locator("#notice").get_by_role("alert")).to_contain_text("The title is empty")
    assert site.house.conversations.list("me")[0].title == "Food"


def test_delete_asks_first(page: Page, site, ask) -> None:
    ask(page, DIET)
    page.once("dialog", lambda dialog: dialog.dismiss())
    more(page, DIET)
    page.get_by_role("button", name="Delete", exact=True).click()
    page.wait_for_timeout(500)
    assert len(site.house.conversations.list("me")) == 1
    page.once("dialog", lambda dialog: dialog.accept())
    if not page.get_by_role("button", name="Delete", exact=True).is_visible():
        more(page, DIET)
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(items(page)).to_have_count(0)
    expect(page.locator(".welcome")).to_be_visible()
    expect(page.get_by_role("button", name="New conversation")).to_be_focused()
    assert site.house.conversations.list("me") == []


def test_search_looks_at_titles_and_text(page: Page, ask) -> None:
    ask(page, DIET)
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".welcome")).to_be_visible()
    ask(page, "Hello")
    search = page.get_by_label("Search conversations")
    search.press_sequentially("hard cheese")
    expect(items(page)).to_have_count(1)
    expect(items(page)).to_contain_text(DIET)
    expect(search).to_be_focused()
    search.fill("zzz")
    expect(page.locator("#conversations")).to_contain_text("Nothing found for “zzz”.")
    search.fill("")
    expect(items(page)).to_have_count(2)


def test_what_was_searched_for_while_an_answer_was_written_stays_listed(page: Page, site, ask) -> None:
    site.script.go.clear()
    ask(page, DIET, wait=False)
    expect(items(page)).to_have_count(1)
    page.get_by_label("Search conversations").fill("zzz")
    expect(page.locator("#conversations")).to_contain_text("Nothing found for “zzz”.")
    site.script.go.set()
    expect(page.locator("#transcript .actions")).to_be_visible()
    expect(items(page)).to_have_count(0)
    page.get_by_label("Search conversations").fill("hard cheese")
    expect(items(page)).to_have_count(1)


def test_export_is_a_markdown_file(page: Page, ask) -> None:
    ask(page, DIET)
    more(page, DIET)
    with page.expect_download() as download:
        page.get_by_role("button", name="Export as Markdown").click()
    assert download.value.suggested_filename == "What-is-a-good-diet.md"
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert DIET.rstrip("?") in text
    assert "Lentils, beans, tofu and eggs are rich in protein" in text


def test_the_drawer_on_a_phone(phone: Page, ask) -> None:
    ask(phone, DIET)
    button = phone.get_by_role("button", name="Conversations")
    button.tap()
    expect(button).to_have_attribute("aria-expanded", "true")
    phone.get_by_role("button", name="New conversation").tap()
    expect(phone.locator(".welcome")).to_be_visible()
    expect(phone.locator("#side")).not_to_be_in_viewport()
