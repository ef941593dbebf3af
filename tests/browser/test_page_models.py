"""The model panel and tokens of programs: switching, adding, testing, servers that go away, and who may."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from playwright.sync_api import Browser, Page, expect

from assistant.llm import rating
from assistant.llm.catalogue import Catalogue, Entry
from assistant.llm.known_models import AddedServer
from assistant.llm.sources import Hub
from assistant.llm.speed_test import MeasuredSpeed, processor_of
from assistant.web import models as menu
from assistant.web.server import serve
from tests.browser.conftest import PHONE, Site, opened, tab
from tests.browser.fake import Loaded, Named, Script, house
from tests.hub import StandInHub, stand_in_hub
from tests.servers import KEY, StandIn, lm_studio, plain

DIET = "What is a good diet?"
USUAL, SMALL = "qwen2.5-coder-1.5b-instruct", "smollm2-135m"


@pytest.fixture(autouse=True)
def _anew(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All of the catalogue counts as fetched, no server of this computer is found; afterwards none is added."""

    async def nothing() -> list[object]:
        return []

    monkeypatch.setattr(menu, "local_servers", nothing)
    monkeypatch.setattr(Catalogue, "is_here", lambda *_: True)
    yield
    models = site.house.models
    site.script.loads.set()
    for known in models.known.added():
        models.known.remove(known.id)
    models.switch(USUAL)
    models.loaded(10, USUAL)
    for token in site.house.tokens.list("me"):
        site.house.tokens.revoke("me", token.id)


@pytest.fixture
def server() -> Iterator[StandIn]:
    with StandIn(plain(lambda _: "Oat drink.", models=("small", "large")), KEY) as there:
        yield there


def card(page: Page, title: str):
    return page.locator("#models .engine", has_text=title)


def answered_by(page: Page):
    return page.locator("#transcript article").last.locator(".by")


def fill(page: Page, address: str, model: str = "", key: str = "", context: str = "") -> None:
    form = page.locator("#add-server")
    if form.get_attribute("open") is None:
        form.locator("summary").click()
    for name, value in (("address", address), ("model", model), ("key", key), ("context", context)):
        page.locator(f"#server-{name}").fill(value)


def test_a_model_is_switched_to_with_the_next_message_and_each_reply_says_who_wrote_it(
    page: Page, site: Site, ask
) -> None:
    ask(page, DIET)
    before = site.house.models.running.name
    expect(answered_by(page)).to_have_text(before)
    tab(page, "Model")
    site.script.loads.clear()
    page.get_by_role("button", name=f"Use {SMALL}").click()
    expect(page.get_by_role("progressbar", name=f"Loading {SMALL}")).to_be_visible()
    expect(page.locator("#models .stage")).to_contain_text("30 %")
    ask(page, DIET)
    expect(answered_by(page)).to_have_text(before)
    site.script.loads.set()
    expect(page.locator("#notice")).to_contain_text(f"{SMALL} answers from the next message on.")
    expect(page.locator("#models .engine").first).to_contain_text(SMALL)
    expect(card(page, SMALL).locator(".badge")).to_have_text("answers now")
    ask(page, DIET)
    expect(answered_by(page)).to_have_text(SMALL)


