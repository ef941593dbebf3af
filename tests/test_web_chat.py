"""The middle of the page: what its handlers show, refuse and leave as it is while an answer is being written."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from threading import Event, Thread, current_thread

import pytest
from sqlalchemy import event

from assistant.chat import Chat, exchanges
from assistant.errors import BusyError, LibraryError, StoreError
from assistant.protocols import Parts
from assistant.runs import END, Place, Run, Runs
from assistant.steps import facts
from assistant.store.conversations import Conversations, Version
from assistant.store.database import connect
from assistant.types import Answer, Choices, Fact, FactOffer, Turn, Work
from assistant.web.chat import ChatHandlers
from assistant.web.facts import FactPanel
from assistant.web.models import ModelMenu
from assistant.web.remembering import OLD_FACT_KEPT
from assistant.web.sidebar import Sidebar
from assistant.web.sources import SourcePanel
from assistant.web.switching import Switcher
from assistant.web.tab import Tab, Updates
from assistant.web.view import Pieces, View
from ptkb.store import Ptkb
from tests.browser.fake import Loaded, Script, house
from tests.sources import Given

OLD = Turn("Why?", id="old", status="done", answer=Answer("Because."), offers=(FactOffer("I like oats."),))
HALF = Turn("How?", id="half", answer=Answer("Half"), choices=Choices("concat"))
WRITTEN = replace(HALF, answer=Answer("All of it"))
Write = Callable[..., Run]


@pytest.fixture
def view() -> View:
    engine = connect("sqlite://")
    pieces = Pieces(*(one.name for one in fields(Pieces)))
    return View(pieces, Conversations(engine), Ptkb(engine), Runs())


@pytest.fixture
def talk(view: View, parts: Parts) -> ChatHandlers:
    chat = Chat(view.conversations, view.ptkb, Given(parts))
    return ChatHandlers(view, chat, lambda _user: Choices(), lambda _user, _model: None)


@pytest.fixture
def tab(view: View) -> Tab:
    """A conversation with one reply."""
    made = view.conversations.new("me").id
    view.conversations.save_turn("me", made, OLD)
    return Tab("me", "session", made)


@pytest.fixture
def write(view: View, tab: Tab) -> Iterator[Write]:
    """Starts an answer that is written until it is stopped; only its beginning is stored before."""

    def starts(place: Place = END) -> Run:
        view.conversations.save_turn("me", tab.conversation, HALF, Version(place.of, 1) if place.of else None)

        def writing(stop: Event) -> Iterator[Turn]:
            yield WRITTEN
            stop.wait(5)
            view.conversations.save_turn("me", tab.conversation, stopped := replace(WRITTEN, status="stopped"))
            yield stopped

        return view.runs.start("me", tab.conversation, writing, place)

    yield starts
    view.runs.close()


def told(tab: Tab, **data: str) -> Tab:
    return replace(tab, data=data)


class Watching:
    """A tab that shows a conversation, in a thread of its own as a browser test may have left this one with a loop."""

    def __init__(self, talk: ChatHandlers, tab: Tab, run: Run) -> None:
        self.seen: list[Updates] = []
        self._stream, self._begun = talk.show(tab, run), Event()
        self._thread = Thread(target=asyncio.run, args=(self._watch(),))
        self._thread.start()
        assert self._begun.wait(5)

    def join(self) -> list[Updates]:
        """What the tab was sent, to the end."""
        self._thread.join(10)
        return self.seen

    async def _watch(self) -> None:
        async for updates in self._stream:
            self.seen.append(updates)
            self._begun.set()


def ended(view: View, talk: ChatHandlers, tab: Tab, *turns: Turn, error: str = "") -> Updates:
    """What is shown last of a run of these turns."""

    def writing(_stop: Event) -> Iterator[Turn]:
        yield from turns
        if error:
            raise StoreError(error)

    return Watching(talk, tab, view.runs.start("me", tab.conversation, writing)).join()[-1]


def test_nothing_asks_the_database_in_the_middle_of_the_event_loop(tmp_path: Path) -> None:
    built, logins = house(tmp_path, Script(0.0), Loaded())
    inside = list[str]()

    def note(_connection: object, _cursor: object, asked: str, *_: object) -> None:
        if current_thread() is thread:
            inside.append(asked)

    def chosen(user: str) -> Choices:
        return Choices(**built.conversations.preferences(user))

    view = View(Pieces(*(one.name for one in fields(Pieces))), built.conversations, built.ptkb, built.runs)
    talk, switcher = ChatHandlers(view, built.chat, chosen, lambda *_: None), Switcher(built.models, built.may_switch)
    tab = Tab("me", "session", built.conversations.new("me").id)
    built.conversations.save_turn("me", tab.conversation, OLD)
    streams = (
        talk.ask(told(tab, utterance="What is a good diet?")),
        talk.again(told(tab, turn="old")),
        talk.compare(told(tab, turn="old", first="concat", second="summary")),
        Sidebar(view, talk).open(tab),
        SourcePanel(view, built.documents).open(told(tab, turn="old", passage="none")),
        ModelMenu(view, switcher, built.settings).halt(tab),
    )

    async def through() -> None:
        for stream in streams:
            with suppress(LibraryError):
                async for _ in stream:
                    pass

    # in a thread of its own, as a browser test may have left this one with a loop
    thread = Thread(target=asyncio.run, args=(through(),))
    event.listen(logins.engine, "before_cursor_execute", note)
    thread.start()
    thread.join(60)
    assert [len(one) for one in built.conversations.get("me", tab.conversation).versions.values()] == [4]
    assert inside == []


def test_a_reply_that_is_stored_moves_to_the_others(view: View, talk: ChatHandlers, tab: Tab) -> None:
    done = replace(WRITTEN, status="done")
    view.conversations.save_turn("me", tab.conversation, done)
    last = ended(view, talk, tab, WRITTEN, done)
    assert "All of it" in last["transcript"]
    assert last["answering"] == ""
    assert "notice" not in last


def test_a_reply_that_could_not_be_stored_stays_on_the_page_with_the_reason(
    view: View, talk: ChatHandlers, tab: Tab
) -> None:
    view.conversations.save_turn("me", tab.conversation, HALF)
    last = ended(view, talk, tab, HALF, WRITTEN, error="The disk is full.")
    assert "could not be stored" in last["notice"]
    assert "All of it" in last["answering"]
    assert "The disk is full." in last["answering"]
    assert "Because." in last["transcript"]
    assert "half" not in last["transcript"]


def test_the_sources_of_an_answer_are_shown_at_its_end(view: View, talk: ChatHandlers, tab: Tab) -> None:
    view.conversations.save_turn("me", tab.conversation, WRITTEN)
    assert 'data-looked="half"' in ended(view, talk, replace(tab, looked="old"), WRITTEN)["sources"]


def test_sources_that_were_picked_while_an_answer_was_written_stay(
    view: View, talk: ChatHandlers, tab: Tab, write: Write
) -> None:
    watching = Watching(talk, tab, write())
    talk.look(told(tab, turn="old"))
    talk.stop(tab)
    assert 'data-looked="old"' in watching.join()[-1]["sources"]


def test_a_conversation_shown_again_keeps_the_sources_that_were_looked_at(view: View, tab: Tab) -> None:
    view.conversations.save_turn("me", tab.conversation, WRITTEN)
    for looked, shown in (("old", "old"), ("", "half"), ("gone", "half")):
        assert f'data-looked="{shown}"' in view.all(replace(tab, looked=looked))["sources"]


def test_nothing_is_taken_back_while_an_answer_is_written(
    view: View, talk: ChatHandlers, tab: Tab, write: Write
) -> None:
    write()
    with pytest.raises(StoreError, match="being written"):
        talk.undo(told(tab, turn="old"))
    assert "old" in [turn.id for turn in view.conversation(tab).turns]


def test_only_the_last_message_is_taken_back(view: View, talk: ChatHandlers, tab: Tab) -> None:
    view.conversations.save_turn("me", tab.conversation, WRITTEN)
    with pytest.raises(StoreError, match="went on after this message"):
        talk.undo(told(tab, turn="old"))
    assert len(view.conversation(tab).turns) == 2
    talk.undo(told(tab, turn="half"))
    talk.undo(told(tab, turn="old"))
    assert view.conversation(tab).turns == ()


def test_a_message_is_taken_back_with_the_collection_that_it_named(view: View, talk: ChatHandlers, tab: Tab) -> None:
    def taken_back(turn: Turn) -> str:
        view.conversations.save_turn("me", tab.conversation, replace(turn, status="done"))
        found = re.search(r'data-draft="([^"]*)"', talk.undo(told(tab, turn=turn.id))["composer"])
        return found[1] if found else ""

    of_recipes = Turn("How long do oats cook?", choices=Choices(collection="@recipes", library="@recipes"))
    assert taken_back(of_recipes) == "@recipes How long do oats cook?"
    view.conversations.save_turn("me", tab.conversation, replace(of_recipes, id="first", status="done"))
    assert taken_back(replace(of_recipes, id="second")) == "How long do oats cook?"
    assert taken_back(replace(of_recipes, id="third", choices=Choices(collection="@all"))).startswith("@all How")
    work = Work("summary", ("oats.txt",), ("oats.txt",))
    assert taken_back(Turn("Summarise oats.txt", id="work", work=work)) == ""


def test_of_two_conversations_the_one_that_was_asked_for_last_stays(
    view: View, talk: ChatHandlers, tab: Tab, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, begun, shown = Event(), Event(), View.all

    def all_of(self: View, asked: Tab) -> Updates:
        if asked.conversation == tab.conversation:
            begun.set()
            slow.wait(5)
        return shown(self, asked)

    monkeypatch.setattr(View, "all", all_of)
    other = replace(tab, conversation=view.conversations.new("me").id)

    async def both() -> tuple[list[Updates], list[Updates]]:
        first = asyncio.create_task(collected(talk, tab))
        await asyncio.to_thread(begun.wait, 5)
        second = await collected(talk, other)
        slow.set()
        return await first, second

    async def collected(talk: ChatHandlers, asked: Tab) -> list[Updates]:
        return [updates async for updates in talk.show(asked, None)]

    with ThreadPoolExecutor(1) as pool:  # a browser test may have left this thread with a loop
        first, second = pool.submit(asyncio.run, both()).result(10)
    assert (len(first), len(second)) == (0, 1)


def test_what_one_version_remembered_is_taken_back_from_another(view: View, talk: ChatHandlers, tab: Tab) -> None:
    meat = view.ptkb.add("me", "I eat meat.")
    offered = replace(OLD, known=(meat,), offers=(FactOffer("I'm vegan.", meat.id),))
    view.conversations.save_turn("me", tab.conversation, offered)
    talk.remember(told(tab, turn="old", place="0"))
    assert [fact.text for fact in view.ptkb.facts("me")] == ["I'm vegan."]
    view.conversations.save_turn("me", tab.conversation, replace(WRITTEN, status="done"), Version("old"))
    view.conversations.choose("me", tab.conversation, "half")
    talk.undo(told(tab, turn="half", facts="forget"))
    assert [fact.text for fact in view.ptkb.facts("me")] == ["I eat meat."]


def test_a_fact_gives_its_place_back_though_it_was_edited(view: View, talk: ChatHandlers, tab: Tab) -> None:
    meat, oats, town = (view.ptkb.add("me", text) for text in ("I eat meat.", "I hate oats.", "I live in Oslo."))
    offers = (FactOffer("I like oats.", oats.id), FactOffer("I'm vegan.", meat.id), FactOffer("I have a dog."))
    offered = replace(OLD, known=(meat, oats, town), offers=(*offers, FactOffer("I live in Rome.", town.id)))
    view.conversations.save_turn("me", tab.conversation, offered)
    for place in "012":
        talk.remember(told(tab, turn="old", place=place))
    vegan = next(fact for fact in view.ptkb.facts("me") if fact.text == "I'm vegan.")
    view.ptkb.edit("me", vegan.id, "I'm mostly vegan.")
    talk.undo(told(tab, turn="old", facts="forget"))
    assert sorted(fact.text for fact in view.ptkb.facts("me")) == ["I eat meat.", "I hate oats.", "I live in Oslo."]


def test_a_fact_that_was_kept_is_not_given_back(view: View, talk: ChatHandlers, tab: Tab) -> None:
    meat = view.ptkb.add("me", "I eat meat.")
    offered = replace(OLD, known=(meat,), offers=(FactOffer("I'm vegan.", meat.id), FactOffer("I have a dog.")))
    view.conversations.save_turn("me", tab.conversation, offered)
    view.ptkb.edit("me", meat.id, "I eat fish.")
    for place in "01":
        talk.remember(told(tab, turn="old", place=place))
    dog = next(fact for fact in view.ptkb.facts("me") if fact.text == "I have a dog.")
    view.ptkb.edit("me", dog.id, "I have two dogs.")
    talk.undo(told(tab, turn="old", facts="forget"))
    assert [fact.text for fact in view.ptkb.facts("me")] == ["I eat fish."]


def test_no_version_is_chosen_of_a_reply_that_is_being_written(
    view: View, talk: ChatHandlers, tab: Tab, write: Write
) -> None:
    write(Place("old", ("concat", "summary")))
    for turn in ("half", "old"):
        with pytest.raises(StoreError, match="being written"):
            talk.choose(told(tab, turn=turn))
    assert [turn.id for turn in view.conversation(tab).turns] == ["old"]


def test_versions_of_other_replies_are_chosen_meanwhile(view: View, talk: ChatHandlers, tab: Tab, write: Write) -> None:
    view.conversations.save_turn("me", tab.conversation, replace(OLD, id="new", answer=Answer("So.")), Version("old"))
    write()
    assert "So." in talk.choose(told(tab, turn="new"))["transcript"]


@pytest.mark.parametrize("act", ["judge", "remember", "choose"])
def test_what_others_write_is_not_begun_on_a_page_that_does_not_follow_it(
    talk: ChatHandlers, tab: Tab, write: Write, act: str
) -> None:
    write()
    updates = getattr(talk, act)(told(tab, turn="old", value="1", place="0"))
    assert "answering" not in updates
    assert "Because." in updates["transcript"]
    assert "half" not in updates["transcript"]


def test_a_refused_answer_switches_no_model(view: View, parts: Parts, tab: Tab, write: Write) -> None:
    write()
    switched = list[str]()
    chat = Chat(view.conversations, view.ptkb, Given(parts))
    talk = ChatHandlers(view, chat, lambda _user: Choices(), lambda _user, model: switched.append(model))

    async def again() -> None:
        async for _ in talk.again(told(tab, turn="old", model="another")):
            pass

    with ThreadPoolExecutor() as apart, pytest.raises(BusyError):
        apart.submit(asyncio.run, again()).result()
    assert switched == []


@pytest.fixture
def offered(view: View, tab: Tab) -> Fact:
    """A fact that a reply offers to replace."""
    fact = view.ptkb.add("me", "I live in Porto.")
    moved = Turn("I've moved.", id="moved", known=(fact,), offers=(FactOffer("I live in Lisbon.", fact.id),))
    view.conversations.save_turn("me", tab.conversation, replace(moved, status="done"))
    return fact


def remember(talk: ChatHandlers, tab: Tab) -> Updates:
    return talk.remember(told(tab, turn="moved", place="0"))


def known(view: View) -> list[str]:
    return [fact.text for fact in view.ptkb.facts("me")]


@pytest.mark.usefixtures("offered")
def test_a_fact_is_replaced_where_that_was_offered(view: View, talk: ChatHandlers, tab: Tab) -> None:
    assert "Replace “I live in Porto.” with" in view.all(tab)["transcript"]
    updates = remember(talk, tab)
    assert known(view) == ["I live in Lisbon."]
    assert OLD_FACT_KEPT not in updates["notice"]


def test_a_fact_that_was_changed_since_it_was_to_be_replaced_is_kept(
    view: View, talk: ChatHandlers, tab: Tab, offered: Fact
) -> None:
    view.ptkb.edit("me", offered.id, "I work in Porto.")
    shown = view.all(tab)["transcript"]
    assert "Remember “I live in Lisbon.”?" in shown
    assert "Replace" not in shown
    assert OLD_FACT_KEPT in remember(talk, tab)["notice"]
    assert known(view) == ["I work in Porto.", "I live in Lisbon."]


def test_of_a_fact_that_was_removed_since_nothing_is_said(
    view: View, talk: ChatHandlers, tab: Tab, offered: Fact
) -> None:
    view.ptkb.remove("me", offered.id)
    assert OLD_FACT_KEPT not in remember(talk, tab)["notice"]
    assert known(view) == ["I live in Lisbon."]


@pytest.mark.parametrize("forget", ["forget", "drop"])
def test_a_forgotten_fact_counts_no_more_in_the_conversation_in_which_it_was_said(
    view: View, talk: ChatHandlers, tab: Tab, parts: Parts, forget: str
) -> None:
    stated = ("I like oats.", "I live in Porto.")
    view.conversations.save_turn("me", tab.conversation, replace(OLD, stated=stated))
    view.conversations.save_turn("me", tab.conversation, replace(OLD, id="again", stated=stated[:1], offers=()))
    talk.remember(told(tab, turn="old", place="0"))
    [fact] = view.ptkb.facts("me")
    acting = talk if forget == "forget" else FactPanel(view, talk)
    getattr(acting, forget)(told(tab, fact=fact.id))
    [turn] = facts.run(Turn("What could I cook?", exchanges(view.conversation(tab).turns)), parts, Event())
    assert {one.text for one in turn.facts} == {"I live in Porto."}


def test_only_a_page_that_follows_what_is_written_has_a_place_for_it(
    talk: ChatHandlers, tab: Tab, write: Write
) -> None:
    run, liked = write(Place("old")), told(tab, turn="old", value="1")
    assert "Because." in talk.judge(liked)["transcript"]
    Watching(talk, tab, run)
    followed = talk.judge(liked)["transcript"]
    assert 'id="place-old"' in followed
    assert "Because." not in followed
    assert "Because." in talk.judge(replace(liked, session="another"))["transcript"]


def test_who_deletes_a_conversation_is_not_told_that_it_is_gone(
    view: View, talk: ChatHandlers, tab: Tab, write: Write
) -> None:
    run = write()
    here, there = (Watching(talk, one, run) for one in (tab, replace(tab, session="another")))
    empty = Sidebar(view, talk).delete(told(tab, target=tab.conversation))
    assert "Why?" not in empty["transcript"]
    assert not any("notice" in updates for updates in here.join())
    assert "was not found" in there.join()[-1]["notice"]
