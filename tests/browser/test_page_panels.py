"""The panel: facts, documents, settings."""

from __future__ import annotations

import json
import re
from pathlib import Path
from threading import Event
from time import sleep

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from assistant.errors import StoreError
from assistant.library.index import add_documents
from assistant.library.shelves import own_library
from assistant.types import Tokens
from assistant.web.choices import UserChoices
from tests.browser.conftest import Site, expect_preferences, opened, tab

DIET = "What is a good diet?"


def refuse(*_: object) -> None:
    """What a store does whose disk is full."""
    raise StoreError("The disk is full.")


def facts(page: Page):
    return page.locator("#facts .fact")


def add(page: Page, text: str) -> None:
    page.get_by_label("A fact about you").fill(text)
    page.keyboard.press("Enter")


def test_facts_are_added_edited_switched_and_deleted(page: Page, site) -> None:
    tab(page, "My facts")
    add(page, "I'm vegetarian.")
    expect(facts(page)).to_have_count(1)
    expect(page.get_by_label("A fact about you")).to_have_value("")
    expect(page.get_by_label("A fact about you")).to_be_focused()
    page.get_by_label("Edit: I'm vegetarian.").click()
    page.get_by_label("The fact", exact=True).fill("I'm vegan.")
    page.keyboard.press("Enter")
    expect(facts(page)).to_contain_text("I'm vegan.")
    page.get_by_label("Use: I'm vegan.").click(force=True)
    expect(facts(page)).to_have_class("card fact off")
    assert [(one.text, one.on) for one in site.house.ptkb.facts("me")] == [("I'm vegan.", False)]
    page.get_by_label("Delete: I'm vegan.").click()
    expect(facts(page)).to_have_count(0)
    assert site.house.ptkb.facts("me") == []


def test_a_fact_that_cannot_be_stored_is_told(page: Page, site) -> None:
    tab(page, "My facts")
    add(page, "I'm vegetarian.")
    expect(facts(page)).to_have_count(1)
    for text, why in (("I'm VEGETARIAN", "known already"), ("x" * 501, "at most 500"), (" ", "empty")):
        add(page, text)
        expect(page.locator("#notice").get_by_role("alert")).to_contain_text(why)
        expect(page.get_by_label("A fact about you")).to_have_value(text)
    assert len(site.house.ptkb.facts("me")) == 1