def test_a_server_is_tested_added_used_and_removed_and_its_key_is_not_shown(
    page: Page, site: Site, server: StandIn, ask
) -> None:
    tab(page, "Model")
    fill(page, server.address, key="a-wrong-key")
    page.get_by_role("button", name="Test").click()
    expect(page.locator("#probed .failure")).to_contain_text("refuses the key")
    page.locator("#server-key").fill(KEY)
    page.get_by_role("button", name="Test").click()
    expect(page.locator("#probed .failure")).to_have_text("It has 2 models; choose one of them.")
    page.locator("#probed").get_by_role("button", name="large").click()
    page.get_by_role("button", name="Test").click()
    expect(page.locator("#probed")).to_contain_text("OpenAI-compatible answers with large.")
    expect(page.locator("#probed dl")).to_contain_text("no, so without the second look")
    expect(page.locator("#probed dl")).to_contain_text("Tells how likely a text is")
    expect(page.locator("#probed dl")).to_contain_text("not known")
    expect(page.locator("#server-key")).to_have_value(KEY)
    page.get_by_role("button", name="Add", exact=True).last.click()
    expect(card(page, "large")).to_contain_text("server at 127.0.0.1")
    expect(page.locator("#server-key")).to_have_value("")
    assert KEY not in page.content()
    page.get_by_role("button", name="Use large").click()
    expect(card(page, "large").last.locator(".badge")).to_be_visible()
    ask(page, DIET)
    expect(answered_by(page)).to_have_text("large")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Remove large").click()
    expect(page.get_by_role("button", name="Remove large")).to_have_count(0)
    assert site.house.models.known.added() == []


def test_a_server_that_is_added_without_a_model_is_called_as_the_one_that_answers(page: Page, site: Site, ask) -> None:
    with StandIn(lm_studio(lambda _: "Oat drink.")) as there:
        tab(page, "Model")
        fill(page, there.address)
        page.get_by_role("button", name="Add", exact=True).last.click()
        expect(page.locator("#notice")).to_contain_text("small was added.")
        expect(card(page, "small")).to_contain_text(f"server at {there.address.partition('://')[2]}")
        page.get_by_role("button", name="Use small").click()
        expect(page.locator("#notice")).to_contain_text("small answers from the next message on.")
        page.reload()
        tab(page, "Model")
        expect(page.get_by_role("button", name="Remove small")).to_be_visible()


def test_what_a_test_found_stays_while_something_else_changes(page: Page, site: Site, server: StandIn) -> None:
    tab(page, "Model")
    fill(page, server.address, "large", KEY)
    page.get_by_role("button", name="Test").click()
    expect(page.locator("#probed")).to_contain_text("answers with large.")
    site.house.models.switch(SMALL)  # in another tab
    expect(card(page, SMALL).locator(".badge")).to_have_text("answers now")
    expect(page.locator("#probed")).to_contain_text("answers with large.")
    page.get_by_role("button", name="Add", exact=True).last.click()
    expect(page.locator("#server-address")).to_have_value("")
    expect(page.locator("#probed")).to_have_text("")


def test_what_cannot_be_a_server_is_told_and_the_form_keeps_what_was_typed(page: Page, site: Site) -> None:
    tab(page, "Model")
    for address, context, why in (
        ("ftp://somewhere", "", "is no address of a server"),
        ("http://127.0.0.1:9", "many", "The context is a number of tokens, 1,024 at least"),
        ("http://127.0.0.1:9", "1000", "The context is a number of tokens, 1,024 at least"),
    ):
        fill(page, address, context=context)
        page.get_by_role("button", name="Add", exact=True).last.click()
        expect(page.locator("#notice").get_by_role("alert")).to_contain_text(why)
        page.locator("#add-server summary").click()
        expect(page.locator("#server-address")).to_have_value(address)
        page.locator("#add-server summary").click()
    fill(page, "http://127.0.0.1:9")
    page.get_by_role("button", name="Test").click()
    expect(page.locator("#probed .failure")).to_contain_text("No server answers at http://127.0.0.1:9")
    expect(page.get_by_role("button", name="Test")).to_be_enabled()
    assert site.house.models.known.added() == []


def test_a_server_that_goes_away_is_told_and_the_model_before_goes_on(page: Page, site: Site, ask) -> None:
    with StandIn(lm_studio(lambda _: "Oat drink.")) as there:
        site.house.models.known.add(AddedServer(address=there.address, model="small"))
        tab(page, "Model")
        expect(card(page, "small").locator(".absence")).to_have_count(0)
    page.get_by_role("button", name="Use small").click()
    expect(page.locator("#notice").get_by_role("alert")).to_contain_text("No server answers at http")
    expect(page.locator("#notice").get_by_role("alert")).to_contain_text("goes on answering.")
    expect(card(page, "small").locator(".absence")).to_contain_text("No server answers at http")
    ask(page, DIET)
    expect(answered_by(page)).to_have_text(site.house.models.running.name)


