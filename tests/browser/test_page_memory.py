"""A memory that people steer: reasons that can be corrected, questions about it, what it forgets, temporary chats."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import Site

DIET = "What is a good diet?"


def stored(site: Site):
    return site.house.conversations.get("me", site.house.conversations.list("me")[0].id)


def texts(site: Site) -> list[str]:
    return [fact.text for fact in site.house.ptkb.facts("me")]


def test_a_fact_behind_a_reply_is_corrected_and_the_reply_answered_again(page: Page, site: Site, ask) -> None:
    site.house.ptkb.add("me", "I'm vegetarian.")
    ask(page, DIET)
    page.get_by_role("button", name="“I'm vegetarian.” wrong? fix it").click()
    editor = page.locator("#facts details[open] input")
    expect(editor).to_be_focused()
    editor.fill("I'm vegan.")
    page.keyboard.press("Enter")
    again = page.get_by_role("button", name="Answer again with what is right now")
    expect(again).to_be_focused()
    expect(page.locator(".because")).to_contain_text("“I'm vegetarian.” now “I'm vegan.”")
    page.keyboard.press("Enter")
    expect(page.locator("#transcript .versions")).to_have_text("2/2")
    expect(page.locator(".because")).not_to_contain_text("vegetarian")
    expect(again).to_have_count(0)
    page.get_by_role("button", name="Earlier version").click()
    expect(page.locator("#transcript .versions")).to_have_text("1/2")
    expect(page.locator(".because")).to_contain_text("“I'm vegetarian.” now “I'm vegan.”")
    assert texts(site) == ["I'm vegan."]


def test_a_correction_that_is_refused_keeps_what_was_typed_and_offers_nothing(page: Page, site: Site, ask) -> None:
    for text in ("I'm vegetarian.", "I run."):
        site.house.ptkb.add("me", text)
    ask(page, DIET)
    page.get_by_role("button", name="“I'm vegetarian.” wrong? fix it").click()
    page.locator("#facts details[open] input").fill("I run!")
    page.keyboard.press("Enter")
    expect(page.locator("#notice").get_by_role("alert")).to_contain_text("known already")
    expect(page.get_by_role("button", name="Answer again with what is right now")).to_have_count(0)
    page.get_by_role("button", name="“I'm vegetarian.” wrong? fix it").click()
    expect(page.locator("#facts details[open] input")).to_have_value("I run!")


def test_on_a_phone_the_offer_is_shown_once_the_fact_is_corrected(phone: Page, site: Site, ask) -> None:
    site.house.ptkb.add("me", "I'm vegetarian.")
    ask(phone, DIET)
    phone.get_by_role("button", name="“I'm vegetarian.” wrong? fix it").click()
    phone.locator("#facts details[open] input").fill("I'm vegan.")
    phone.keyboard.press("Enter")
    expect(phone.get_by_role("button", name="Answer again with what is right now")).to_be_in_viewport()
    expect(phone.locator("#panel")).not_to_be_in_viewport()
