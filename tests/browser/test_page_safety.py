"""What others wrote can't act on the page, strangers can't reach it, and users see only their own."""

from __future__ import annotations

import http.client
import json
import urllib.parse
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from assistant.errors import StoreError
from assistant.store.database import connect
from assistant.store.users import Logins
from assistant.web.server import serve
from tests.browser.conftest import Site, opened, tab
from tests.browser.fake import HOSTILE, Loaded, Script, house


def test_no_request_goes_to_another_host(context: BrowserContext, site, ask) -> None:
    asked: list[str] = []
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


@pytest.fixture
def shared(tmp_path) -> Iterator[Site]:
    """A page with logins for ann and bob."""
    script, loading = Script(), Loaded()
    built, logins = house(tmp_path, script, loading)
    logins.add("ann", "annannann")
    logins.add("bob", "bobbobbob")
    logins.add("me", "mememe-me")
    site = Site(serve(built, logins), script, loading)
    yield site
    site.server.close()


def login(browser, site: Site, name: str, password: str) -> Page:
    page = browser.new_context().new_page()
    page.set_default_timeout(15_000)
    page.goto(site.url)
    enter(page, name, password)
    return page


def enter(page: Page, name: str, password: str) -> None:
    page.locator("input").first.fill(name)
    page.locator("input[type=password]").fill(password)
    page.get_by_role("button", name="Login").click()


def test_users_see_only_their_own(browser, shared: Site, ask) -> None:
    ann, bob = (login(browser, shared, name, name * 3) for name in ("ann", "bob"))
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

    bob.get_by_role("link", name="Log out").click()
    expect(bob.get_by_role("button", name="Login")).to_be_visible()
    assert bob.request.get(f"{shared.url}config").status == 401


def test_a_login_may_be_called_as_the_user_of_a_page_without_logins(browser, shared: Site) -> None:
    page = login(browser, shared, "me", "mememe-me")
    expect(page.locator("#header .who")).to_have_text("me")
    expect(page.get_by_role("link", name="Log out")).to_be_visible()


def test_a_login_that_ended_elsewhere_loses_no_message(browser, shared: Site) -> None:
    ann = login(browser, shared, "ann", "annannann")
    expect(ann.locator(".welcome")).to_be_visible()
    ann.locator("#box").fill("Hello")
    ann.request.get(f"{shared.url}logout")  # ends all of ann's sessions
    ann.keyboard.press("Enter")
    expect(ann.get_by_role("button", name="Login")).to_be_visible()
    enter(ann, "ann", "annannann")
    expect(ann.locator("#box")).to_have_value("Hello")


def test_who_is_removed_or_has_another_password_is_logged_out(browser, shared: Site) -> None:
    ann, bob = (login(browser, shared, name, name * 3) for name in ("ann", "bob"))
    for page in (ann, bob):
        expect(page.locator(".welcome")).to_be_visible()
    logins = Logins(connect(shared.house.settings.database_url))  # as another process would, by the command
    logins.remove("bob")
    assert bob.request.get(f"{shared.url}config").status == 401
    assert ann.request.get(f"{shared.url}config").status == 200
    logins.add("ann", "quite another")
    assert ann.request.get(f"{shared.url}config").status == 401
    ann.locator("#box").fill("Hello")
    ann.keyboard.press("Enter")
    expect(ann.get_by_role("button", name="Login")).to_be_visible()
    enter(ann, "ann", "quite another")
    expect(ann.locator("#box")).to_have_value("Hello")


def test_a_name_is_the_same_however_it_is_typed(browser, shared: Site) -> None:
    composed, decomposed = "Jos\u00e9", "Jose\u0301"
    Logins(connect(shared.house.settings.database_url)).add(composed, "correct horse")
    jose = login(browser, shared, decomposed, "correct horse")
    expect(jose.locator("#header .who")).to_have_text(composed)


def test_no_handler_takes_anothers_ids(browser, shared: Site, ask) -> None:
    ann, bob = (login(browser, shared, name, name * 3) for name in ("ann", "bob"))
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
    """Sends an event as the page would, with ids that are not the user's, and waits for what comes of it."""
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
    page.wait_for_timeout(250)


def test_nothing_is_shown_without_a_login(shared: Site) -> None:
    assert answer(shared, "/config")[0] == 401
    body = json.dumps({"data": ["", None], "fn_index": 0, "session_hash": "x"})
    assert answer(shared, "/gradio_api/queue/join", "POST", body, Content_Type="application/json")[0] == 401


def test_guessing_passwords_is_slowed_down(shared: Site) -> None:
    for _ in range(5):
        form = urllib.parse.urlencode({"username": "ann", "password": "wrong"})
        assert answer(shared, "/login", "POST", form, Content_Type="application/x-www-form-urlencoded")[0] == 400
    form = urllib.parse.urlencode({"username": "ann", "password": "annannann"})
    assert answer(shared, "/login", "POST", form, Content_Type="application/x-www-form-urlencoded")[0] == 400