def test_that_smaller_judges_stand_in_is_told_where_it_is_told_what_runs(page: Page, site: Site) -> None:
    tab(page, "Model")
    running = page.locator("#models .engine").first
    expect(running.locator(".pace")).to_be_visible()
    expect(running).not_to_contain_text("judges")
    site.loading.judges = "Smaller judges stand in for the larger ones."
    tab(page, "Sources")
    tab(page, "Model")
    expect(running).to_contain_text("Smaller judges stand in for the larger ones.")


def test_a_running_server_that_went_away_is_seen_when_the_menu_is_opened(page: Page, site: Site) -> None:
    with StandIn(lm_studio(lambda _: "Oat drink.")) as there:
        known = site.house.models.known.add(AddedServer(address=there.address, model="small"))
        site.house.models.switch(known.id)
        assert site.house.models.loaded(10, known.id)
    tab(page, "Model")
    expect(page.locator("#models .engine").first.get_by_role("alert")).to_contain_text("No server answers at http")


def test_a_server_that_was_found_is_used_with_one_click(
    page: Page, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StandIn(lm_studio(lambda _: "Oat drink.")) as there:

        async def found() -> list[menu.LocalServer]:
            return [menu.LocalServer("LM Studio", there.address, ("small",))]

        monkeypatch.setattr(menu, "local_servers", found)
        tab(page, "Model")
        expect(card(page, "small")).to_contain_text("found on this computer")
        page.get_by_role("button", name="Use small").click()
        expect(page.locator("#models .engine").first).to_contain_text("small")
        expect(page.get_by_role("button", name="Remove small")).to_be_visible()


def test_nobody_is_asked_before_the_menu_is_opened(page: Page, monkeypatch: pytest.MonkeyPatch, ask) -> None:
    asked = []

    async def found() -> list[menu.LocalServer]:
        asked.append(True)
        return []

    monkeypatch.setattr(menu, "local_servers", found)
    ask(page, DIET)
    tab(page, "Settings")
    assert not asked
    tab(page, "Model")
    expect(page.locator("#models")).to_contain_text("No server of language models was found")
    assert asked


def test_another_model_answers_again_once_it_is_loaded(page: Page, site: Site, server: StandIn, ask) -> None:
    site.house.models.known.add(AddedServer(address=server.address, model="large", key=KEY))
    ask(page, DIET)
    page.get_by_text("Answer again with…").last.click()
    page.get_by_role("group", name="Models").get_by_role("button", name="large").click()
    expect(page.locator("#transcript .versions")).to_have_text("2/2")
    expect(answered_by(page)).to_have_text("large")


def test_an_answer_by_a_model_that_cannot_be_had_leaves_the_reply(page: Page, site: Site, ask) -> None:
    site.house.models.known.add(AddedServer(address="http://127.0.0.1:9", model="gone"))
    ask(page, DIET)
    before = answered_by(page).inner_text()
    page.get_by_text("Answer again with…").last.click()
    page.get_by_role("group", name="Models").get_by_role("button", name="gone").click()
    expect(page.locator("#notice").get_by_role("alert")).to_contain_text("No server answers at http://127.0.0.1:9")
    expect(page.locator("#transcript article")).to_have_count(1)
    expect(answered_by(page)).to_have_text(before)


def test_who_may_not_choose_sees_what_answers_and_nothing_of_servers(browser: Browser, tmp_path: Path, ask) -> None:
    built, logins = house(tmp_path, Script(), Loaded())
    built.models.known.add(AddedServer(address="http://10.0.0.7", model="large"))
    served = serve(replace(built, may_switch=lambda _: False), logins)
    context = browser.new_context()
    page = context.new_page()
    page.goto(served.url)
    ask(page, DIET)
    expect(page.get_by_role("group", name="Models")).to_have_count(0)
    tab(page, "Model")
    expect(page.locator("#models .engine").first).to_contain_text("scripted")
    expect(page.locator("#models")).to_contain_text("is chosen by those whom the setting web.admins names")
    assert "10.0.0.7" not in page.content()
    expect(page.locator("#models").get_by_role("button")).to_have_count(0)
    page.evaluate("""() => {
        const button = Object.assign(document.createElement("button"), { textContent: "Sneak" });
        Object.assign(button.dataset, { event: "use", model: "smollm2-135m" });
        document.querySelector("#models .models").append(button);
        button.click();
    }""")
    expect(page.locator("#notice").get_by_role("alert")).to_contain_text("ask one of them")
    assert built.models.change is None
    context.close()
    served.close()


def test_a_model_of_the_catalogue_is_fetched_with_a_bar_stopped_and_then_used(
    page: Page, site: Site, monkeypatch: pytest.MonkeyPatch, ask
) -> None:
    chat = Entry(
        name="chat", kind="gguf", template="in it", parameters=1.0, listed_size=300_000, about="small and quick",
        hub=Hub(repo="someone/chat", file="chat.gguf"),
    )  # fmt: skip
    listed = Catalogue([*Catalogue.load().entries, chat])
    monkeypatch.setattr(Catalogue, "load", staticmethod(lambda: listed))
    monkeypatch.setattr(Catalogue, "is_here", lambda _self, name, _: name != "chat")
    with stand_in_hub({"someone/chat/chat.gguf": b"GGUF" + bytes(300_000)}, monkeypatch) as hub:
        hub.pause = 0.2
        tab(page, "Model")
        expect(page.locator("#model-chat")).to_contain_text("of memory")
        page.get_by_role("button", name="Fetch and use chat").click()
        expect(page.locator("#models").get_by_role("progressbar", name="Fetching chat")).to_be_visible()
        expect(page.locator("#models .stage")).to_contain_text("%")
        page.get_by_role("button", name="Stop fetching").click()
        expect(page.locator("#models .stage")).to_have_count(0)
        assert site.house.models.running.name != "chat"
        hub.pause = 0
        page.get_by_role("button", name="Fetch and use chat").click()
        expect(page.locator("#notice")).to_contain_text("chat answers from the next message on.")
    ask(page, DIET)
    expect(answered_by(page)).to_have_text("chat")


def test_stop_is_one_button_while_the_bar_moves_and_a_slow_press_on_it_is_heard(
    page: Page, site: Site, offering: StandInHub
) -> None:
    offering.pause = 0.4
    fetching = site.house.models.fetching
    tab(page, "Model")
    page.locator("#model-larger").get_by_role("button").click()
    for piece in ("#models", "#offer"):
        bar, stop = page.locator(f"{piece} progress"), page.locator(f"{piece} [data-event=halt]")
        drawn = bar.get_attribute("value")
        button = stop.element_handle()
        expect(bar).not_to_have_attribute("value", drawn)
        assert button.evaluate("one => one.isConnected")
    stop.hover()
    page.mouse.down()
    drawn = bar.get_attribute("value")
    expect(bar).not_to_have_attribute("value", drawn)
    page.mouse.up()
    expect(page.locator("progress")).to_have_count(0)
    assert not fetching.state.under_way
    assert site.house.models.running.known.id == USUAL


@pytest.fixture
def offering(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInHub]:
    """The model that runs is a small one whose speed is known; a larger one alone is at a hub and not here."""
    models, settings = site.house.models, site.house.settings
    larger = Entry(
        name="larger", kind="gguf", template="in it", parameters=3.0, listed_size=300_000,
        licence="Research", commercial=False, hub=Hub(repo="a/b", file="c.gguf"),
    )  # fmt: skip
    smaller = [one.model_copy(update={"parameters": 0.0}) for one in Catalogue.load().entries if one.name != USUAL]
    listed = Catalogue([*smaller, larger, Catalogue.load().entry(USUAL)])
    monkeypatch.setattr(Catalogue, "load", staticmethod(lambda: listed))
    monkeypatch.setattr(Catalogue, "is_here", lambda _self, name, _: name != "larger")
    place = processor_of("llama.cpp", settings.llm)
    speed = MeasuredSpeed(USUAL, "llama.cpp", place, listed.entry(USUAL).size, read=200.0, written=20.0)
    (settings.data_dir / "speeds.json").write_text(json.dumps([asdict(speed)]))
    monkeypatch.setattr(rating, "backend_of", lambda _: "llama.cpp")
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=64 << 30))
    with stand_in_hub({"a/b/c.gguf": b"GGUF" + bytes(300_000)}, monkeypatch) as hub:
        models.take_up(models.known.find(USUAL), Named(USUAL))
        yield hub
    (settings.data_dir / "speeds.json").unlink()