def test_a_switch_that_is_not_stored_goes_back(page: Page, site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.house.ptkb.add("me", "I'm vegetarian.")
    page.reload()
    tab(page, "My facts")
    use = page.get_by_label("Use: I'm vegetarian.")
    with monkeypatch.context() as patch:
        patch.setattr(site.house.ptkb, "switch", refuse)
        use.click(force=True)
        expect(page.locator("#notice").get_by_role("alert")).to_contain_text("The disk is full.")
        expect(use).to_be_checked()
    page.evaluate("() => { window.real = fetch; window.fetch = async () => { throw new Error('gone'); }; }")
    use.click(force=True)
    expect(page.locator("body")).to_have_class(re.compile("down"))
    expect(use).to_be_checked()
    page.evaluate("() => { window.fetch = real; }")
    use.click(force=True)
    expect(facts(page)).to_have_class("card fact off")
    expect(use).not_to_be_checked()


def test_the_focus_stays_near_the_fact_that_was_changed_or_deleted(page: Page, site) -> None:
    for text in ("I'm vegetarian.", "I run.", "I sing."):
        site.house.ptkb.add("me", text)
    page.reload()
    tab(page, "My facts")
    edit = page.get_by_label("Edit: I run.")
    edit.press("Enter")
    page.locator("#facts details[open] input").fill("I swim.")
    page.keyboard.press("Enter")
    expect(facts(page).nth(1)).to_contain_text("I swim.")
    expect(page.get_by_label("Edit: I swim.")).to_be_focused()
    for deleted, then in (("I swim.", "Delete: I sing."), ("I sing.", "Delete: I'm vegetarian.")):
        page.get_by_label(f"Delete: {deleted}").press("Enter")
        expect(page.get_by_label(then)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_label("A fact about you")).to_be_focused()


def test_the_relevance_of_each_fact_in_the_turn_looked_at(page: Page, site, ask) -> None:
    site.house.ptkb.add("me", "I'm vegetarian.")
    ask(page, "Hello")
    ask(page, DIET)
    tab(page, "My facts")
    expect(facts(page)).to_contain_text("0.62 · used")
    site.house.ptkb.add("me", "I run.")
    ask(page, DIET)
    expect(facts(page).nth(1)).to_contain_text("0.42 · used")
    page.locator("#transcript article").nth(1).get_by_role("button", name="Sources").click()
    tab(page, "My facts")
    expect(facts(page).nth(1)).not_to_contain_text("0.42")  # that turn did not know of it


def test_facts_in_and_out(page: Page, site, tmp_path: Path) -> None:
    tab(page, "My facts")
    file = tmp_path / "facts.txt"
    file.write_text("I'm vegetarian.\n\nI run.\nI run!\n", encoding="utf-8")
    page.locator("#bring input[type=file], input[type=file][accept*='.json']").first.set_input_files(file)
    expect(facts(page)).to_have_count(2)
    expect(page.locator("#notice")).to_contain_text("2 facts added. 1 left out; the first is number 4")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export as JSON").click()
    kept = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert [one["text"] for one in kept] == ["I'm vegetarian.", "I run."]
    with page.expect_download() as download:
        page.get_by_role("button", name="Export as text").click()
    assert Path(download.value.path()).read_text(encoding="utf-8") == "I'm vegetarian.\nI run.\n"


def test_documents_are_added_listed_and_removed(page: Page, site, tmp_path: Path) -> None:
    good, empty = tmp_path / "notes.txt", tmp_path / "empty.txt"
    good.write_text("The shed key hangs behind the door. " * 40, encoding="utf-8")
    empty.write_text("\n", encoding="utf-8")
    tab(page, "Documents")
    page.locator("#files input[type=file]").set_input_files([good, empty])
    expect(page.locator("#documents .document")).to_have_count(1)
    expect(page.locator("#documents .document")).to_contain_text("notes.txt")
    expect(page.locator("#documents").get_by_role("alert")).to_contain_text("empty.txt is empty.")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_label("Remove notes.txt").click()
    expect(page.locator("#documents .document")).to_have_count(0)
    expect(page.get_by_role("tab", name="Documents")).to_be_focused()
    assert site.house.documents.list("me") == []


def test_texts_are_pasted_names_stay_apart_and_an_address_of_this_computer_is_refused(
    page: Page, site, tmp_path: Path
) -> None:
    for name in ("key!.txt", "key.txt"):
        (tmp_path / name).write_text(f"{name} says where the key hangs.", encoding="utf-8")
    tab(page, "Documents")
    page.locator("#files input[type=file]").set_input_files([tmp_path / "key!.txt", tmp_path / "key.txt"])
    expect(page.locator("#documents .document")).to_have_count(2)
    page.get_by_text("Paste a text").click()
    page.get_by_label("Title", exact=True).fill("On oats")
    page.get_by_label("Text", exact=True).fill("Oats are a cereal.")
    page.get_by_role("button", name="Add text").click()
    expect(page.locator("#documents .document .text > span")).to_have_text(["On oats", "key!.txt", "key.txt"])
    page.get_by_text("Add a web page").click()
    page.get_by_label("Web address").fill("http://127.0.0.1/secret")
    page.get_by_role("button", name="Add page").click()
    expect(page.locator("#notice")).to_contain_text("stands in a private network")
    assert len(site.house.documents.list("me")) == 3


def test_work_on_a_whole_document_tells_what_it_takes_and_is_a_reply(page: Page, site, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("The shed key hangs behind the door. " * 40, encoding="utf-8")
    add_documents(own_library("me"), [file], site.house.settings, uploaded=True)
    tab(page, "Documents")
    page.locator("#files input[type=file]").set_input_files(file)
    page.get_by_label("What to do").select_option("table")
    page.get_by_role("button", name="See what it takes").click()
    expect(page.locator("#notice")).to_contain_text("names of its columns")
    page.get_by_label("What to do").select_option("summary")
    page.get_by_role("button", name="See what it takes").click()
    expect(page.locator("#whole").get_by_role("status")).to_contain_text("3 passages, 2 calls of the model")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.locator("#transcript")).to_contain_text("Summarise notes.txt")
    expect(page.locator("#transcript .reply").last).to_be_visible()


def test_a_file_of_another_kind_is_refused(page: Page, site, tmp_path: Path) -> None:
    file = tmp_path / "picture.png"
    file.write_bytes(b"\x89PNG\r\n")
    tab(page, "Documents")
    page.locator("#files input[type=file]").set_input_files(file)
    page.wait_for_timeout(1500)
    assert site.house.documents.list("me") == []


def test_settings_are_kept_and_used(page: Page, site, context, ask) -> None:
    tab(page, "Settings")
    page.get_by_label("How answers are made").click()
    page.get_by_role("option", name="All together", exact=True).click()
    expect(page.locator("#strategy")).to_contain_text(
        "Reads all passages at once, and says so if they hold no answer. (concat)"
    )
    number = page.locator("#k input[type=number]")
    number.fill("2")
    number.press("Enter")
    number.blur()
    expect_preferences(page, site, {"strategy": "concat", "k": 2})
    page = opened(context, site)
    tab(page, "Settings")
    expect(page.get_by_label("How answers are made")).to_have_value("All together")
    ask(page, DIET)
    expect(page.locator("#sources .card")).to_have_count(2)
    page.locator("#transcript .steps summary").click()
    expect(page.locator("#transcript .inside")).to_contain_text("All together concat · 2 passages")


def test_the_number_of_passages_is_chosen_with_keys(page: Page, site, context) -> None:
    tab(page, "Settings")
    slider = page.locator("#k input[type=range]")
    expect(slider).to_have_value("4")
    expect(page.locator("#k button")).to_have_count(0)  # Gradio's own would set it to 1
    page.wait_for_timeout(500)  # Gradio sets the fields of a tab that has just opened once more; nobody is so quick
    for _ in range(5):
        slider.press("ArrowRight")
    expect(page.locator("#k input[type=number]")).to_have_value("9")
    expect_preferences(page, site, {"k": 9})
    page = opened(context, site)
    tab(page, "Settings")
    expect(page.locator("#k input[type=range]")).to_have_value("9")


def test_a_loop_in_rounds_brings_its_number_of_passages_until_one_is_chosen(page: Page, site) -> None:
    tab(page, "Settings")
    number = page.locator("#k input[type=number]")
    for title, passages in (("In rounds, writing anew", "5"), ("With a draft of the answer", "4")):
        page.get_by_label("How passages are found").click()
        page.get_by_role("option", name=title, exact=True).click()
        expect(number).to_have_value(passages)
    number.fill("2")
    number.press("Enter")
    number.blur()
    expect_preferences(page, site, {"loop": "grg", "k": 2})
    page.get_by_label("How passages are found").click()
    page.get_by_role("option", name="In rounds, writing anew", exact=True).click()
    expect_preferences(page, site, {"loop": "itrg_refresh", "k": 2})
    expect(page.locator("#loop")).to_contain_text("(itrg_refresh)")  # which is shown together with the number
    expect(number).to_have_value("2")
    number.fill("3")  # a menu tells of a choice twice; what comes behind it has to be over before the next test begins
    number.press("Enter")
    number.blur()
    expect_preferences(page, site, {"loop": "itrg_refresh", "k": 3})


def test_a_menu_that_tells_twice_leaves_a_number_alone_that_was_typed_in_between(
    page: Page, site, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep, told, over = UserChoices.keep, [], Event()

    def second_one_late(self: UserChoices, user: str, name: str, value: object) -> bool:
        told.append(name)
        if told != ["loop", "loop"]:
            return keep(self, user, name, value)
        sleep(1)
        changed = keep(self, user, name, value)
        over.set()
        return changed

    monkeypatch.setattr(UserChoices, "keep", second_one_late)
    tab(page, "Settings")
    number = page.locator("#k input[type=number]")
    page.get_by_label("How passages are found").click()
    page.get_by_role("option", name="In rounds, writing anew", exact=True).click()
    expect(number).to_have_value("5")
    number.fill("2")
    assert over.wait(30)
    page.wait_for_timeout(1000)  # until the page knows of it, too
    number.press("Enter")
    number.blur()
    expect_preferences(page, site, {"loop": "itrg_refresh", "k": 2})


def test_a_choice_that_must_be_made_ready_first_says_so(page: Page, site) -> None:
    tab(page, "Settings")
    expect(page.get_by_label("How passages are searched")).to_have_value("By both, fused")
    page.get_by_label("How passages are searched").click()
    page.get_by_role("option", name="By meaning").click()
    expect(page.locator("#notice")).to_contain_text("being encoded for search by meaning")
    expect(page.locator("#retriever")).to_contain_text("is searched piece by piece")
    assert site.house.conversations.preferences("me") == {"retriever": "dense"}


def test_a_choice_that_is_not_stored_goes_back(page: Page, site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site.house.conversations, "set_preferences", refuse)
    tab(page, "Settings")
    for label, usual, other in (
        ("How answers are made", "All together, then one by one", "All together"),
        ("How passages are searched", "By both, fused", "By words (BM25)"),
    ):
        expect(page.get_by_label(label)).to_have_value(usual)
        page.get_by_label(label).click()
        page.get_by_role("option", name=other, exact=True).click()
        expect(page.locator("#notice").get_by_role("alert")).to_contain_text("The disk is full.")
        expect(page.get_by_label(label)).to_have_value(usual)


def test_whoever_runs_the_page_sees_what_people_use(context: BrowserContext, site: Site) -> None:
    for _ in range(3):
        site.house.usage.begin("<i>Zoë")
    site.house.usage.end("<i>Zoë", Tokens(12_345, 678), 90.0)
    page = opened(context, site)
    tab(page, "Settings")
    row = page.locator("#usage tr", has_text="<i>Zoë")
    expect(row.locator("td")).to_have_text(["3", "12,345", "678", "1.5"])
