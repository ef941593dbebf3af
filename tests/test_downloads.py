"""Files of the hub: that a break costs little, and that nothing but what the hub states gets its name."""

from __future__ import annotations

import random
import shutil
import time
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Timer

import pytest
from typer.testing import CliRunner

from assistant.commands.models import app
from assistant.errors import ModelError
from assistant.llm import downloads
from assistant.llm.background_download import BackgroundDownload, DownloadState
from assistant.llm.catalogue import Catalogue, Entry
from assistant.llm.sources import Hub
from assistant.settings import Settings
from tests.hub import StandInHub, stand_in_hub

CONTENT = random.Random(5).randbytes(300_000)
NAME = "someone/chat/chat.gguf"
CHAT = Entry(name="chat", kind="gguf", listed_size=300_000, hub=Hub(repo="someone/chat", file="chat.gguf"))
OTHER = Entry(name="other", kind="gguf", listed_size=10, hub=Hub(repo="someone/other", file="other.gguf"))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInHub]:
    monkeypatch.setattr(downloads, "PAUSE", 0.01)
    with stand_in_hub({NAME: CONTENT, "someone/other/other.gguf": b"GGUF other"}, monkeypatch) as running:
        yield running


@pytest.fixture
def catalogue(monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    known = Catalogue([CHAT, OTHER])
    monkeypatch.setattr(Catalogue, "load", staticmethod(lambda: known))
    return known


@pytest.fixture
def online(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data")


def partials(settings: Settings) -> list[Path]:
    return [path for path in settings.models_dir.rglob("*.partial") if path.is_file()]


# --- one file -----------------------------------------------------------------------------------------------------


def test_a_model_comes_from_the_hub_and_is_held_to_what_it_was(hub, catalogue, online) -> None:
    seen: list[tuple[int, int]] = []
    path = catalogue.fetch("chat", online, lambda done, total: seen.append((done, total)))
    assert path.read_bytes() == CONTENT
    assert seen[-1] == (300_000, 300_000)
    assert catalogue.is_here("chat", online)
    assert catalogue.verify("chat", online) == path
    assert not partials(online)
    path.unlink()
    hub.files[NAME] = CONTENT[::-1]
    with pytest.raises(ModelError, match=r"its chat\.gguf is not the one that was pinned"):
        catalogue.fetch("chat", online)
    assert len(hub.ranges_asked()) == 1, "what is another file by the hub's own word is not fetched"
    hub.files[NAME] = CONTENT
    assert catalogue.fetch("chat", online).read_bytes() == CONTENT


def test_a_connection_that_breaks_is_made_anew_where_it_was(hub, catalogue, online) -> None:
    hub.cut = [100_000, 150_000]
    assert catalogue.fetch("chat", online).read_bytes() == CONTENT
    assert hub.ranges_asked() == ["", "bytes=100000-", "bytes=250000-"]


def test_one_that_keeps_breaking_is_told_and_the_next_fetch_goes_on(hub, catalogue, online) -> None:
    hub.cut = [100_000, 0, 0, 0]
    with pytest.raises(
        ModelError, match=r"cut short at 100,000 of 300,000 bytes \(.+\); the next try goes on from the"
    ):
        catalogue.fetch("chat", online)
    assert not catalogue.is_here("chat", online)
    assert catalogue.fetch("chat", online).read_bytes() == CONTENT
    assert hub.ranges_asked()[-1] == "bytes=100000-"


def test_a_hub_that_is_too_busy_is_asked_again_and_not_for_ever(hub, catalogue, online) -> None:
    hub.status = 503
    with pytest.raises(ModelError, match=r"cut short at 0 of 300,000 bytes \(status 503\)"):
        catalogue.fetch("chat", online)
    assert len(hub.ranges_asked()) == 3


def test_a_refusal_is_told_at_once(hub, catalogue, online) -> None:
    hub.status = 403
    with pytest.raises(ModelError, match="403 Forbidden"):
        catalogue.fetch("chat", online)
    assert len(hub.ranges_asked()) == 1


def test_a_file_that_is_missing_is_told(hub, catalogue, online) -> None:
    del hub.files[NAME]
    with pytest.raises(ModelError, match=r"someone/chat.*EntryNotFound.*give the file of a copy of it instead"):
        catalogue.fetch("chat", online)


def test_where_ranges_are_unknown_the_file_is_begun_anew(hub, catalogue, online) -> None:
    hub.ranges, hub.cut = False, [100_000]
    assert catalogue.fetch("chat", online).read_bytes() == CONTENT


@pytest.mark.parametrize("sent", [CONTENT[:-1] + b"x", CONTENT + b"more"], ids=["other", "longer"])
def test_what_is_not_what_the_hub_states_never_gets_the_name(hub, catalogue, online, sent) -> None:
    hub.sent[NAME] = sent
    with pytest.raises(ModelError, match=r"chat\.gguf came (with another SHA-256|longer) than is stated"):
        catalogue.fetch("chat", online)
    assert not CHAT.path(online).exists()
    assert not partials(online), "nor is it gone on with"
    hub.sent.clear()
    assert catalogue.fetch("chat", online).read_bytes() == CONTENT


def test_what_came_of_another_file_is_not_gone_on_with(hub, catalogue, online) -> None:
    hub.cut = [100_000, 0, 0, 0]
    with pytest.raises(ModelError, match="cut short"):
        catalogue.fetch("chat", online)
    hub.files[NAME] = CONTENT[::-1]
    assert catalogue.fetch("chat", online).read_bytes() == CONTENT[::-1]


def test_a_disk_without_room_is_told_before_anything_comes(hub, catalogue, online, monkeypatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1, 1, 1 << 20))
    with pytest.raises(ModelError, match=r"needed on the disk of .* and 0\.0 GiB are free"):
        catalogue.fetch("chat", online)
    assert not hub.ranges_asked()


def test_without_a_hub_it_is_told_and_nothing_waits(catalogue, online) -> None:
    with pytest.raises(ModelError, match=r"hub is switched off; without a network, give the file of a copy"):
        catalogue.fetch("chat", online.model_copy(update={"hub": False}))


def test_the_key_goes_to_the_hub_and_not_to_where_it_stores(hub, catalogue, online, monkeypatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    catalogue.fetch("chat", online)
    assert set(hub.keys) == {"Bearer hf_secret"}


# --- in the background ------------------------------------------------------------------------------------------


def test_a_model_is_fetched_in_the_background(hub, catalogue, online) -> None:
    hub.pause = 0.05
    fetching = BackgroundDownload(online)
    assert fetching.state == DownloadState()
    assert fetching.wait(0)
    fetching.start("chat")
    fetching.start("chat")
    assert fetching.state.under_way
    with pytest.raises(ModelError, match=r"chat is being fetched; wait for it, or stop it first"):
        fetching.start("other")
    states = []
    while not fetching.wait(0.1):
        states.append(fetching.state)
    assert any(0 < state.done < state.total == 300_000 for state in states)
    assert fetching.state == DownloadState("chat", 300_000, 300_000, finished=True)
    assert len(hub.ranges_asked()) == 1
    fetching.start("other")
    assert fetching.wait(10)
    assert fetching.state.name == "other"
    assert fetching.state.finished


def test_a_stopped_one_ends_at_once_and_goes_on_later(hub, catalogue, online) -> None:
    hub.pause = 0.5  # seconds before each of 19 pieces
    fetching = BackgroundDownload(online)
    fetching.stop()
    fetching.start("chat")
    Timer(1.0, fetching.stop).start()
    since = time.perf_counter()
    assert fetching.wait(10)
    assert time.perf_counter() - since < 5
    assert fetching.state == DownloadState()
    [partial] = partials(online)
    assert 0 < partial.stat().st_size < len(CONTENT)
    hub.pause = 0.0
    fetching.start("chat")
    assert fetching.wait(10)
    assert fetching.state.finished
    assert hub.ranges_asked()[-1].startswith("bytes=")


def test_one_that_is_begun_again_while_it_ends_is_fetched(hub, catalogue, online) -> None:
    hub.pause = 0.1
    fetching = BackgroundDownload(online)
    fetching.start("chat")
    Event().wait(0.3)
    fetching.stop()
    hub.pause = 0.0
    fetching.start("chat")
    assert fetching.wait(10)
    assert fetching.state.finished


def test_what_goes_wrong_is_in_the_state_and_a_new_start_tries_again(hub, catalogue, online) -> None:
    hub.status = 403
    fetching = BackgroundDownload(online)
    fetching.start("chat")
    assert fetching.wait(10)
    assert not fetching.state.under_way
    assert not fetching.state.finished
    assert "could not be had" in fetching.state.error
    hub.status = 0
    fetching.start("chat")
    assert fetching.wait(10)
    assert fetching.state.finished


def test_an_unknown_name_is_refused(catalogue, online) -> None:
    with pytest.raises(ModelError, match="There is no model 'nope'"):
        BackgroundDownload(online).start("nope")


def test_it_is_fetched_on_the_command_line(hub, catalogue, online) -> None:
    result = CliRunner().invoke(app, ["fetch", "chat", "--data-dir", str(online.data_dir)], catch_exceptions=False)
    assert result.exit_code == 0
    assert CHAT.path(online).read_bytes() == CONTENT