def test_a_larger_model_is_offered_once_the_speed_is_known_and_fetched_with_one_click(
    page: Page, site: Site, offering: StandInHub, ask
) -> None:
    line, models = page.locator("#offer [data-offered]"), site.house.models
    expect(line).to_have_count(0)
    models.measure()
    until = time.monotonic() + 15
    while models.offer is None and time.monotonic() < until:
        time.sleep(0.1)
    expect(line).to_be_visible()  # on the page that is open
    expect(line).to_contain_text("larger, at about")
    expect(line).to_contain_text("Research (no commercial use)")
    offering.pause = 0.2
    page.get_by_role("button", name="and use it").click()
    expect(page.locator("#offer").get_by_role("progressbar", name="Fetching larger")).to_be_visible()
    offering.pause = 0
    expect(page.locator("#notice")).to_contain_text("larger answers from the next message on.")
    expect(line).to_have_count(0)
    tab(page, "Model")
    expect(page.locator("#models .engine").first).to_contain_text("larger")
    expect(page.locator("#models .engine").first).to_contain_text("llama.cpp runs it")
    ask(page, DIET)
    expect(answered_by(page)).to_have_text("larger")


@pytest.mark.usefixtures("offering")
def test_an_offer_that_was_closed_is_not_made_again_in_this_browser(page: Page, site: Site) -> None:
    site.house.models.measure()
    line = page.locator("#offer [data-offered]")
    expect(line).to_be_visible()
    page.get_by_role("button", name="Don't offer larger again").click()
    expect(line).to_be_hidden()
    expect(page.locator("#box")).to_be_focused()
    page.reload()
    expect(line).to_be_attached()
    expect(line).to_be_hidden()
    page.evaluate("localStorage.clear()")
    page.reload()
    expect(line).to_be_visible()


