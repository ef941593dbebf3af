"""What others wrote can't act on the page, strangers can't reach it, and users see only their own."""

from __future__ import annotations

import http.client
import json
import re
import urllib.parse
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, Route, expect

from assistant.errors import StoreError
from assistant.store import users
from assistant.store.database import connect
from assistant.store.users import Logins
from assistant.web.security import DENY_ALL_POLICY, POLICY
from assistant.web.server import serve
from tests.browser.conftest import WAIT, Site, filled, forget, opened, quiet, tab
from tests.browser.fake import HOSTILE, Loaded, Script, house

PASSWORDS = {"ann": "oats ann tea", "bob": "oats bob tea", "me": "oats mine tea"}


def test_no_request_goes_to_another_host(browser: Browser, site, ask) -> None:
    context, asked = browser.new_context(), []
    context.on("request", lambda request: asked.append(request.url))
    page = opened(context, site)
    site.house.ptkb.add("me", HOSTILE)
    for text in ("What is a good diet?", "hostile", f"hostile {HOSTILE}"):
        ask(page, text)
    for name in ("My facts", "Documents", "Settings", "Sources"):
        tab(page, name)
    hosts = {urllib.parse.urlsplit(url).netloc for url in asked if not url.startswith(("data:", "blob:"))}
    assert hosts == {urllib.parse.urlsplit(site.url).netloc}
    assert len(asked) > 20
    context.close()


def test_hostile_text_is_only_text_wherever_it_stands(page: Page, site, ask) -> None:
    site.house.ptkb.add("me", HOSTILE)
    ask(page, f"hostile {HOSTILE}")
    conversation = site.house.conversations.list("me")[0].id
    site.house.conversations.rename("me", conversation, "<b>x</b><img src=x>")
    page.reload()
    expect(page.locator("#transcript .reply")).to_contain_text("<script>window.hacked=1</script>")
    page.locator("#transcript .steps summary").click()
    page.locator("#transcript .chip, #transcript .wide").first.click()
    expect(page.locator("#sources .card")).to_contain_text("onerror=")
    tab(page, "My facts")
    expect(page.locator("#facts .fact")).to_contain_text("onerror=")
    expect(page.locator("#conversations .title span")).to_have_text("<b>x</b><img src=x>")
    for box in ("#transcript", "#sources", "#facts", "#conversations"):
        assert page.locator(f"{box} :is(img, script, iframe, a, b, video, object, form[action])").count() == 0
    assert page.evaluate("window.hacked") is None


def test_a_hostile_name_is_text_while_the_answer_streams(page: Page, site, ask) -> None:
    site.script.go.clear()
    ask(page, f"hostile {HOSTILE}", wait=False)
    expect(page.locator("#answering .said")).to_contain_text("onerror=")
    site.script.go.set()
    expect(page.locator("#transcript .reply")).to_be_visible()
    assert page.evaluate("window.hacked") is None


def answer(
    site: Site, path: str, method: str = "GET", body: str | None = None, **headers: str
) -> tuple[int, str, dict]:
    """A request as some other program would make it."""
    host = urllib.parse.urlsplit(site.url).netloc
    connection = http.client.HTTPConnection(host, timeout=10)
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    response = connection.getresponse()
    return response.status, response.read().decode("utf-8", "replace"), dict(response.getheaders())


def test_the_headers(site) -> None:
    status, _, headers = answer(site, "/")
    assert status == 200
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"


def test_the_page_needs_eval_and_stays_empty_without(browser: Browser, site: Site) -> None:
    """Fails once Gradio compiles nothing in the browser any more: then `POLICY` should forbid it."""
    context, told = browser.new_context(), []
    context.route(site.url, _without_eval)
    page = context.new_page()
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.goto(site.url)
    while not any("unsafe-eval" in one for one in told):
        page.wait_for_timeout(100)
    quiet(page)
    assert page.locator("#conversations nav, #transcript [data-conversation], #box").count() == 0
    context.close()


