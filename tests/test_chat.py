"""The chat around a turn: real SQLite, scripted model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from assistant.chat import INTERNAL_ERROR, Chat, exchanges
from assistant.errors import LibraryError, StoreError, UtteranceError
from assistant.library.collections import make
from assistant.llm.embedder import SentenceEmbedder
from assistant.protocols import Parts
from assistant.settings import Settings
from assistant.steps.closed_book import unbacked
from assistant.store.conversations import Conversations
from assistant.store.database import connect
from assistant.types import Answer, Choices, Exchange, Turn, TurnEvent, Wait, Work
from ptkb.store import Ptkb
from tests.scripted import ScriptedLLM
from tests.sources import Given

DEFAULT = Choices()
DRAFT, ANSWER = "Lentils make a good diet.", "Lentils are rich in protein."
Start = Callable[..., tuple[Chat, Conversations, Ptkb]]


@pytest.fixture
def source(parts: Parts) -> Given:
    """Where the chat gets its parts."""
    return Given(parts)


@pytest.fixture
def start(parts: Parts, source: Given, tmp_path: Path) -> Start:
    def make(*replies: object) -> tuple[Chat, Conversations, Ptkb]:
        engine = connect(f"sqlite:///{tmp_path / 'chat.sqlite3'}")
        conversations, ptkb = Conversations(engine), Ptkb(engine)
        source.made = replace(parts, llm=ScriptedLLM(list(replies)))
        return Chat(conversations, ptkb, source), conversations, ptkb

    return make


def asked(chat: Chat, conversation: str, text: str) -> Turn:
    *_, turn = chat.ask("me", conversation, text, Choices(), Event())
    return turn


def test_what_is_asked_is_saved_as_it_ends(start: Start) -> None:
    chat, conversations, _ = start(DRAFT, ANSWER)
    conversation = conversations.new("me").id
    turn = asked(chat, conversation, "What is a good diet?")
    assert list(conversations.get("me", conversation).turns) == [turn]
    assert turn.status == "done"


def test_the_second_question_knows_the_first(start: Start) -> None:
    chat, conversations, _ = start(DRAFT, ANSWER, "Which lentils hold much protein?", DRAFT, ANSWER)
    conversation = conversations.new("me").id
    asked(chat, conversation, "What is a good diet?")
    turn = asked(chat, conversation, "Which ones have much of it?")
    assert turn.question == "Which lentils hold much protein?"
    assert [one.utterance for one in turn.history] == ["What is a good diet?"]
    # a stored turn doesn't hold those before it once more
    assert conversations.get("me", conversation).turns[-1] == replace(turn, history=())


def test_a_tab_that_closes_keeps_what_was_written(start: Start) -> None:
    chat, conversations, _ = start(DRAFT, ANSWER)
    conversation = conversations.new("me").id
    stream = chat.ask("me", conversation, "What is a good diet?", Choices(), Event())
    written = next(turn for turn in stream if turn.answer and len(turn.answer.text) > 10)
    stream.close()
    [saved] = conversations.get("me", conversation).turns
    assert saved.status == "stopped"
    assert saved.answer == written.answer


def test_a_bug_loses_nothing_and_is_told_in_a_sentence(start: Start) -> None:
    def broken(_messages: object) -> str:
        raise ZeroDivisionError

    chat, conversations, _ = start(broken)
    conversation = conversations.new("me").id
    turn = asked(chat, conversation, "What is a good diet?")
    assert (turn.status, turn.error) == ("failed", INTERNAL_ERROR)
    [saved] = conversations.get("me", conversation).turns
    assert saved.utterance == "What is a good diet?"


def test_answering_again_replaces_the_old_turn(start: Start) -> None:
    chat, conversations, _ = start(DRAFT, ANSWER, DRAFT, "Oat drink holds no lactose.")
    conversation = conversations.new("me").id
    old = asked(chat, conversation, "What is a good diet?")
    *_, new = chat.again("me", conversation, old.id, Choices(), Event())
    assert [turn.id for turn in conversations.get("me", conversation).turns] == [new.id]


def test_answering_again_that_is_stopped_keeps_the_old_turn(start: Start) -> None:
    chat, conversations, _ = start(DRAFT, ANSWER, DRAFT, ANSWER)
    conversation = conversations.new("me").id
    old = asked(chat, conversation, "What is a good diet?")
    stop = Event()
    for turn in chat.again("me", conversation, old.id, Choices(), stop):
        if turn.draft:
            stop.set()
    assert old.id in [turn.id for turn in conversations.get("me", conversation).turns]


def test_nobody_asks_in_a_conversation_of_somebody_else(start: Start) -> None:
    chat, conversations, _ = start(DRAFT, ANSWER)
    conversation = conversations.new("me").id
    with pytest.raises(StoreError):
        list(chat.ask("you", conversation, "What is a good diet?", Choices(), Event()))


def test_an_empty_message_leaves_no_trace(start: Start) -> None:
    chat, conversations, _ = start()
    conversation = conversations.new("me").id
    with pytest.raises(UtteranceError):
        asked(chat, conversation, "  ")
    assert not conversations.get("me", conversation).turns


def test_facts_of_the_user_are_used(start: Start) -> None:
    chat, conversations, ptkb = start(DRAFT, ANSWER)
    ptkb.add("me", "I want a good diet without meat.")
    ptkb.add("you", "I want a good diet with meat.")
    turn = asked(chat, conversations.new("me").id, "What is a good diet?")
    assert turn.used_facts == ("I want a good diet without meat.",)


class TestWhileLoading:
    """A message that comes before the parts do."""

    def test_it_is_kept_and_waits(self, start: Start, source: Given) -> None:
        chat, conversations, ptkb = start("What is a good diet for a vegan?", DRAFT, ANSWER)
        conversation = conversations.new("me").id
        source.there.clear()
        stream = chat.ask("me", conversation, " What is a good diet? ", Choices(), Event())
        assert next(stream).step == "load"
        assert [one.utterance for one in conversations.get("me", conversation).turns] == ["What is a good diet?"]
        ptkb.add("me", "I'm vegan.")
        source.there.set()
        *_, turn = stream
        assert list(conversations.get("me", conversation).turns) == [turn]
        assert turn.status == "done"
        assert [fact.text for fact in turn.facts] == ["I'm vegan."]

    def test_it_can_be_stopped(self, start: Start, source: Given) -> None:
        chat, conversations, _ = start()
        source.there.clear()
        conversation, stop = conversations.new("me").id, Event()
        stream = chat.ask("me", conversation, "What is a good diet?", Choices(), stop)
        next(stream)
        stop.set()
        [turn] = stream
        assert (turn.status, turn.step) == ("stopped", "")
        assert list(conversations.get("me", conversation).turns) == [turn]

    def test_it_fails_with_the_loading(self, start: Start, source: Given) -> None:
        chat, conversations, _ = start()
        conversation = conversations.new("me").id
        source.there.clear()
        stream = chat.ask("me", conversation, "What is a good diet?", Choices(), Event())
        next(stream)
        source.error = "The model can't be fetched."
        source.there.set()
        [turn] = stream
        assert (turn.status, turn.error) == ("failed", "The model can't be fetched.")
        assert list(conversations.get("me", conversation).turns) == [turn]

    def test_one_that_can_not_be_answered_is_refused_at_once(self, start: Start, source: Given) -> None:
        chat, conversations, _ = start()
        source.there.clear()
        conversation = conversations.new("me").id
        with pytest.raises(UtteranceError, match="empty"):
            next(chat.ask("me", conversation, "  ", Choices(), Event()))
        assert not conversations.get("me", conversation).turns


class TestWhileDocumentsAreAdded:
    """A message that comes in the second after an upload."""

    def test_it_waits_for_them_and_tells_so(self, start: Start) -> None:
        chat, conversations, _ = start(DRAFT, ANSWER)
        conversation = conversations.new("me").id
        with chat.arrivals.track("me") as tell:
            stream = chat.ask("me", conversation, "What is a good diet?", Choices(), Event())
            first = next(stream)
            assert (first.step, first.wait) == ("load", Wait("documents"))
            assert [one.utterance for one in conversations.get("me", conversation).turns] == ["What is a good diet?"]
            tell(1, 2)
            assert next(stream).wait == Wait("documents", "", 50, 100)
        *_, turn = stream
        assert (turn.status, turn.events) == ("done", ())
        assert list(conversations.get("me", conversation).turns) == [turn]

    def test_nobody_waits_for_those_of_others(self, start: Start) -> None:
        chat, conversations, _ = start(DRAFT, ANSWER)
        with chat.arrivals.track("you"):
            steps = [one.step for one in chat.ask("me", conversations.new("me").id, "A diet?", Choices(), Event())]
        assert "load" not in steps

    def test_where_they_take_too_long_it_is_answered_and_says_so(self, start: Start, monkeypatch) -> None:
        monkeypatch.setattr("assistant.chat.PATIENCE", 0.3)
        chat, conversations, _ = start(DRAFT, ANSWER)
        with chat.arrivals.track("me"):
            turn = asked(chat, conversations.new("me").id, "What is a good diet?")
        assert (turn.status, turn.events) == ("done", (TurnEvent("documents_missing"),))

    def test_it_can_be_stopped(self, start: Start) -> None:
        chat, conversations, _ = start()
        conversation, stop = conversations.new("me").id, Event()
        with chat.arrivals.track("me"):
            stream = chat.ask("me", conversation, "What is a good diet?", Choices(), stop)
            next(stream)
            stop.set()
            [turn] = stream
        assert (turn.status, turn.step, turn.wait) == ("stopped", "", None)
        assert list(conversations.get("me", conversation).turns) == [turn]


class TestCollections:
    """A message that begins with "@" and the name of a collection is answered from that alone."""

    MENU = Choices(library="@tea")  # what a user chose on the page

    @pytest.fixture
    def chat(self, start: Start, settings: Settings) -> Chat:
        chat, conversations, _ = start(*[ANSWER] * 30)
        for name in ("food", "tea"):
            make("me", name, settings)
        self.conversation = conversations.new("me").id
        return chat

    def ask(self, chat: Chat, text: str, choices: Choices = DEFAULT) -> Turn:
        *_, turn = chat.ask("me", self.conversation, text, choices, Event())
        return turn

    def once(self, chat: Chat, text: str, *said: str, choices: Choices = DEFAULT) -> Turn:
        history = [Exchange(one, one, "Yes.") for one in said]
        *_, turn = chat.once("me", text, history, choices, Event())
        return turn

    def test_those_after_it_go_on_with_it_until_one_ends_it(self, chat: Chat) -> None:
        said = ("Hi?", "@Food What is a good diet?", "And bread?", "@all And bread?", "And bread?")
        turns = [self.ask(chat, one) for one in said]
        assert [turn.choices.library for turn in turns] == ["starter", "@food", "@food", "starter", "starter"]
        assert turns[1].utterance == "What is a good diet?"

    def test_work_on_whole_documents_does_not_end_it(self, start: Start, settings: Settings) -> None:
        chat, conversations, _ = start(*[ANSWER] * 10)
        make("me", "food", settings)
        self.conversation = conversations.new("me").id
        self.ask(chat, "@food What is a good diet?")
        done = Turn("Summarise", answer=Answer("Oats."), status="done", work=Work("summary", ("d",)))
        conversations.save_turn("me", self.conversation, done)
        assert self.ask(chat, "And bread?").choices.library == "@food"

    def test_what_is_chosen_on_the_page_holds_as_long_as_it_is_chosen(self, chat: Chat) -> None:
        assert self.ask(chat, "Which tea?", self.MENU).choices.library == "@tea"
        assert self.ask(chat, "@all Which tea?", self.MENU).choices.library == "starter"
        assert self.ask(chat, "Which tea?", self.MENU).choices.library == "@tea"
        assert self.ask(chat, "Which tea?").choices.library == "starter"

    def test_another_answer_is_from_the_same_collection(self, chat: Chat) -> None:
        turn = self.ask(chat, "@food What is a good diet?")
        pair = ("concat", "summary")
        turns = list(chat.compare("me", self.conversation, turn.id, pair, self.MENU, Event()))
        *_, again = chat.again("me", self.conversation, turn.id, self.MENU, Event())
        assert {one.choices.library for one in (*turns, again)} == {"@food"}

    def test_another_answer_to_a_message_to_all_is_from_everything(self, chat: Chat) -> None:
        turn = self.ask(chat, "@all Which tea?", self.MENU)
        *_, again = chat.again("me", self.conversation, turn.id, self.MENU, Event())
        assert again.choices.library == "starter"

    def test_what_belongs_to_no_conversation_is_asked_in_the_same_way(self, chat: Chat) -> None:
        turn = self.once(chat, "And bread?", "Hi?", "@food What is a good diet?", "@gone And oats?")
        assert turn.choices.library == "@food"
        assert [one.utterance for one in turn.history] == ["Hi?", "What is a good diet?", "@gone And oats?"]
        assert self.once(chat, "@all And bread?", "@food Oats?").choices.library == "starter"
        assert self.once(chat, "And bread?", "@food Oats?", "@all Oats?").choices.library == "starter"
        chosen = Choices(library="@tea", collection="@tea")  # as a program names it beside the messages
        assert self.once(chat, "Which?", "@food Oats?", choices=chosen).choices.library == "@tea"
        with pytest.raises(LibraryError, match="yours are @food, @tea"):
            self.once(chat, "@none What?")


def test_what_a_message_states_holds_though_its_reply_was_stopped_before_the_first_word(
    start: Start, source: Given, embedder: SentenceEmbedder
) -> None:
    chat, conversations, _ = start(*[ANSWER] * 10)
    source.made = replace(source.made, embedder=embedder)
    conversation, stop = conversations.new("me").id, Event()
    for first in chat.ask("me", conversation, "I am vegan. What could I cook for dinner?", DEFAULT, stop):
        if first.stated:
            stop.set()
    assert (first.status, first.answer) == ("stopped", None)
    later = asked(chat, conversation, "What is a good diet?")
    assert later.history == ()
    assert [fact.text for fact in later.facts] == ["I'm vegan."]


def test_history_is_what_was_said_without_the_label_of_its_origin() -> None:
    turn = Turn("And Oslo?", question="What is Oslo?", answer=unbacked("Oslo is a city."))
    assert exchanges([turn]) == (Exchange("And Oslo?", "What is Oslo?", "Oslo is a city.", turn.id, "model"),)
