"""The middle of the page: asking, watching, citations, what follows an answer."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import Page, Route, expect

from assistant.types import Wait
from tests.browser.conftest import tab

DIET = "What is a good diet?"
# requests that wait until `go()` is called
HOLD = """() => { const real = fetch, held = new Promise(go => { window.go = go; });
  window.fetch = (...given) => held.then(() => real(...given)); }"""


def last(page: Page):
    return page.locator("#transcript article").last


def test_an_example_is_asked_with_one_click_and_once_with_two(page: Page, site) -> None:
    page.get_by_role("button", name=DIET).dblclick()
    expect(page.locator("#transcript .said")).to_have_text(DIET)
    expect(page.locator(".welcome")).to_have_count(0)
    expect(last(page).locator(".actions")).to_be_visible()
    expect(page.locator("#box")).to_have_value("")
    assert len(site.house.conversations.list("me")) == 1


def test_an_example_leaves_the_draft_in_the_box(page: Page) -> None:
    page.locator("#box").fill("half a thou")
    page.get_by_role("button", name=DIET).click()
    expect(page.locator("#transcript .said")).to_have_text(DIET)
    expect(page.locator("#box")).to_have_value("half a thou")


def test_what_is_typed_while_a_message_is_sent_stays(page: Page) -> None:
    page.evaluate(HOLD)
    page.locator("#box").fill("Hello")
    page.keyboard.press("Enter")
    page.keyboard.type(" and so on")
    page.evaluate("go()")
    expect(page.locator("#transcript .said")).to_have_text("Hello")
    expect(page.locator("#box")).to_have_value(" and so on")


def test_the_key_that_ends_composing_sends_and_stops_nothing(page: Page, site, ask) -> None:
    # As Safari tells it: after the end of the composing, with this number.
    press = """(area, key) => area.dispatchEvent(
      new KeyboardEvent('keydown', {key, keyCode: 229, bubbles: true, cancelable: true}))"""
    box = page.locator("#box")
    box.fill("良い食事")
    assert box.evaluate(press, "Enter"), "the key does what it does in the box"
    site.script.go.clear()
    ask(page, DIET, wait=False)
    expect(page.locator("#answering .steps summary")).to_have_text("Writing the answer")
    box.evaluate(press, "Escape")
    site.script.go.set()
    expect(last(page).locator(".reply")).to_contain_text("Combine legumes")
    expect(page.locator("#transcript .said")).to_have_text(DIET)


def test_how_an_answer_ended_is_said_while_it_is_shown(page: Page, site, ask) -> None:
    spoken = page.locator("#spoken")
    ask(page, "Hello")
    expect(spoken).to_have_text("Answered")
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".welcome")).to_be_visible()
    expect(spoken).to_have_text("")
    ask(page, "fail please")
    expect(spoken).to_have_text("")
    site.script.go.clear()
    ask(page, DIET, wait=False)
    expect(spoken).to_have_text("Writing the answer")
    page.keyboard.press("Escape")
    expect(spoken).to_have_text("Stopped")
    ask(page, DIET, wait=False)
    expect(spoken).to_have_text("Writing the answer")
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".welcome")).to_be_visible()
    expect(spoken).to_have_text("")
    site.script.go.set()


def test_the_line_above_tells_the_step_then_what_was_done(page: Page, site, ask) -> None:
    site.script.go.clear()
    ask(page, DIET, wait=False)
    line = page.locator("#answering .steps summary")
    expect(line).to_have_text("Writing the answer")
    expect(page.locator("#sources .card")).to_have_count(4)  # sources come before the answer
    expect(page.locator("#spoken")).to_have_text("Writing the answer")  # for screen readers
    site.script.go.set()
    expect(last(page).locator(".steps summary")).to_have_text("Read 4 passages, used 0 facts, 13 s")


def test_the_answer_grows_at_most_ten_times_a_second(page: Page, site, ask) -> None:
    site.script.pause = 0.02
    page.evaluate(
        """() => { window.seen = []; new MutationObserver(() => {
          const text = document.querySelector('#answering .reply')?.textContent ?? '';
          if (text && text !== window.seen.at(-1)?.[1]) window.seen.push([performance.now(), text]);
        }).observe(document.querySelector('#answering'), {childList: true, subtree: true, characterData: true}); }"""
    )
    ask(page, DIET)
    seen = page.evaluate("window.seen")
    texts = [text.strip() for _, text in seen if text.strip()]
    assert len(texts) >= 4
    assert sum(texts[n + 1].startswith(texts[n][:20]) for n in range(len(texts) - 1)) >= len(texts) - 2
    seconds = (seen[-1][0] - seen[0][0]) / 1000
    assert len(seen) <= 10 * seconds + 3


def test_what_is_open_stays_open_while_the_answer_grows_and_after(page: Page, site, ask) -> None:
    site.script.pause = 0.05
    ask(page, DIET, wait=False)
    page.locator("#answering .steps summary").click()
    expect(page.locator("#answering .inside blockquote")).to_be_visible()
    expect(page.locator("#transcript .steps[open] .inside table")).to_be_visible()


def test_the_steps_show_draft_queries_scores_and_tokens(page: Page, ask) -> None:
    ask(page, "Hello")
    ask(page, DIET)
    inside = last(page).locator(".inside")
    last(page).locator(".steps summary").click()
    expect(inside).to_contain_text(f"{DIET} (about Hello)")  # the question that stands alone
    expect(inside).to_contain_text("A good diet is varied")  # the draft
    expect(inside).to_contain_text("found by your question and the draft · 0.033")
    expect(inside.locator("tfoot")).to_contain_text("1023")  # tokens read, over all steps
    ways = "With a draft of the answer grg · All together, then one by one concat_pf"
    expect(inside).to_contain_text(f"{ways} · 4 passages · library “starter” · scripted")


def test_a_chip_shows_its_sentence(page: Page, ask) -> None:
    ask(page, DIET)
    last(page).locator(".chip").nth(1).click()
    card = page.locator("#sources .card.current")
    expect(card.locator("h3")).to_contain_text("Living without lactose")
    expect(card.locator("mark.current")).to_have_text(re.compile("^People with lactose intolerance .* soy drink.$"))
    expect(card).to_be_focused()
    expect(card.locator("mark.current")).to_be_in_viewport()


def test_a_number_that_is_pointed_at_tells_the_sentence_and_where_it_stands(page: Page, ask) -> None:
    ask(page, DIET)
    chips = last(page).locator(".chip")
    chips.first.hover()
    told = "Lentils, beans, tofu and eggs are rich in protein.\n— A vegetarian plate, Everyday shelf"
    expect(chips.first).to_have_attribute("title", told)
    partly = (
        "partly: Most adults eat less than 20 g a day, where 30 g would be better.\n— Fibre and satiety, Everyday shelf"
    )
    expect(chips.nth(2)).to_have_attribute("title", partly)


def test_two_citations_of_one_passage_lead_to_their_own_sentences(page: Page, ask) -> None:
    ask(page, DIET)
    first, again = last(page).locator(".chip").first, last(page).locator(".chip").last
    assert first.inner_text() == again.inner_text() == "1"
    again.click()
    expect(page.locator("mark.current")).to_have_text("Combine legumes with grains over the day.")
    first.click()
    expect(page.locator("mark.current")).to_have_text("Lentils, beans, tofu and eggs are rich in protein.")


def test_each_chip_of_a_sentence_opens_its_own_passage(page: Page, ask) -> None:
    ask(page, "What is said twice?")
    for place, quote in enumerate(("Combine legumes with grains over the day.", "Oats, legumes and fruit with skin")):
        last(page).locator(".chip").nth(place).click()
        expect(page.locator(".card.current mark.current")).to_contain_text(quote)


def test_chips_of_old_turns_lead_to_their_own_sources(page: Page, ask) -> None:
    ask(page, DIET)
    ask(page, "Hello")
    expect(page.locator("#sources")).to_contain_text("This reply needed no sources.")
    page.reload()
    page.locator("#transcript article").first.locator(".chip").nth(2).click()
    expect(page.locator("#sources")).to_contain_text(f"For “{DIET}”")
    expect(page.locator("mark.current")).to_have_text(
        "Most adults eat less than 20 g a day, where 30 g would be better."
    )


def test_a_citation_that_is_read_while_an_answer_is_written_stays(page: Page, site, ask) -> None:
    ask(page, DIET)
    site.script.go.clear()
    ask(page, "How much fibre?", wait=False)
    expect(page.locator("#sources")).to_contain_text("For “How much fibre?”")
    page.locator("#transcript .chip").nth(1).click()
    expect(page.locator("#sources .card.current")).to_contain_text("Living without lactose")
    site.script.go.set()
    expect(last(page).locator(".actions")).to_be_visible()
    expect(page.locator("#transcript article")).to_have_count(2)
    expect(page.locator("#sources")).to_contain_text(f"For “{DIET}”")
    expect(page.locator("#sources mark.current")).to_be_in_viewport()


def test_a_chip_is_pressed_from_the_keyboard(page: Page, ask) -> None:
    ask(page, DIET)
    expect(page.locator("#box")).to_be_focused()
    last(page).locator(".verdict button").focus()
    page.keyboard.press("Tab")
    expect(last(page).locator(".chip").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#sources .card.current")).to_be_focused()


def test_a_tap_on_a_chip_shows_its_sentence_and_then_opens_the_sheet(phone: Page, ask) -> None:
    ask(phone, DIET)
    chip, quote = last(phone).locator(".chip").nth(1), phone.get_by_role("dialog", name="Source 2")
    chip.tap()
    expect(quote).to_contain_text("People with lactose intolerance")
    expect(quote).to_contain_text("Living without lactose, Everyday shelf")
    expect(quote).to_be_in_viewport(ratio=1)
    expect(phone.locator("#panel")).not_to_be_in_viewport()
    phone.locator(".said").last.tap()
    expect(quote).to_be_hidden()
    chip.tap()
    phone.keyboard.press("Escape")
    expect(quote).to_be_hidden()
    chip.tap()
    quote.get_by_role("button", name="Open the source").tap()
    expect(quote).to_be_hidden()
    expect(phone.locator("mark.current")).to_have_text(re.compile("^People with lactose intolerance"))
    expect(phone.locator("mark.current")).to_be_in_viewport()
    phone.keyboard.press("Escape")
    expect(phone.locator("#panel")).not_to_be_in_viewport()


def test_on_a_phone_a_keyboard_opens_the_sheet_at_once(phone: Page, ask) -> None:
    ask(phone, DIET)
    last(phone).locator(".said").tap()
    last(phone).locator(".chip").nth(1).focus()
    phone.keyboard.press("Enter")
    expect(phone.locator("mark.current")).to_be_in_viewport()
    expect(phone.get_by_role("dialog")).to_have_count(0)
    phone.keyboard.press("Escape")
    expect(phone.locator("#panel")).not_to_be_in_viewport()


def test_a_sentence_without_support_is_marked_not_hidden(page: Page, ask) -> None:
    ask(page, DIET)
    mark = last(page).locator(".reply .unsupported")
    expect(mark).to_have_count(1)
    expect(mark).to_contain_text("A good diet also makes you happy.")
    assert mark.get_attribute("title") == "No passage says this"
    expect(last(page).locator(".legend").last).to_contain_text("have no passage that says the same")


def test_a_source_that_says_a_part_looks_weaker_and_says_so(page: Page, ask) -> None:
    ask(page, DIET)
    chip = last(page).locator(".chip.partly")
    expect(chip).to_have_count(1)
    assert (chip.get_attribute("aria-label") or "").startswith("Source 3, partly: Most adults")
    expect(last(page).locator(".legend").first).to_contain_text("says a part of the sentence")


def test_the_reply_names_the_facts_it_used(page: Page, site, ask) -> None:
    site.house.ptkb.add("me", "I'm vegetarian.")
    ask(page, DIET)
    expect(last(page).locator(".because")).to_contain_text("“I'm vegetarian.”")


def test_an_unknown_answer_says_so_and_offers_the_models_own(page: Page, ask) -> None:
    ask(page, "An unknown thing")
    expect(last(page).locator(".reply")).to_contain_text("The library doesn't hold an answer to this.")
    expect(last(page)).to_contain_text("so each was asked alone")
    own = last(page).locator(".own")
    expect(own.locator("strong")).not_to_be_visible()
    own.locator("summary").click()
    expect(own).to_contain_text("It may be 42")
    expect(own.locator(".label")).to_contain_text("No passage backs it")
    last(page).locator(".steps summary").click()
    expect(last(page).locator(".inside")).to_contain_text("1 of 4 votes")


def test_nothing_is_remembered_without_a_click(page: Page, site, ask) -> None:
    ask(page, "I've just become vegan")
    expect(last(page).locator(".offer")).to_have_count(2)
    assert site.house.ptkb.facts("me") == []
    last(page).get_by_role("button", name="Remember “I like oats.”?").click()
    expect(last(page).locator(".kept")).to_contain_text("I like oats.")
    expect(last(page).get_by_role("button", name="Remember “I'm vegan.”?")).to_be_focused()
    assert [fact.text for fact in site.house.ptkb.facts("me")] == ["I like oats."]
    assert site.house.ptkb.facts("me")[0].source == last(page).get_attribute("data-turn")


def test_a_contradicting_fact_is_offered_as_a_replacement(page: Page, site, ask) -> None:
    site.house.ptkb.add("me", "I'm vegetarian.")
    ask(page, "I've just become vegan")
    last(page).get_by_role("button", name="Replace “I'm vegetarian.” with “I'm vegan.”?").click()
    expect(last(page).locator(".kept")).to_contain_text("I'm vegan.")
    last(page).get_by_role("button", name="Remember “I like oats.”?").click()
    expect(page.locator("#box")).to_be_focused()
    assert [fact.text for fact in site.house.ptkb.facts("me")] == ["I'm vegan.", "I like oats."]


def test_a_banner_stays_while_an_answer_is_written_and_goes_with_the_next(page: Page, site, ask) -> None:
    alert = page.locator("#notice").get_by_role("alert")
    site.script.go.clear()
    ask(page, DIET, wait=False)
    expect(page.locator("#answering .steps summary")).to_have_text("Writing the answer")
    tab(page, "My facts")
    page.get_by_label("A fact about you").fill(" ")
    page.keyboard.press("Enter")
    expect(alert).to_contain_text("empty")
    site.script.go.set()
    expect(last(page).locator(".actions")).to_be_visible()
    expect(alert).to_contain_text("empty")
    ask(page, "Hello")
    expect(alert).to_have_count(0)


def test_stop_keeps_what_was_written(page: Page, site, ask) -> None:
    site.script.pause = 0.1
    ask(page, DIET, wait=False)
    expect(page.locator("#answering .reply")).to_contain_text("Lentils, beans")
    page.get_by_role("button", name="Stop").click()
    expect(last(page).locator(".halted")).to_be_visible()
    expect(last(page).locator(".reply")).to_contain_text("Lentils, beans")
    expect(page.locator("#box")).to_be_focused()
    page.reload()
    expect(last(page).locator(".reply")).to_contain_text("Lentils, beans")


def test_escape_stops(page: Page, site, ask) -> None:
    site.script.go.clear()
    ask(page, DIET, wait=False)
    expect(page.locator("#answering .steps summary")).to_have_text("Writing the answer")
    page.keyboard.press("Escape")
    expect(last(page).locator(".halted")).to_be_visible()


def test_answer_again_puts_a_new_reply_in_the_place_of_the_old(page: Page, site, ask) -> None:
    ask(page, DIET)
    old = last(page).get_attribute("data-turn")
    page.get_by_role("button", name="Answer again", exact=True).click()
    expect(page.locator(f"#turn-{old}")).to_have_count(0)
    expect(page.locator("#transcript article .actions")).to_have_count(1)
    expect(last(page).locator(".said")).to_have_text(DIET)


def test_undo_gives_the_message_back_before_what_is_in_the_box(page: Page, site, ask) -> None:
    ask(page, DIET)
    ask(page, "Hello")
    page.locator("#box").fill("and thanks")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#transcript article")).to_have_count(1)
    expect(page.locator("#box")).to_have_value("Hello\nand thanks")
    expect(page.locator("#box")).to_be_focused()
    conversation = site.house.conversations.list("me")[0]
    assert conversation.turns == 1


def test_copy_takes_the_text_with_its_numbers(page: Page, context, ask) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    ask(page, DIET)
    copy, box = last(page).get_by_role("button", name="Copy the reply"), page.locator("#box")
    page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined, configurable: true})")
    for prepare in ("0", "delete navigator.clipboard; navigator.clipboard.writeText('')"):  # over plain http, then not
        expect(copy).not_to_have_class(re.compile("done"))
        page.evaluate(prepare)
        copy.click()
        expect(copy).to_have_class(re.compile("done"))
        box.fill("")
        box.press("ControlOrMeta+v")
        expect(box).to_have_value(re.compile(r"without meat\.\s*\[1\]"))
        assert "No passage says this" not in box.input_value()


def test_thumbs_are_kept_and_taken_back(page: Page, site, ask) -> None:
    ask(page, DIET)
    conversation, turn = site.house.conversations.list("me")[0].id, last(page).get_attribute("data-turn")
    good, bad = (page.get_by_role("button", name=name) for name in ("A good reply", "A bad reply"))
    good.click()
    expect(good).to_have_attribute("aria-pressed", "true")
    assert site.house.conversations.get("me", conversation).feedback == {turn: 1}
    bad.click()
    expect(bad).to_have_attribute("aria-pressed", "true")
    expect(good).to_have_attribute("aria-pressed", "false")
    bad.click()
    expect(bad).to_have_attribute("aria-pressed", "false")
    assert site.house.conversations.get("me", conversation).feedback == {}


def test_the_focus_is_back_in_the_box_and_shift_enter_makes_a_line(page: Page, ask) -> None:
    ask(page, "Hello")
    expect(page.locator("#box")).to_be_focused()
    page.keyboard.type("one")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("two")
    expect(page.locator("#box")).to_have_value("one\ntwo")
    expect(page.locator("#transcript article")).to_have_count(1)


def test_a_turn_that_fails_says_why_and_can_be_tried_again(page: Page, ask) -> None:
    ask(page, "fail please")
    expect(last(page).get_by_role("alert")).to_contain_text("ran out of memory")
    expect(page.get_by_role("button", name="Answer again", exact=True)).to_be_visible()


def test_a_message_that_cannot_be_answered_comes_back(page: Page, site) -> None:
    text = "x" * 100_000
    page.locator("#box").fill(text)
    page.keyboard.press("Enter")
    expect(page.locator("#notice").get_by_role("alert")).to_contain_text("too many characters")
    expect(page.locator("#box")).to_have_value(text)
    assert site.house.conversations.list("me") == []


def test_odd_messages_are_shown_as_they_are(page: Page, ask) -> None:
    for text in ("שלום, מה שלומך?", "🥦🧀 ok? 👩‍👩‍👧", "良い食事とは何ですか?", 'AND (title:"x~ OR *'):
        ask(page, text)
        expect(last(page).locator(".said")).to_have_text(text)


def test_an_empty_message_is_not_sent(page: Page, site) -> None:
    page.locator("#box").fill("   ")
    page.keyboard.press("Enter")
    time.sleep(0.5)
    expect(page.locator("#transcript article")).to_have_count(0)
    assert site.house.conversations.list("me") == []


def asked_while_loading(page: Page, site) -> None:
    site.loading.ready = False
    page.reload()
    page.locator("#box").fill(DIET)
    page.keyboard.press("Enter")
    expect(page.locator("#answering article")).to_contain_text("Waiting until everything is ready")


def test_what_is_loading_is_told_and_a_question_waits_for_it(page: Page, site, context) -> None:
    asked_while_loading(page, site)
    expect(page.locator("#loading")).to_contain_text("Starter library")
    expect(page.locator("#loading")).to_contain_text("42 %")
    expect(page.locator("#box")).to_have_value("")
    page.reload()
    expect(page.locator("#answering article")).to_contain_text("Waiting until everything is ready")
    site.loading.ready = True
    expect(page.locator("#loading .loading")).to_have_count(0)
    expect(page.locator("#transcript article .reply")).to_contain_text("Lentils")
    expect(page.locator("#notice").get_by_role("alert")).to_have_count(0)


def test_what_a_question_waits_for_is_told_above_its_answer(page: Page, site) -> None:
    asked_while_loading(page, site)
    line = page.locator("#answering .steps summary")
    expect(line.locator(".wait")).to_have_text("Starter library, 42 %")
    expect(page.locator("#spoken")).to_have_text("Waiting until everything is ready")
    with site.house.chat.arrivals.track("me") as tell:
        tell(1, 4)
        site.loading.ready = True
        expect(line.locator(".wait")).to_have_text("your documents, 25 %")
    expect(page.locator("#transcript article .reply")).to_contain_text("Lentils")
    expect(page.locator("#transcript .wait")).to_have_count(0)


def test_how_far_the_reading_is_is_told_above_the_answer_and_not_said(page: Page, site, ask) -> None:
    site.script.go.clear()
    site.script.wait = Wait("prompt", "", 640, 1216)
    ask(page, DIET, wait=False)
    line = page.locator("#answering .steps summary")
    expect(line.locator(".doing")).to_have_text("Writing the answer")
    expect(line.locator(".wait")).to_have_text("reads 640 of 1,216 tokens")
    expect(page.locator("#spoken")).to_have_text("Writing the answer")
    site.script.wait = None
    expect(line.locator(".wait")).to_have_count(0)
    site.script.go.set()
    expect(page.locator("#transcript article .reply")).to_contain_text("Lentils")


def test_a_question_is_there_before_the_server_has_said_anything(page: Page) -> None:
    page.evaluate(HOLD)
    page.locator("#box").fill("What is <b>a good</b> diet?")
    page.keyboard.press("Enter")
    expect(page.locator("#answering .said")).to_have_text("What is <b>a good</b> diet?")
    expect(page.locator("#answering")).to_contain_text("Sending")
    expect(page.locator(".welcome")).to_be_hidden()
    page.evaluate("go()")
    expect(page.locator("#transcript .said")).to_have_text("What is <b>a good</b> diet?")
    expect(page.locator(".sent")).to_have_count(0)


def test_a_question_that_is_faster_than_the_page_is_answered(page: Page, site) -> None:
    held: list[Route] = []
    holds = True
    site.script.go.clear()
    page.route("**/queue/join*", lambda route: held.append(route) if holds else route.continue_())
    page.reload()
    page.locator("#box").fill(DIET)
    page.keyboard.press("Enter")
    expect(page.locator("#answering .sent .said")).to_have_text(DIET)
    page.wait_for_timeout(300)
    holds = False
    for request in held:
        request.continue_()
        page.wait_for_timeout(500)
    expect(page.locator("#answering .steps summary")).to_have_text("Writing the answer")
    site.script.go.set()
    expect(page.locator("#transcript article .reply")).to_contain_text("Lentils")
    expect(page.locator("#box")).to_have_value("")
    assert len(site.house.conversations.list("me")) == 1


def test_a_question_that_is_refused_does_not_stay(page: Page, site) -> None:
    page.locator("#box").fill("x" * (site.house.settings.turn.max_utterance_chars + 1))
    page.keyboard.press("Enter")
    expect(page.locator("#notice").get_by_role("alert")).to_contain_text("too many characters")
    expect(page.locator(".sent")).to_have_count(0)
    expect(page.locator(".welcome")).to_be_visible()


@pytest.mark.parametrize("told", ["This is too long to be read at once.", ""])
def test_a_message_that_the_server_doesnt_take_goes_back_into_the_box(page: Page, site, ask, told: str) -> None:
    def refuse(route: Route) -> None:
        if told:
            route.fulfill(status=413, body=told, content_type="text/plain")
        else:
            route.abort("connectionreset")

    page.route("**/queue/join*", refuse)
    page.locator("#box").fill("A long message")
    page.keyboard.press("Enter")
    expect(page.locator(".notice.refused")).to_contain_text(told or "see that it is not too long")
    expect(page.locator(".sent")).to_have_count(0)
    expect(page.locator("#box")).to_have_value("A long message")
    page.unroute("**/queue/join*")
    if told:
        ask(page, DIET)


def test_a_message_that_no_server_takes_is_not_sent(page: Page, site, ask) -> None:
    page.locator("#box").evaluate("box => { box.value = 'x'.repeat(1_000_001); }")
    page.locator("#box").press("Enter")
    expect(page.locator(".notice.refused")).to_contain_text("too long to be read at once")
    assert page.locator("#box").evaluate("box => box.value.length") == 1_000_001
    ask(page, DIET)


@pytest.mark.parametrize("press", ["Temporary chat", "New conversation"])
def test_a_message_sent_while_another_conversation_is_on_its_way_belongs_to_that(
    page: Page, site, ask, press: str
) -> None:
    ask(page, DIET)
    first = site.house.conversations.list("me")[0].id
    page.evaluate(HOLD)
    page.get_by_role("switch" if press == "Temporary chat" else "button", name=press).click()
    page.locator("#box").fill("Something private")
    page.keyboard.press("Enter")
    page.evaluate("go()")
    expect(page.locator("#transcript .said")).to_have_text("Something private")
    expect(page.locator("#transcript .reply")).to_be_visible()
    assert [turn.utterance for turn in site.house.conversations.get("me", first).turns] == [DIET]
    assert len(site.house.conversations.list("me")) == (1 if press == "Temporary chat" else 2)


def test_a_page_that_is_looked_at_before_its_conversation_has_come_shows_it(page: Page, site, ask) -> None:
    ask(page, DIET)
    background = page.context.new_page()
    background.add_init_script(
        "setInterval(() => document.querySelector('#transcript [data-live]') && "
        "!document.querySelector('#transcript article') && document.dispatchEvent(new Event('visibilitychange')), 20);"
    )
    background.route("**/queue/join*", lambda route: (time.sleep(0.5), route.continue_()))
    background.goto(page.url)
    expect(background.locator("#transcript .said")).to_have_text(DIET)
    background.wait_for_timeout(1000)
    expect(background.locator("#transcript .said")).to_have_text(DIET)
    assert "#" in background.url
    background.close()


def test_a_question_that_can_not_be_sent_stays_in_the_box_alone(page: Page, context) -> None:
    page.locator("#box").fill(DIET)
    context.set_offline(True)
    page.keyboard.press("Enter")
    expect(page.locator("body")).to_have_class(re.compile("down"))
    expect(page.locator(".sent")).to_have_count(0)
    expect(page.locator("#box")).to_have_value(DIET)


# Lets the page's checks of the server run out of time, as many as it says, and counts them.
LATE = """(times) => {
    window.late = 0;
    const real = window.fetch;
    window.fetch = async (path, options) => {
        if (!String(path).includes("app_id")) return real(path, options);
        window.late += 1;
        if (window.late > times) return real(path, options);
        throw new DOMException("late", "TimeoutError");
    };
}"""


@pytest.mark.parametrize(("times", "away"), [(1, False), (2, True)])
def test_a_server_that_is_late_once_is_not_away(page: Page, times: int, away: bool) -> None:
    page.evaluate(LATE, times)
    page.evaluate("""() => new MutationObserver(() => {
        window.wasDown ||= document.body.classList.contains("down");
    }).observe(document.body, {attributeFilter: ["class"]})""")
    page.wait_for_function("times => window.late > times", arg=times)
    expect(page.locator("body")).not_to_have_class(re.compile("down"))
    assert bool(page.evaluate("window.wasDown")) is away


def test_a_question_that_waits_can_be_stopped(page: Page, site) -> None:
    asked_while_loading(page, site)
    page.keyboard.press("Escape")
    expect(page.locator("#transcript article")).to_contain_text("Stopped")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#box")).to_have_value(DIET)


def test_a_question_that_waited_in_vain_is_told_why(page: Page, site) -> None:
    asked_while_loading(page, site)
    site.loading.error = "The model can't be fetched; connect to the internet once."
    expect(page.locator("#transcript article")).to_contain_text("connect to the internet once")
    expect(page.locator("#transcript article .said")).to_have_text(DIET)


def test_loading_that_failed_is_told(page: Page, site) -> None:
    site.loading.ready, site.loading.error = False, "The model can't be fetched; connect to the internet once."
    page.reload()
    expect(page.locator("#loading").get_by_role("alert")).to_contain_text("can't be fetched")