def _without_eval(route: Route) -> None:
    """The page, with a policy that differs in this alone."""
    response = route.fetch()
    assert response.headers["content-security-policy"] == POLICY
    strict = {**response.headers, "content-security-policy": POLICY.replace(" 'unsafe-eval'", "")}
    route.fulfill(response=response, headers=strict)


def test_the_scripts_are_asked_for_anew_and_nothing_beside_them_is_given(site) -> None:
    status, _, headers = answer(site, "/js/page.js")
    assert (status, headers["cache-control"]) == (200, "no-cache")
    assert "javascript" in headers["content-type"]
    assert headers["content-security-policy"] == DENY_ALL_POLICY
    assert answer(site, "/js/../page.py")[0] == 404
    assert answer(site, "/js/%2e%2e/page.py")[0] == 404


def test_gradios_files_whose_names_change_with_their_content_are_never_asked_for_again(site) -> None:
    name = re.findall(r"assets/(index-[\w-]+\.js)", answer(site, "/")[1])[0]
    status, _, headers = answer(site, f"/assets/{name}")
    assert (status, headers["cache-control"]) == (200, "public, max-age=31536000, immutable")
    assert answer(site, "/assets/../index.html")[0] == 404


def test_opening_the_page_sends_a_few_events_and_not_one_for_each_panel(context: BrowserContext, site) -> None:
    opened(context, site).close()  # the browser knows the scripts now, the server has told that it is ready
    sent: set[int] = set()

    def joined(request: Request) -> None:
        if "queue/join" in request.url:
            sent.add(request.post_data_json["fn_index"])

    page = context.new_page()
    page.on("request", joined)
    page.goto(site.url)
    filled(page)
    quiet(page)
    assert 3 <= len(sent) <= 5  # each once, whatever number of times the timer ticks before it is told to stop


def test_other_hosts_and_other_origins_are_refused(site) -> None:
    port = urllib.parse.urlsplit(site.url).port
    assert answer(site, "/", Host="evil.example")[0] == 403  # DNS rebinding
    assert answer(site, "/config", Origin="http://evil.example")[0] == 403
    assert answer(site, "/config", Origin="null")[0] == 403
    own = f"http://127.0.0.1:{port}"
    assert answer(site, "/config", Origin=own)[0] == 200
    assert answer(site, "/", Host=f"localhost:{port}")[0] == 200


