"""The first minute of a fresh start: the page answers all the time, and a question waits in it."""

from __future__ import annotations

import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE, Popen
from threading import Event, Thread

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.app import App, started
from tests.fixtures_models import sharing_models

pytestmark = [pytest.mark.model, pytest.mark.lucene, pytest.mark.timeout(600)]

QUESTION = "Which languages are spoken in Switzerland?"
SLOW = 240_000  # milliseconds for loading and a turn on a busy machine
EVERY = 0.2
# It does the same small work for each request and nothing else: what its slowest answer takes longer than its fastest
# is how much the machine's other work holds everybody up.
CONTROL = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        sum(range(500_000))
        self.send_response(204)
        self.end_headers()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


@dataclass
class Pulse:
    """Asks for an address every fifth of a second, each time in a thread of its own, until it is told to stop."""

    url: str
    seconds: list[float] = field(default_factory=list)
    over: Event = field(default_factory=Event)

    def start(self) -> None:
        self._threads: list[Thread] = []
        self._clock = Thread(target=self._beat)
        self._clock.start()

    def stop(self) -> None:
        self.over.set()
        self._clock.join()
        for thread in self._threads:
            thread.join()

    def _beat(self) -> None:
        while not self.over.wait(EVERY):
            thread = Thread(target=self._ask)
            thread.start()
            self._threads.append(thread)

    def _ask(self) -> None:
        since = time.perf_counter()
        with urllib.request.urlopen(self.url, timeout=300) as answer:
            answer.read()
        self.seconds.append(time.perf_counter() - since)


@pytest.fixture
def control(tmp_path: Path) -> Iterator[Pulse]:
    with Popen([sys.executable, "-c", CONTROL], cwd=tmp_path, stdout=PIPE, stderr=PIPE, text=True) as process:
        assert process.stdout
        yield Pulse(f"http://127.0.0.1:{int(process.stdout.readline())}/")
        process.kill()


@pytest.fixture
def app(smollm_path: Path, embedder: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    with started(sharing_models(tmp_path_factory.mktemp("fresh"))) as app:
        yield app


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    yield context.new_page()
    context.close()


def test_the_page_answers_while_everything_loads_and_a_question_waits_in_it(
    app: App, page: Page, control: Pulse
) -> None:
    pulse = Pulse(f"{app.url.rstrip('/')}/gradio_api/app_id")
    for one in (pulse, control):
        one.start()
    page.goto(app.url)
    page.evaluate("""() => new MutationObserver(() => { window.wasDown ||= document.body.classList.contains("down"); })
        .observe(document.body, {attributeFilter: ["class"]})""")
    page.locator("#box").fill(QUESTION)
    page.keyboard.press("Enter")
    expect(page.locator("#answering .said, #transcript .said")).to_have_text(QUESTION, timeout=5_000)
    expect(page.locator("#answering .doing")).to_have_text("Waiting until everything is ready", timeout=60_000)
    expect(page.locator("#answering .wait")).not_to_be_empty(timeout=SLOW)
    expect(page.locator("#loading .loading")).to_have_count(0, timeout=SLOW)
    pulse.stop()
    control.stop()
    assert len(pulse.seconds) > 10, "loading was over before anything could be measured"
    assert max(pulse.seconds) < 1.0 * max(control.seconds) / min(control.seconds)
    assert not page.evaluate("window.wasDown")
    expect(page.locator("#transcript article .reply")).not_to_be_empty(timeout=SLOW)
    expect(page.locator("#notice").get_by_role("alert")).to_have_count(0)
