"""Questions that are asked without asking for what is being written: nobody watches that, so that it stops."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest

from assistant import runs
from assistant.web.server import Server, serve
from benchmarks.clicks import Stores
from benchmarks.light import house, learn, light_settings
from benchmarks.visitor import Visitor


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A page whose model takes 16 seconds for an answer, and where six seconds without a watcher are enough.

    A busy computer takes seconds between a question and its stream.
    """
    monkeypatch.setattr(runs, "MAX_UNWATCHED_SECONDS", 6.0)
    monkeypatch.setattr(runs, "SWEEP_SECONDS", 0.1)
    learn()
    server = serve(*house(light_settings(tmp_path), 2.0))
    yield server
    server.close()


def ends(server: Server, *marks: str) -> list[str]:
    """How the turns with these marks ended, which is waited for."""
    deadline, statuses = monotonic() + 60, dict[str, str]()
    while monotonic() < deadline:
        turns = Stores(server.house.settings, "me").turns()
        statuses = {mark: reply.turn.status for mark, [reply] in turns.items() if reply.turn.status != "running"}
        if statuses.keys() >= set(marks):
            break
        sleep(0.1)
    return [statuses[mark] for mark in marks]


def test_what_no_tab_listens_to_stops_and_is_kept_and_what_one_does_goes_on(server: Server) -> None:
    visitor = Visitor(server.url)
    visitor.join("composer", "ask", "unheard", values={"utterance": "How rich in protein are lentils, p1x1?"})
    visitor.send("composer", "ask", utterance="How rich in protein are lentils, p1x2?")
    assert ends(server, "p1x1", "p1x2") == ["stopped", "done"]
    visitor.close()


def test_a_tab_that_listened_before_watches_nothing_that_it_asks_afterwards(server: Server) -> None:
    visitor = Visitor(server.url)
    visitor.send("facts", "store", text="I like oats.")
    visitor.join("composer", "ask", visitor.session, values={"utterance": "How rich in protein are lentils, p1x1?"})
    assert ends(server, "p1x1") == ["stopped"]
    visitor.close()