def test_the_handlers_are_no_public_interface(site) -> None:
    status, text, _ = answer(site, "/gradio_api/info")
    assert status != 200 or json.loads(text)["named_endpoints"] == {}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A page with logins."""
    script, loading = Script(), Loaded()
    built, logins = house(tmp_path_factory.mktemp("guarded"), script, loading)
    for name in ("ann", "bob", "me"):
        logins.add(name, PASSWORDS[name])
    site = Site(serve(built, logins), script, loading)
    yield site
    site.server.close()


@pytest.fixture
def shared(guarded: Site) -> Site:
    """A page with logins for ann, bob and me, who have nothing there yet."""
    guarded.clear()
    return guarded


@pytest.fixture(scope="module")
def browsers(browser: Browser) -> Iterator[list[BrowserContext]]:
    """As many as a test needed at once. They are used again: ending one after each test hung once, for ten minutes."""
    contexts: list[BrowserContext] = []
    yield contexts
    for context in contexts:
        context.close()


@pytest.fixture
def login(browser: Browser, browsers: list[BrowserContext]) -> Iterator[Callable[..., Page]]:
    """Logs users in, each in a browser of their own that knows nothing of anyone."""
    used = 0

    def logs_in(site: Site, name: str, password: str = "") -> Page:
        nonlocal used
        if used == len(browsers):
            browsers.append(browser.new_context())
            browsers[-1].set_default_timeout(WAIT)
        context, used = browsers[used], used + 1
        page = context.pages[0] if context.pages else context.new_page()
        page.goto(site.url)
        enter(page, name, password or PASSWORDS[name])
        return page

    yield logs_in
    for context in browsers[:used]:
        forget(context)


def enter(page: Page, name: str, password: str) -> None:
    page.locator("input").first.fill(name)
    page.locator("input[type=password]").fill(password)
    page.get_by_role("button", name="Login").click()


def test_users_see_only_their_own(login, shared: Site, ask) -> None:
    ann, bob = login(shared, "ann"), login(shared, "bob")
    for page in (ann, bob):
        expect(page.locator(".welcome")).to_be_visible()
    expect(ann.locator("#header")).to_contain_text("ann")
    ask(ann, "What is a good diet?")
    tab(ann, "My facts")
    ann.get_by_label("A fact about you").fill("I'm Ann.")
    ann.keyboard.press("Enter")
    expect(ann.locator("#facts .fact")).to_have_count(1)

    conversation = shared.house.conversations.list("ann")[0].id
    bob.goto(f"{shared.url}#{conversation}")
    expect(bob.locator("#notice").get_by_role("alert")).to_contain_text("was not found")
    expect(bob.locator("#transcript article")).to_have_count(0)
    expect(bob.locator("#conversations li")).to_have_count(0)
    tab(bob, "My facts")
    expect(bob.locator("#facts .fact")).to_have_count(0)

    bob.get_by_role("button", name="Log out").click()
    expect(bob.get_by_role("button", name="Login")).to_be_visible()
    assert bob.request.get(f"{shared.url}config").status == 401


def test_a_login_may_be_called_as_the_user_of_a_page_without_logins(login, shared: Site) -> None:
    page = login(shared, "me")
    expect(page.locator("#header .who")).to_have_text("me")
    expect(page.get_by_role("button", name="Log out")).to_be_visible()


def test_a_login_that_ended_elsewhere_loses_no_message(login, shared: Site) -> None:
    ann = login(shared, "ann")
    expect(ann.locator(".welcome")).to_be_visible()
    ann.locator("#box").fill("Hello")
    ann.request.post(f"{shared.url}logout")  # ends all of ann's sessions
    ann.keyboard.press("Enter")
    expect(ann.get_by_role("button", name="Login")).to_be_visible()
    enter(ann, "ann", PASSWORDS["ann"])
    expect(ann.locator("#box")).to_have_value("Hello")


def test_who_is_removed_or_has_another_password_is_logged_out(login, shared: Site) -> None:
    logins = Logins(connect(shared.house.settings.database_url))  # as another process would, by the command
    for name in ("cat", "dan"):
        logins.add(name, "first oats kept")
    cat, dan = (login(shared, name, "first oats kept") for name in ("cat", "dan"))
    for page in (cat, dan):
        expect(page.locator(".welcome")).to_be_visible()
        quiet(page)  # what it asks for as it opens would tell it by itself
    logins.remove("dan")
    assert dan.request.get(f"{shared.url}config").status == 401
    assert cat.request.get(f"{shared.url}config").status == 200
    logins.add("cat", "quite another")
    assert cat.request.get(f"{shared.url}config").status == 401
    cat.locator("#box").fill("Hello")
    cat.keyboard.press("Enter")
    expect(cat.get_by_role("button", name="Login")).to_be_visible()
    enter(cat, "cat", "quite another")
    expect(cat.locator("#box")).to_have_value("Hello")


def test_whoever_knows_their_password_takes_another(login, shared: Site) -> None:
    logins, first, second = Logins(connect(shared.house.settings.database_url)), "first oats kept", "second oats kept"
    logins.add("fay", first)
    fay, elsewhere = login(shared, "fay", first), login(shared, "fay", first)
    expect(elsewhere.locator(".welcome")).to_be_visible()
    tab(fay, "Settings")
    shown = ""
    for old, new, rating, notice in (
        ("a guess", second, "a strong password", "This is not your password"),
        (first, "password1234", "too weak", "This password is too weak"),
        (first, second, "a strong password", ""),
    ):
        fay.get_by_label("The password that you have").fill(old)
        fay.get_by_label("The new password").fill(new)
        expect(fay.get_by_role("status").filter(has_text=rating)).to_be_visible()
        expect(fay.locator("#notice")).to_contain_text(shown)  # a rating takes no banner away
        assert look_at_passwords(fay) == [["text"] * 2, ["password"] * 2]
        fay.get_by_role("button", name="Change it").click()
        if notice:
            expect(fay.locator("#notice")).to_contain_text(notice)
            assert logins.check("fay", first)
        shown = notice
    expect(fay.get_by_role("button", name="Login")).to_be_visible()
    assert elsewhere.request.get(f"{shared.url}config").status == 401
    enter(fay, "fay", second)
    expect(fay.locator(".welcome")).to_be_visible()


def look_at_passwords(page: Page) -> list[list[str | None]]:
    """The types of the fields for passwords once they are shown, and once they are hidden again."""
    types, fields = [], page.locator("#password-form input").all()
    for pressed in ("true", "false"):
        page.get_by_role("button", name="Show the typed passwords").click()
        expect(page.locator("#show-passwords")).to_have_attribute("aria-pressed", pressed)
        types.append([field.get_attribute("type") for field in fields])
    return types


def test_how_strong_a_new_password_is_is_told_in_pauses_of_typing(login, shared: Site) -> None:
    Logins(connect(shared.house.settings.database_url)).add("hal", "first oats kept")
    hal = login(shared, "hal", "first oats kept")
    tab(hal, "Settings")
    field, told = hal.get_by_label("The new password"), hal.locator("#password-strength")
    hal.get_by_role("button", name="Show the typed passwords").click()
    for typed, text in (("password1234", "too weak"), ("second oats kept", "a strong password")):
        field.fill(typed)
        expect(told).to_contain_text(text)
        expect(field).to_have_value(typed)
        expect(field).to_have_attribute("type", "text")
    assert told.get_by_label("Password strength").get_attribute("value") == "4"
    field.fill("")
    expect(told).to_be_hidden()


def test_who_logs_in_is_told_of_the_log_in_before_and_of_another_password(
    login, shared: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    logins = Logins(connect(shared.house.settings.database_url))
    logins.add("gil", "first oats kept")
    gil = login(shared, "gil", "first oats kept")
    expect(gil.locator(".welcome")).to_be_visible()
    assert gil.get_by_text("log-in before this one").count() == 0
    logins.add("gil", "second oats kept")
    gil = login(shared, "gil", "second oats kept")
    expect(gil.locator("#notice")).to_contain_text("Your log-in before this one: Today, ")
    expect(gil.locator("#notice")).to_contain_text("The password has changed since then.")
    monkeypatch.setattr(users, "NEWS_SECONDS", 0.0)
    gil.reload()
    tab(gil, "Settings")
    expect(gil.get_by_text("Your last log-ins: Today, ")).to_contain_text("with another password. If one of them")
    assert gil.get_by_text("log-in before this one").count() == 0


def test_nobody_without_a_login_is_offered_another_password(page: Page) -> None:
    tab(page, "Settings")
    expect(page.get_by_role("button", name="Delete my account")).to_be_visible()
    assert page.get_by_label("The new password").count() == 0


def test_whoever_types_their_name_deletes_their_account(login, shared: Site) -> None:
    house, logins = shared.house, Logins(connect(shared.house.settings.database_url))
    logins.add("eve", "first oats kept")
    house.ptkb.add("eve", "I'm vegan.")
    eve = login(shared, "eve", "first oats kept")
    tab(eve, "Settings")
    for typed, notice in (("bob", "Nothing was deleted; type “eve” into the field first."), ("eve", "")):
        eve.get_by_label("Type “eve” to confirm").fill(typed)
        eve.get_by_role("button", name="Delete my account").click()
        if notice:
            expect(eve.locator("#notice")).to_contain_text(notice)
            assert "eve" in logins.names()
    expect(eve.get_by_role("button", name="Login")).to_be_visible()
    assert "eve" not in logins.names()
    assert house.ptkb.facts("eve") == []


def test_a_name_is_the_same_however_it_is_typed(login, shared: Site) -> None:
    composed, decomposed = "Jos\u00e9", "Jose\u0301"
    Logins(connect(shared.house.settings.database_url)).add(composed, "correct horse")
    jose = login(shared, decomposed, "correct horse")
    expect(jose.locator("#header .who")).to_have_text(composed)


def test_no_handler_takes_anothers_ids(login, shared: Site, ask) -> None:
    ann, bob = login(shared, "ann"), login(shared, "bob")
    expect(ann.locator(".welcome")).to_be_visible()
    ask(ann, "I've just become vegan")
    fact = shared.house.ptkb.add("ann", "I'm Ann.")
    conversation = shared.house.conversations.list("ann")[0].id
    turn = shared.house.conversations.get("ann", conversation).turns[0].id
    before = shared.house.conversations.get("ann", conversation)
    expect(bob.locator(".welcome")).to_be_visible()
    tab(bob, "My facts")
    forged = {"conversation": conversation, "turn": turn, "target": conversation, "fact": fact.id, "looked": turn}
    forged |= {"place": "0", "value": "1", "title": "Bob's", "text": "Bob's", "utterance": "Hello"}
    forged |= {"first": "concat", "second": "summary"}
    for piece, events in {
        "#transcript": ("open", "again", "compare", "choose", "undo", "judge", "remember", "look"),
        "#conversations": ("open", "rename", "delete", "export"),
        "#composer": ("ask", "stop"),
        "#facts": ("edit", "switch", "drop"),
    }.items():
        for event in events:
            forge(bob, piece, {**forged, "event": event})
    bob.wait_for_timeout(1500)
    after = shared.house.conversations.get("ann", conversation)
    assert (after.title, after.turns, after.feedback) == (before.title, before.turns, before.feedback)
    assert [one.text for one in shared.house.ptkb.facts("ann")] == ["I'm Ann."]
    assert shared.house.ptkb.facts("bob") == []
    with pytest.raises(StoreError):
        shared.house.conversations.get("bob", conversation)
    expect(bob.locator("body")).not_to_contain_text("vegan")


def forge(page: Page, piece: str, data: dict[str, str]) -> None:
    """Sends an event as the page would, with ids that are not the user's."""
    with page.expect_request("**/queue/join*"):
        page.evaluate(
            """([piece, data]) => {
              const button = document.createElement('button');
              Object.assign(button.dataset, data);
              const root = document.querySelector(piece + ' [data-live]');
              const shown = document.querySelector('#transcript [data-conversation]');
              shown.dataset.conversation = data.conversation;
              root.append(button);
              button.click();
              button.remove();
            }""",
            [piece, data],
        )


def test_nothing_is_shown_without_a_login(shared: Site) -> None:
    assert answer(shared, "/config")[0] == 401
    body = json.dumps({"data": ["", None], "fn_index": 0, "session_hash": "x"})
    assert answer(shared, "/gradio_api/queue/join", "POST", body, Content_Type="application/json")[0] == 401


def test_guessing_passwords_is_slowed_down(shared: Site) -> None:
    Logins(connect(shared.house.settings.database_url)).add("eve", "oats eve tea")
    right, wrong = (urllib.parse.urlencode({"username": "eve", "password": one}) for one in ("oats eve tea", "wrong"))
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    assert answer(shared, "/login", "POST", right, **form)[0] == 200
    for _ in range(5):
        assert answer(shared, "/login", "POST", wrong, **form)[0] == 400
    status, said, headers = answer(shared, "/login", "POST", right, **form)
    assert (status, headers["retry-after"]) == (429, "2")
    assert "wait and try again" in json.loads(said)["detail"]
