"""Very many people at the page at once: nobody waits until others have been answered to be heard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from assistant.settings import LimitSettings
from assistant.web.server import Server, serve
from benchmarks.light import house, learn, light_settings
from benchmarks.visitor import Visitor
from tests.test_turn_queue import until

MANY = 45  # more than Gradio runs events at once by itself


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A page whose model takes a minute for a word, and where one person may ask as much as they like."""
    learn()
    knobs = light_settings(tmp_path).model_copy(update={"limits": LimitSettings(max_answers=0)})
    server = serve(*house(knobs, 60.0))
    yield server
    server.close()


def test_while_very_many_are_answered_others_begin_and_click(server: Server) -> None:
    visitor = Visitor(server.url)
    for _ in range(MANY):
        visitor.join("composer", "ask", uuid4().hex, values={"utterance": "How rich in protein are lentils?"})
    until(lambda: server.house.runs.count == MANY)
    visitor.send("facts", "store", text="I like oats.")
    assert [fact.text for fact in server.house.ptkb.facts("me")] == ["I like oats."]
    visitor.close()
