"""A larger model that is offered on `python app.py` as a person starts it, fetched from a hub with one click, and used.

The hub is a stand-in, and so are its weights: whatever is asked for is the smallest model.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from assistant.llm.catalogue import Catalogue
from assistant.settings import load
from tests.browser.app import App, started
from tests.browser.conftest import tab
from tests.fixtures_models import fetched, sharing_libraries
from tests.hub import StandInHub, stand_in_hub

pytestmark = [pytest.mark.model, pytest.mark.lucene, pytest.mark.timeout(600)]

QUESTION = "Which languages are spoken in Switzerland?"
SLOW = 240_000  # milliseconds for a turn on a busy machine


@pytest.fixture
def hub(smollm_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInHub]:
    weights = smollm_path.read_bytes()
    sources = [one.hub for one in Catalogue.load().entries if one.hub and one.hub.file]
    with stand_in_hub({f"{one.repo}/{one.file}": weights for one in sources}, monkeypatch) as hub:
        yield hub


@pytest.fixture
def app(hub: StandInHub, tmp_path: Path) -> Iterator[App]:
    """Every model that it can be slow on counts as quick enough, so that one is offered on whatever computer."""
    fetched("all-MiniLM-L6-v2")
    for name in ("all-MiniLM-L6-v2", "smollm2-135m"):  # what is fetched here must not come among those of other tests
        shutil.copytree(load().models_dir / name, tmp_path / "models" / name)
    patient = {"SEQUITUR_LLM__TARGET_TURN_SECONDS": "100000"}
    with started(sharing_libraries(tmp_path), HF_ENDPOINT=hub.address, HF_HUB_OFFLINE="0", **patient) as app:
        yield app


def test_the_offered_model_is_fetched_with_one_click_and_answers_a_turn(
    browser: Browser, app: App, hub: StandInHub
) -> None:
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(app.url, timeout=SLOW)
    expect(page.locator("#loading .loading")).to_have_count(0, timeout=SLOW)
    offer = page.locator("#offer [data-offered]")
    expect(offer).to_be_visible(timeout=SLOW)
    name = offer.get_attribute("data-offered")
    entry = Catalogue.load().entry(name)
    assert entry.hub
    hub.pause = 0.002
    page.get_by_role("button", name="and use it").click()
    expect(page.locator("#offer").get_by_role("progressbar", name=f"Fetching {name}")).to_be_visible()
    expect(page.locator("#notice")).to_contain_text(f"{name} answers from the next message on.", timeout=SLOW)
    assert f"/storage/{entry.hub.repo}/{entry.hub.file}" in [path for _, path, _ in hub.asked]
    page.locator("#box").fill(QUESTION)
    page.keyboard.press("Enter")
    turn = page.locator("#transcript article")
    expect(turn.locator(".reply")).not_to_be_empty(timeout=SLOW)
    turn.locator(".steps summary").click()
    expect(turn.locator(".inside")).to_contain_text(name)
    tab(page, "Model")
    expect(page.locator("#models .engine").first).to_contain_text(name)
    context.close()
