"""Replies that are answered again anywhere in a conversation, their versions, and two strategies side by side."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import Site, opened
from tests.browser.fake import PASSAGES

DIET = "What is a good diet?"


def first(page: Page):
    return page.locator("#transcript article").first


def menu(page: Page, turn=None):
    """The open menu of a reply, by default the first."""
    turn = turn or first(page)
    turn.get_by_text("Answer again with…").click()
    return turn.locator(".ways")


def compare(page: Page, one: str, other: str) -> None:
    ways = menu(page)
    ways.get_by_label("The first way").select_option(one)
    ways.get_by_label("The second way").select_option(other)
    ways.get_by_role("button", name="Compare").click()


def stored(site: Site):
    return site.house.conversations.get("me", site.house.conversations.list("me")[0].id)


def test_an_earlier_reply_is_answered_again_in_its_place(page: Page, site: Site, ask) -> None:
    ask(page, DIET)
    ask(page, "Hello")
    old, later = stored(site).turns
    site.script.go.clear()
    menu(page).get_by_role("button", name="post_fusion").click()
    growing = page.locator("#transcript [data-place] article")
    expect(growing.locator(".steps summary")).to_have_text("Writing the answer")
    expect(page.locator("#transcript .said")).to_have_text([DIET, "Hello"])  # it grows where it stands
    expect(page.locator("#answering article")).to_have_count(0)
    expect(page.locator("#spoken")).to_have_text("Writing the answer")
    page.reload()
    expect(growing.locator(".steps summary")).to_have_text("Writing the answer")
    site.script.go.set()
    expect(first(page).locator(".versions")).to_have_text("2/2")
    expect(first(page).locator(".event")).to_contain_text("Each passage was asked alone: 2 of 4 say “Lentils, beans")
    kept = stored(site)
    assert kept.turns[1] == later
    assert kept.versions == {kept.turns[0].id: (old.id, kept.turns[0].id)}
    expect(page.locator("#sources")).to_contain_text(f"For “{DIET}”")


def test_versions_are_switched_from_the_keyboard_and_outlive_a_reload(page: Page, site: Site, ask) -> None:
    ask(page, DIET)
    ask(page, "Hello")
    menu(page).get_by_role("button", name="post_fusion").click()
    switch = first(page).locator(".versions")
    expect(switch).to_have_text("2/2")
    earlier, later = (page.get_by_role("button", name=f"{name} version") for name in ("Earlier", "Later"))
    expect(later).to_be_disabled()
    earlier.focus()
    page.keyboard.press("Enter")
    expect(switch).to_have_text("1/2")
    expect(first(page).locator(".reply")).to_contain_text("Hard cheese")
    expect(page.locator("#sources .card").nth(1)).to_contain_text("cited")  # those of this version
    expect(later).to_be_focused()  # there is nothing earlier
    page.reload()
    expect(switch).to_have_text("1/2")
    page.get_by_role("button", name="Later version").press("Enter")
    expect(switch).to_have_text("2/2")
    expect(first(page).locator(".reply")).not_to_contain_text("Hard cheese")


def test_a_menu_closes_with_escape_and_the_focus_returns(page: Page, ask) -> None:
    ask(page, DIET)
    summary = first(page).locator(".way summary")
    summary.focus()
    page.keyboard.press("Enter")
    expect(first(page).locator(".ways [aria-current]")).to_contain_text("All together, then one by one")
    page.keyboard.press("Tab")
    expect(page.get_by_label("The first way")).to_be_focused()
    page.keyboard.press("Escape")
    expect(first(page).locator(".ways")).not_to_be_visible()
    expect(summary).to_be_focused()


def test_answering_again_that_fails_says_so_and_keeps_the_old_reply(page: Page, site: Site, ask) -> None:
    ask(page, DIET)
    site.script.broken = "The model ran out of memory; close other programs."
    page.get_by_role("button", name="Answer again", exact=True).click()
    expect(page.locator("#notice").get_by_role("alert")).to_contain_text("ran out of memory")
    expect(first(page).locator(".reply")).to_contain_text("Hard cheese")
    expect(page.locator(".versions")).to_have_count(0)
    expect(page.locator("body")).not_to_have_class(re.compile("answering"))


def test_two_strategies_are_compared_side_by_side_and_one_is_kept(page: Page, site: Site, ask) -> None:
    ask(page, DIET)
    ask(page, "Hello")
    site.script.go.clear()
    compare(page, "concat", "post_fusion")
    sides = page.locator("#transcript .side")
    expect(sides).to_have_count(2)
    expect(sides.first.locator(".steps summary")).to_have_text("Writing the answer")
    expect(sides.last).to_contain_text("Comes next.")
    expect(first(page).locator(".reply").first).to_contain_text("Hard cheese")  # the reply stays
    page.reload()
    expect(sides.first.locator(".steps summary")).to_have_text("Writing the answer")
    site.script.go.set()
    expect(page.locator(".keep")).to_have_count(2)
    one, other = sides.first, sides.last
    boxes = [side.bounding_box() for side in (one, other)]
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
    expect(one.locator("h3").first).to_have_text("All together")
    expect(one.locator(".way-does")).to_contain_text("concat")
    expect(one.locator(".costs")).to_contain_text("1,023")
    expect(other.locator(".costs")).to_contain_text("9.8 s")
    expect(other.locator(".ballots")).to_contain_text("2 of 4 votes · chosen")
    expect(other.locator(".ballots .won li")).to_have_text(
        [PASSAGES[0].title, re.compile(f"^{PASSAGES[1].title}: “Beans")]
    )
    other.locator(".cited button").click()
    expect(page.locator("#sources mark.current")).to_have_text("Lentils, beans, tofu and eggs are rich in protein.")
    page.reload()
    expect(page.locator(".keep")).to_have_count(2)
    page.get_by_role("button", name="Keep the reply of “One by one, by vote”").press("Enter")
    expect(page.locator(".comparison")).to_have_count(0)
    expect(first(page).locator(".versions")).to_have_text("3/3")
    expect(first(page).locator(".reply")).to_be_focused()
    expect(page.locator("#transcript .said")).to_have_text([DIET, "Hello"])
    assert stored(site).turns[0].choices.strategy == "post_fusion"


def test_the_reply_above_can_be_kept(page: Page, site: Site, ask) -> None:
    ask(page, DIET)
    old = stored(site).turns[0].id
    compare(page, "concat", "post_fusion")
    page.get_by_role("button", name="Keep the reply above").click()
    expect(page.locator(".comparison")).to_have_count(0)
    expect(first(page).locator(".versions")).to_have_text("1/3")
    assert stored(site).turns[0].id == old


def test_a_comparison_is_stacked_on_a_phone(phone: Page, ask) -> None:
    ask(phone, DIET)
    inner, outer = phone.locator(".ways").bounding_box, phone.locator("#talk").bounding_box()
    menu(phone)
    assert inner()["x"] >= outer["x"]
    assert inner()["x"] + inner()["width"] <= outer["x"] + outer["width"]
    phone.keyboard.press("Escape")
    compare(phone, "concat", "post_fusion")
    expect(phone.locator(".keep")).to_have_count(2)
    # at one moment: the page may still be scrolling
    one, other = phone.locator(".side").evaluate_all(
        "sides => sides.map((side) => side.getBoundingClientRect().toJSON())"
    )
    assert one["x"] == other["x"]
    assert one["y"] + one["height"] <= other["y"]
    wide, across = phone.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= across


def test_stop_in_the_middle_of_a_comparison(page: Page, site: Site, ask) -> None:
    ask(page, DIET)
    site.script.pause = 0.1
    compare(page, "concat", "post_fusion")
    expect(page.locator(".side .reply").first).to_contain_text("Lentils, beans")
    began = time.perf_counter()
    page.keyboard.press("Escape")
    expect(page.locator(".side .halted")).to_be_visible()
    assert time.perf_counter() - began < 10  # half a second, and the page's own way there and back on a slow machine
    expect(page.locator(".side")).to_have_count(1)
    expect(page.locator(".comparison")).to_contain_text("stopped before there was a second reply")
    expect(page.locator("body")).not_to_have_class(re.compile("answering"))
    page.locator(".keep").click()
    expect(first(page).locator(".versions")).to_have_text("2/2")
    expect(first(page).locator(".reply")).to_contain_text("Lentils, beans")


def test_two_tabs_see_the_same_comparison_and_only_one_is_made(
    page: Page, site: Site, context: BrowserContext, ask
) -> None:
    ask(page, DIET)
    other = opened(context, site, page.url.removeprefix(site.url))
    expect(other.locator("#transcript article")).to_have_count(1)
    site.script.go.clear()
    compare(page, "concat", "post_fusion")
    expect(page.locator(".side.running")).to_have_count(1)
    compare(other, "concat", "summary")
    expect(other.locator("#notice").get_by_role("alert")).to_contain_text("An answer is being written")
    other.reload()
    expect(other.locator(".side.running")).to_have_count(1)
    site.script.go.set()
    for one in (page, other):
        expect(one.locator(".keep")).to_have_count(2)
    page.locator(".keep").first.click()
    expect(page.locator(".comparison")).to_have_count(0)
    other.locator(".keep").last.click()  # that tab does not know yet
    expect(other.locator(".comparison")).to_have_count(0)
    assert len(stored(site).versions[stored(site).turns[0].id]) == 3


def test_a_conversation_deleted_while_two_are_compared(
    page: Page, site: Site, context: BrowserContext, ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(page, DIET)
    site.script.go.clear()
    delete = site.house.conversations.delete
    monkeypatch.setattr(site.house.conversations, "delete", lambda *of: [time.sleep(0.5), delete(*of)])
    compare(page, "concat", "post_fusion")
    expect(page.locator(".side.running")).to_have_count(1)
    other = opened(context, site)
    other.on("dialog", lambda dialog: dialog.accept())
    other.get_by_label(f"More for {DIET}").click()
    other.get_by_role("button", name="Delete").click()
    expect(page.locator("#notice").get_by_role("alert")).to_contain_text("was not found")
    expect(page.locator(".welcome")).to_be_visible()
    expect(page.locator("body")).not_to_have_class(re.compile("answering"))
    assert site.house.conversations.list("me") == []


def test_unknown_and_equal_strategies_are_refused(page: Page, site: Site, ask) -> None:
    ask(page, DIET)
    alert = page.locator("#notice").get_by_role("alert")
    compare(page, "concat", "concat")
    expect(alert).to_contain_text("two different ways")
    menu(page).get_by_label("The second way").evaluate("select => { select.options[0].value = 'no <b>such</b>' }")
    first(page).get_by_label("The second way").select_option(index=0)
    first(page).locator(".ways").get_by_role("button", name="Compare").click()
    expect(alert).to_contain_text("'no <b>such</b>' is not one of the strategies")
    assert stored(site).versions == {}


@pytest.mark.parametrize("again", ["Compare", "Answer again"])
def test_what_was_refused_is_forgotten_as_soon_as_something_is_answered_again(
    page: Page, site: Site, ask, again: str
) -> None:
    ask(page, DIET)
    alert = page.locator("#notice").get_by_role("alert")
    compare(page, "concat", "concat")
    expect(alert).to_contain_text("two different ways")
    site.script.go.clear()
    if again == "Compare":
        compare(page, "concat", "summary")
    else:
        page.get_by_role("button", name=again, exact=True).click()
    expect(page.locator("#transcript [data-place] .running").first).to_be_visible()
    expect(alert).to_have_count(0)