def test_a_token_is_shown_once_lets_its_holder_in_and_is_revoked(page: Page, site: Site) -> None:
    tab(page, "Settings")
    page.get_by_label("What the token is for").fill("my notebook")
    page.get_by_role("button", name="Make a token").click()
    token = page.locator("#fresh-token").inner_text()
    assert site.house.tokens.user(token) == "me"
    expect(page.get_by_label("What the token is for")).to_have_value("")
    expect(page.locator("#tokens .document")).to_contain_text("my notebook")
    page.reload()
    tab(page, "Settings")
    expect(page.locator("#tokens .document")).to_contain_text("last used Today")
    assert token not in page.content()
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Revoke my notebook").click()
    expect(page.locator("#tokens .document")).to_have_count(0)
    assert site.house.tokens.user(token) == ""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_menu_fits_a_phone(browser: Browser, site: Site, server: StandIn, theme: str) -> None:
    site.house.models.known.add(AddedServer(address=server.address, model="a-model-with-a-very-long-name" * 3))
    context = browser.new_context(viewport=PHONE, color_scheme=theme)
    page = opened(context, site)
    page.get_by_role("button", name="Sources, facts and documents").click()
    tab(page, "Model")
    expect(card(page, "a-model-with")).to_be_visible()
    assert page.evaluate("document.querySelector('#panel').scrollWidth <= document.querySelector('#panel').clientWidth")
    context.close()
