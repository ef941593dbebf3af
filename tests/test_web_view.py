"""What the page shows of what is stored and running."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event
from types import SimpleNamespace

import pytest

from assistant.runs import Place, Runs
from assistant.store.conversations import Conversations, Version
from assistant.store.database import connect
from assistant.types import Answer, Choices, Turn
from assistant.web.tab import Tab
from assistant.web.view import View
from ptkb.store import Ptkb

OLD, HALF = Turn("Why?", id="old", status="done", answer=Answer("Because.")), Turn("Why?", id="half")


@pytest.fixture
def view() -> View:
    engine = connect("sqlite://")
    pieces = SimpleNamespace(transcript="transcript", answering="answering")
    return View(pieces, Conversations(engine), Ptkb(engine), Runs())  # type: ignore[arg-type]


@pytest.fixture
def tab(view: View) -> Tab:
    """A conversation with one reply, and half a comparison that was saved last in the middle of an answer."""
    made = view.conversations.new("me").id
    view.conversations.save_turn("me", made, OLD)
    view.conversations.save_turn("me", made, replace(HALF, answer=Answer("Half")), Version("old", 1))
    return Tab("me", "session", made)


def shown(view: View, tab: Tab) -> dict[str, str]:
    return view.talk(tab, view.conversation(tab), view.runs.of(tab.user, tab.conversation))


def test_what_nobody_writes_on_any_more_has_stopped(view: View, tab: Tab) -> None:
    assert view.conversation(tab).compared["old"][0].status == "running"
    html = shown(view, tab)["transcript"]
    assert "Stopped. What was written is kept." in html
    assert "spinner" not in html


def test_of_what_was_stopped_early_nothing_is_said_to_be_kept(view: View, tab: Tab) -> None:
    view.conversations.save_turn("me", tab.conversation, Turn("When?", status="stopped"))
    assert "Stopped before anything was written." in shown(view, tab)["transcript"]


def test_what_is_compared_can_be_looked_at(view: View, tab: Tab) -> None:
    assert [turn and turn.id for turn in (view.turn(tab, "old"), view.turn(tab, "half"), view.turn(tab, "none"))] == [
        "old",
        "half",
        None,
    ]


def test_what_is_being_written_is_shown_once_in_its_place(view: View, tab: Tab) -> None:
    go = Event()

    def writing(_stop: Event) -> Iterator[Turn]:
        yield replace(HALF, answer=Answer("Half of it"), choices=Choices("concat"))
        go.wait(5)

    run = view.runs.start("me", tab.conversation, writing, Place("old", ("concat", "summary")))
    html = shown(view, tab)
    assert 'id="place-old" data-place></div>' in html["transcript"]
    assert "Later version" not in html["transcript"]
    assert "Half" not in html["transcript"]
    assert 'data-into="place-old"' in html["answering"]
    assert "Half of it" in html["answering"]
    assert "Comes next." in html["answering"]
    go.set()
    run.join(5)
