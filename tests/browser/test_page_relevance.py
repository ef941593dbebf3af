"""How well passages support a reply: bars, words, what they mean, and what happens where none answers."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from assistant.wording.replies import LABEL
from tests.browser.conftest import Site, expect_preferences, tab

DIET, ATLANTIS = "What is a good diet?", "What is the capital of Atlantis?"


def last(page: Page):
    return page.locator("#transcript article").last


def test_confidences_are_shown_and_explained_by_pointer_and_keyboard(page: Page, ask) -> None:
    ask(page, DIET)
    verdict = last(page).locator(".verdict button")
    expect(verdict).to_have_text("Well supported0.93")
    expect(page.locator("#sources .sure .figure")).to_have_text(["0.93", "0.81", "0.24", "under 0.01"])
    why = last(page).get_by_role("tooltip")
    expect(why).not_to_be_visible()
    verdict.focus()
    expect(why).to_contain_text("Calibrated (isotonic, on 3,080 passages of NQ and SQuAD)")
    page.keyboard.press("Escape")
    expect(why).not_to_be_visible()
    expect(verdict).to_be_focused()
    page.mouse.move(5, 5)
    page.locator("#sources .sure button").nth(1).hover()
    expect(page.locator("#sources").get_by_role("tooltip")).to_contain_text("this passage answers the question: 0.81")
    ask(page, "Something unjudged")
    expect(last(page).locator(".verdict")).to_have_count(0)
    expect(page.locator("#sources .sure")).to_have_count(0)


def test_a_tap_explains_on_a_phone(phone: Page, ask) -> None:
    ask(phone, DIET)
    last(phone).locator(".verdict button").tap()
    why = last(phone).get_by_role("tooltip")
    expect(why).to_be_in_viewport(ratio=1)
    last(phone).locator(".said").tap()
    expect(why).not_to_be_visible()


def test_what_happens_where_no_passage_answers_is_chosen_and_can_be_overruled(page: Page, site: Site, ask) -> None:
    tab(page, "Settings")
    field = page.get_by_label("When no passage seems to answer")
    expect(field).to_have_value("Answer from the model's own knowledge, and say so")
    field.click()
    page.get_by_role("option", name="Ask me what to do").click()
    expect_preferences(page, site, {"below": "ask"})
    ask(page, ATLANTIS)
    expect(last(page).locator(".verdict")).to_contain_text("Not in the library")
    expect(last(page).locator(".reply")).to_contain_text("doesn't seem to hold an answer")
    last(page).get_by_role("button", name="Answer from the model's own knowledge").click()
    expect(last(page).locator(".versions")).to_have_text("2/2")
    expect(last(page).locator(".reply.unbacked p").first).to_have_text(LABEL)


def test_what_no_passage_answers_is_the_models_own_and_what_was_found_is_a_click_away(page: Page, ask) -> None:
    ask(page, ATLANTIS)
    expect(last(page).locator(".badge")).to_have_text("Model's own knowledge")
    expect(last(page).locator(".reply.unbacked p").first).to_have_text(LABEL)
    expect(last(page).locator(".chip")).to_have_count(0)
    found = page.locator("#sources")
    expect(found).to_contain_text("What was found doesn't seem to answer this.")
    expect(found.locator(".card")).to_have_count(4)
    expect(found.locator(".card").first).not_to_be_visible()
    found.get_by_text("Show what was found").click()
    expect(found.locator(".card").first).to_be_visible()
    last(page).get_by_role("button", name="Answer from these passages all the same").click()
    expect(last(page).locator(".versions")).to_have_text("2/2")
    expect(last(page).locator(".chip").first).to_be_visible()
    expect(last(page).locator(".badge")).to_have_count(0)
    expect(found.locator(".card").first).to_be_visible()


def test_on_a_phone_one_tap_shows_what_was_found(phone: Page, ask) -> None:
    ask(phone, ATLANTIS)
    last(phone).get_by_role("button", name="Show what was found").tap()
    expect(phone.locator("#sources .card").first).to_be_in_viewport()
