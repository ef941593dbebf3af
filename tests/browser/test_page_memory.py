"""A memory that people steer: reasons that can be corrected, questions about it, what it forgets, temporary chats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Page, expect

from ptkb.fields import fields_of
from tests.browser.conftest import Site, filled, quiet, tab
from tests.scripted import WORDS, WordEmbedder

DIET = "What is a good diet?"


@dataclass(eq=False)
class Counting(WordEmbedder):
    """Keeps what it was asked to encode."""

    texts: list[str] = field(default_factory=list)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += texts
        return super().encode(texts)


@pytest.fixture(scope="module", autouse=True)
def _fields_learned() -> None:
    """What tells the fields of facts is learned at first use, which takes seconds that no test is to wait for."""
    fields_of(["I run."], WORDS)


def texts(site: Site) -> list[str]:
    return [fact.text for fact in site.house.ptkb.facts("me")]


def test_a_fact_behind_a_reply_is_corrected_and_the_reply_answered_again(page: Page, site: Site, ask) -> None:
    site.house.ptkb.add("me", "I'm vegetarian.")
    ask(page, DIET)
    page.get_by_role("button", name="“I'm vegetarian.” wrong? fix it").click()
    editor = page.locator("#facts .pop[open] input")
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


def test_a_fact_that_was_only_said_is_named_as_such(page: Page, site: Site, ask) -> None:
    ask(page, f"I'm vegetarian. {DIET}")
    expect(page.locator(".because")).to_contain_text("“I'm vegetarian.” said in this conversation")
    expect(page.get_by_role("button", name="wrong? fix it")).to_have_count(0)
    expect(page.locator("#facts .fact")).to_have_count(0)
    assert texts(site) == []


def test_a_correction_that_is_refused_keeps_what_was_typed_and_offers_nothing(page: Page, site: Site, ask) -> None:
    for text in ("I'm vegetarian.", "I run."):
        site.house.ptkb.add("me", text)
    ask(page, DIET)
    page.get_by_role("button", name="“I'm vegetarian.” wrong? fix it").click()
    page.locator("#facts .pop[open] input").fill("I run!")
    page.keyboard.press("Enter")
    expect(page.locator("#notice").get_by_role("alert")).to_contain_text("known already")
    expect(page.get_by_role("button", name="Answer again with what is right now")).to_have_count(0)
    page.get_by_role("button", name="“I'm vegetarian.” wrong? fix it").click()
    expect(page.locator("#facts .pop[open] input")).to_have_value("I run!")


def test_on_a_phone_the_offer_is_shown_once_the_fact_is_corrected(phone: Page, site: Site, ask) -> None:
    site.house.ptkb.add("me", "I'm vegetarian.")
    ask(phone, DIET)
    phone.get_by_role("button", name="“I'm vegetarian.” wrong? fix it").click()
    phone.locator("#facts .pop[open] input").fill("I'm vegan.")
    phone.keyboard.press("Enter")
    expect(phone.get_by_role("button", name="Answer again with what is right now")).to_be_in_viewport()
    expect(phone.locator("#panel")).not_to_be_in_viewport()


def test_what_is_known_is_listed_and_forgotten_only_by_a_click(page: Page, site: Site, ask) -> None:
    for text in ("I'm vegetarian.", "I live in Oslo.", "I <b>run</b>."):
        site.house.ptkb.add("me", text)
    ask(page, "What do you know about me?")
    reply = page.locator("#transcript .reply")
    expect(reply).to_contain_text("I know 3 things about you:")
    expect(reply).to_contain_text("“I <b>run</b>.”")
    assert len(texts(site)) == 3
    page.locator("#transcript").get_by_role("button", name="Forget: I live in Oslo.").click()
    expect(reply.locator("s")).to_have_text("“I live in Oslo.”")
    assert texts(site) == ["I'm vegetarian.", "I <b>run</b>."]
    ask(page, "Forget that I'm vegetarian.")
    last = page.locator("#transcript article").last
    expect(last.locator(".reply")).to_contain_text("Nothing goes before you say so.")
    expect(last.locator(".known-facts li").first).to_contain_text("I'm vegetarian.")
    assert len(texts(site)) == 2
    last.get_by_role("button", name="Forget: I'm vegetarian.").click()
    expect(last.locator("s")).to_have_text("“I'm vegetarian.”")
    assert texts(site) == ["I <b>run</b>."]


def test_why_names_what_the_last_reply_rests_on(page: Page, site: Site, ask) -> None:
    site.house.ptkb.add("me", "I'm vegetarian.")
    ask(page, DIET)
    ask(page, "Why do you think that?")
    last = page.locator("#transcript article").last
    expect(last.locator(".reply")).to_contain_text("rests on these places in the library")
    expect(last.locator(".reply")).to_contain_text("A vegetarian plate: “Lentils, beans, tofu and eggs are rich")
    expect(last.locator(".known-facts")).to_contain_text("I'm vegetarian.")
    last.get_by_role("button", name="Show its sources").click()
    expect(page.locator("#sources")).to_contain_text(f"For “{DIET}”")


def test_a_temporary_chat_reads_no_facts_and_keeps_nothing(page: Page, site: Site, ask) -> None:
    site.house.ptkb.add("me", "I'm vegetarian.")
    switch = page.get_by_role("switch", name="Temporary chat")
    switch.click()
    expect(switch).to_be_checked()
    expect(page.locator(".temporary-note")).to_contain_text("none of your facts are read")
    ask(page, DIET)
    ask(page, "I've just become vegan")
    expect(page.locator(".because")).to_have_count(0)
    expect(page.locator(".offers")).to_have_count(0)
    expect(page.locator("#conversations li")).to_have_count(0)
    assert site.house.conversations.list("me") == []
    assert "#" not in page.url
    page.get_by_role("button", name="New conversation").click()
    expect(switch).not_to_be_checked()
    expect(page.locator(".temporary-note")).to_have_count(0)
    ask(page, DIET)
    expect(page.locator(".because")).to_contain_text("I'm vegetarian.")
    assert len(site.house.conversations.list("me")) == 1


def test_a_reload_ends_a_temporary_chat(page: Page, site: Site, ask) -> None:
    page.get_by_role("switch", name="Temporary chat").click()
    expect(page.locator(".temporary-note")).to_be_visible()
    ask(page, DIET)
    page.reload()
    expect(page.locator(".welcome")).to_be_visible()
    expect(page.locator("#transcript article")).to_have_count(0)


def test_what_was_remembered_from_a_message_goes_back_with_it_if_wanted(page: Page, site: Site, ask) -> None:
    site.house.ptkb.add("me", "I'm vegetarian.")
    for choice, left in (("Only the message", ["I'm vegan."]), ("Take back both", ["I'm vegetarian."])):
        ask(page, "I've just become vegan")
        page.locator(".offer", has_text="vegan").first.click()
        expect(page.locator(".kept")).to_contain_text("Remembered: “I'm vegan.”")
        page.get_by_label("Undo: take back the message").click()
        expect(page.locator(".way[open]")).to_contain_text("From this message I remembered “I'm vegan.”")
        page.get_by_role("button", name=choice).click()
        expect(page.locator("#transcript article")).to_have_count(0)
        expect(page.locator("#box")).to_have_value("I've just become vegan")
        assert texts(site) == left
        for fact in site.house.ptkb.facts("me"):
            site.house.ptkb.remove("me", fact.id)
        site.house.ptkb.add("me", "I'm vegetarian.")
        page.locator("#box").fill("")


def test_a_fact_leads_to_its_message_and_to_where_it_was_used_last(page: Page, site: Site, ask) -> None:
    ask(page, "I've just become vegan")
    page.locator(".offer", has_text="vegan").first.click()
    expect(page.locator(".kept")).to_contain_text("Remembered")
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator("#transcript article")).to_have_count(0)
    ask(page, DIET)
    tab(page, "My facts")
    origin = page.locator("#facts .origin")
    expect(origin).to_contain_text("Today")
    expect(origin).to_contain_text(f"last used for “{DIET}”")
    origin.get_by_role("button", name="from “I've just become vegan”").click()
    expect(page.locator("#transcript .said")).to_have_text("I've just become vegan")
    expect(page.locator("#transcript .reply")).to_be_focused()


def test_two_hundred_facts_are_folded_into_groups_and_filtered_without_the_server(page: Page, site: Site) -> None:
    counting = Counting()
    fields_of(["I run."], counting)  # learned before anybody comes, as the loader does
    site.loading.embeds = counting
    for n in range(200):
        site.house.ptkb.add("me", f"I like dish {n:03}.")
    site.house.ptkb.add("me", "I have asthma.")
    *dishes, last = site.house.ptkb.facts("me")
    site.house.ptkb.set_fields("me", {**{one.id: "food" for one in dishes}, last.id: "health"})
    page.reload()
    filled(page)
    quiet(page)
    tab(page, "My facts")
    groups = page.locator("#facts .group")
    expect(groups).to_have_count(2)
    expect(groups.first.locator("> summary")).to_have_text("Food 200")
    expect(page.locator("#facts .fact:visible")).to_have_count(0)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if "queue/join" in request.url else None)
    page.get_by_label("Filter your facts").fill("DISH 17")
    expect(page.locator("#facts .fact:visible")).to_have_count(10)
    page.get_by_label("Filter your facts").fill("no such")
    expect(page.locator("#filtered")).to_be_visible()
    page.get_by_label("Filter your facts").fill("")
    expect(page.locator("#facts .fact:visible")).to_have_count(0)
    assert sent == []
    counting.texts.clear()
    page.get_by_label("A fact about you").fill("I have asthma and hay fever.")
    page.keyboard.press("Enter")
    expect(page.locator("#facts")).to_contain_text("202 facts")
    assert counting.texts == ["I have asthma and hay fever."]  # adding one looks at that one alone


def test_of_two_facts_that_contradict_each_other_the_newer_counts(page: Page, site: Site) -> None:
    for text in ("I live in Bergen.", "I live in Oslo."):
        site.house.ptkb.add("me", text)
    page.reload()
    tab(page, "My facts")
    expect(page.locator("#facts .fact").first).to_contain_text("Not used: you said later “I live in Oslo.”")
    expect(page.locator("#facts .fact").nth(1)).not_to_contain_text("Not used")
