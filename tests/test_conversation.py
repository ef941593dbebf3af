"""The store of conversations, on real files of SQLite and a real PostgreSQL, and its Markdown."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from sqlalchemy import Engine

from assistant.errors import StoreError
from assistant.store import older_turns
from assistant.store.conversations import Conversations, Version
from assistant.store.database import connect
from assistant.store.export import document
from assistant.types import (
    Answer,
    Citation,
    Exchange,
    Fact,
    Passage,
    RankedFact,
    Sentence,
    Tokens,
    Turn,
    TurnEvent,
    now,
)
from assistant.wording.views import headline, unsourced_kind


@pytest.fixture
def store(engine: Engine) -> Conversations:
    return Conversations(engine)


def said(utterance: str, reply: str = "", **fields: object) -> Turn:
    return Turn(utterance, answer=Answer(reply) if reply else None, status="done", **fields)  # type: ignore[arg-type]


def test_a_turn_comes_back_whole(store: Conversations) -> None:
    turn = said(
        "What is a good diet?",
        "Lentils [1].",
        history=(Exchange("Hi", "Hi", "Hello"),),
        known=(Fact("f", "I'm vegan.", now(), now()),),
        facts=(RankedFact("f", "I'm vegan.", 0.5, used=True),),
        passages=(Passage("p", "Lentils", "Lentils are rich in protein.", 1.5, ("draft",)),),
        citations=(Citation(1, "p", 0, 28, "Lentils.", "Lentils are rich in protein.", 0.9),),
        timings={"draft": 1.5},
        spent={"draft": Tokens(10, 2)},
    )
    made = store.new("me")
    store.save_turn("me", made.id, turn)
    assert store.get("me", made.id).turns == (turn,)


def test_saving_again_replaces_the_turn_in_its_place(store: Conversations) -> None:
    made = store.new("me")
    first, second = said("one"), said("two")
    for turn in (first, second, replace(first, answer=Answer("reply"))):
        store.save_turn("me", made.id, turn)
    read = store.get("me", made.id).turns
    assert [turn.utterance for turn in read] == ["one", "two"]
    assert read[0].answer == Answer("reply")


def test_conversations_are_listed_the_one_changed_last_first(store: Conversations) -> None:
    first, second = store.new("me", "First"), store.new("me", "Second")
    assert [one.title for one in store.list("me")] == ["Second", "First"]
    store.save_turn("me", first.id, said("hello"))
    assert [(one.title, one.turns) for one in store.list("me")] == [("First", 1), ("Second", 0)]
    assert store.get("me", second.id).title == "Second"


def test_the_first_utterance_gives_the_title(store: Conversations) -> None:
    made = store.new("me")
    store.save_turn("me", made.id, said("What should\n I eat " + "very " * 30 + "often?"))
    store.save_turn("me", made.id, said("And drink?"))
    title = store.list("me")[0].title
    assert title.startswith("What should I eat very")
    assert title.endswith("…")
    assert len(title) <= 60
    store.rename("me", made.id, "Food")
    assert store.get("me", made.id).title == "Food"
    with pytest.raises(StoreError, match="empty"):
        store.rename("me", made.id, " \n ")


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("LENTILS", ["a"]),
        ("größe", ["b"]),
        ("100%", ["a"]),
        ("_", []),
        ("rome", ["c"]),
        ("nothing", []),
        ("", ["c", "b", "a"]),
    ],
)
def test_search_looks_at_titles_and_messages(store: Conversations, search: str, found: list[str]) -> None:
    for title, turn in (("a", said("Are lentils 100% good?")), ("b", said("Hi", "GRÖSSE zählt"))):
        store.save_turn("me", store.new("me", title).id, turn)
    store.rename("me", store.new("me").id, "Rome")
    names = {"Rome": "c"}
    assert [names.get(one.title, one.title) for one in store.list("me", search)] == found


def test_a_search_of_any_length_or_content_is_fine(store: Conversations) -> None:
    store.save_turn("me", store.new("me").id, said("Hello"))
    assert store.list("me", "x" * 100_000) == []
    assert store.list("me", "\ud800") == []


def test_users_neither_see_nor_touch_each_others_conversations(store: Conversations) -> None:
    made, turn = store.new("ada"), said("secret plan", "reply")
    store.save_turn("ada", made.id, turn)
    for attempt in (
        lambda: store.get("bob", made.id),
        lambda: store.rename("bob", made.id, "Mine"),
        lambda: store.delete("bob", made.id),
        lambda: store.save_turn("bob", made.id, said("x")),
        lambda: store.remove_turn("bob", made.id, turn.id),
        lambda: store.feedback("bob", turn.id, 1),
        lambda: store.export_markdown("bob", made.id),
        lambda: store.save_turn("bob", store.new("bob").id, turn),
    ):
        with pytest.raises(StoreError):
            attempt()
    assert store.list("bob", "secret") == []
    assert store.get("ada", made.id).turns == (turn,)


def test_undo_delete_and_feedback(store: Conversations, engine: Engine) -> None:
    made, turns = store.new("me"), [said("one"), said("two")]
    for turn in turns:
        store.save_turn("me", made.id, turn)
    store.feedback("me", turns[0].id, -1)
    store.save_turn("me", made.id, replace(turns[0], step="late"))
    assert store.get("me", made.id).feedback == {turns[0].id: -1}
    store.feedback("me", turns[0].id, 0)
    store.remove_turn("me", made.id, turns[1].id)
    read = store.get("me", made.id)
    assert (len(read.turns), read.feedback) == (1, {})
    store.delete("me", made.id)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM turns").scalar() == 0
    with pytest.raises(StoreError, match="not found"):
        store.get("me", made.id)


@pytest.mark.parametrize("utterance", ["my  secret", "my secret " + "very " * 30 + "long", "my \ud800 secret"])
def test_undoing_the_only_message_takes_the_title_that_it_gave(store: Conversations, utterance: str) -> None:
    made, turn, later = store.new("me"), said(utterance), said("And then?")
    store.save_turn("me", made.id, turn)
    store.save_turn("me", made.id, replace(turn, id="again"), Version(turn.id))
    store.save_turn("me", made.id, later)
    store.remove_turn("me", made.id, later.id)
    assert store.get("me", made.id).title.startswith("my")
    store.remove_turn("me", made.id, turn.id)
    assert store.get("me", made.id).title == ""
    assert store.list("me", "secret") == []
    assert "secret" not in store.export_markdown("me", made.id)
    store.save_turn("me", made.id, later)
    assert store.get("me", made.id).title == "And then?"


def test_undoing_leaves_a_title_that_was_chosen(store: Conversations) -> None:
    made, turn, other = store.new("me"), said("one"), store.new("me", "one")
    store.save_turn("me", made.id, turn)
    store.rename("me", made.id, "Numbers")
    store.remove_turn("me", made.id, turn.id)
    assert [one.title for one in store.list("me")] == ["Numbers", "one"]
    assert store.get("me", other.id).title == "one"


def test_a_turn_that_a_killed_process_left_is_stopped_with_what_was_written(
    store: Conversations, engine: Engine
) -> None:
    made = store.new("me")
    store.save_turn("me", made.id, Turn("Why?", answer=Answer("Because")))
    assert store.get("me", made.id).turns[0].status == "running"
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE turns SET process = 'another'")
    (turn,) = store.get("me", made.id).turns
    assert (turn.status, turn.answer) == ("stopped", Answer("Because"))


def test_a_turn_whose_details_are_broken_keeps_its_text(store: Conversations, engine: Engine) -> None:
    made, turn = store.new("me"), said("Why?", "Because.")
    store.save_turn("me", made.id, turn)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE turns SET turn = '{'")
    (read,) = store.get("me", made.id).turns
    assert (read.id, read.utterance, read.answer, read.status) == (turn.id, "Why?", Answer("Because."), "failed")


def test_lone_surrogates_dont_cost_the_turn(store: Conversations) -> None:
    made = store.new("me")
    store.save_turn("me", made.id, said("odd \ud83d text"))
    assert store.get("me", made.id).turns[0].utterance == "odd ? text"


def test_threads_save_into_one_conversation(store: Conversations) -> None:
    made = store.new("me")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: store.save_turn("me", made.id, said(f"turn {n}")), range(40)))
    assert len(store.get("me", made.id).turns) == 40


def test_preferences_are_each_users_own(store: Conversations) -> None:
    assert store.preferences("ada") == {}
    store.set_preferences("ada", {"k": 4})
    store.set_preferences("ada", {"k": 6, "loop": "grg"})
    assert store.preferences("ada") == {"k": 6, "loop": "grg"}
    assert store.preferences("bob") == {}


def test_a_read_only_database_is_read_and_says_so_on_writing(tmp_path: Path) -> None:
    store = Conversations(connect(f"sqlite:///{tmp_path / 'chats.sqlite3'}"))
    made = store.new("me", "Kept")
    reader = Conversations(connect(f"sqlite:///file:{tmp_path / 'chats.sqlite3'}?mode=ro&uri=true"))
    assert reader.get("me", made.id).title == "Kept"
    with pytest.raises(StoreError, match="read-only"):
        reader.save_turn("me", made.id, said("x"))


def test_the_export_has_utterances_replies_and_numbered_sources(store: Conversations) -> None:
    passages = (Passage("p1", "Lentils *and* more", "x"), Passage("p2", "", "y"))
    citations = (
        Citation(2, "p2", 0, 5, "s", "two\nlines", 0.9),
        Citation(1, "p1", 0, 5, "s", "a quote", 0.9),
        Citation(1, "p1", 0, 5, "other", "a quote", 0.9),
    )
    made = store.new("me", "Food")
    store.save_turn(
        "me", made.id, said("Diet?", "- Eat *lentils* [1]\n- Drink [2]", passages=passages, citations=citations)
    )
    assert store.export_markdown("me", made.id) == (
        "# Food\n\n**You**\n\n> Diet?\n\n**Sequitur**\n\n> - Eat *lentils* [1]\n> - Drink [2]\n\nSources\n\n"
        "- \\[1\\] Lentils \\*and\\* more: “a quote”\n- \\[2\\] p2: “two lines”\n"
    )


def test_the_export_says_where_a_source_stands_and_links_to_the_web(store: Conversations) -> None:
    page, file = "https://example.org/oats.pdf, page 3", "On oats (1).pdf, page 4"
    passages = (
        Passage("p1", "Oats", "x", source=page, page=3, heading="Growing > Soil"),
        Passage("p2", "Rice", "y", source=file, page=4),
        Passage("p3", "Tea", "z", source="https://example.org/<b>"),
    )
    citations = tuple(Citation(n, f"p{n}", 0, 1, "s", "a quote", 0.9) for n in (1, 2, 3))
    made = store.new("me", "Food")
    store.save_turn("me", made.id, said("Diet?", "So. [1][2][3]", passages=passages, citations=citations))
    exported = store.export_markdown("me", made.id)
    assert "- \\[1\\] Oats \\- Growing \\> Soil (<https://example.org/oats.pdf>): “a quote”\n" in exported
    assert "- \\[2\\] Rice (On oats \\(1\\)\\.pdf, page 4): “a quote”\n" in exported
    assert "<b>" not in exported


def test_the_export_tells_what_is_said_in_part_and_what_is_not_found(store: Conversations) -> None:
    made = store.new("me", "Food")
    whole = Citation(1, "p1", 0, 5, "Eat.", "a quote", 0.9)
    sentences = (Sentence("Eat.", "supported"), Sentence("Go <b>.", "not"), Sentence("Well.", "partly"))
    turn = said(
        "Diet?",
        "Eat. [1] Go. Drink. [2] [1]",
        passages=(Passage("p1", "One", "x"), Passage("p2", "Two", "y")),
        citations=(whole, Citation(2, "p2", 0, 5, "Well.", "two", 0.4, partly=True), replace(whole, partly=True)),
        sentences=sentences,
    )
    store.save_turn("me", made.id, turn)
    exported = store.export_markdown("me", made.id)
    assert "- \\[1\\] One: “a quote”\n- \\[2\\] Two, says a part: “two”\n" in exported
    assert exported.endswith("Not found in the sources\n\n- Go \\<b\\>\\.\n")


def test_sentences_of_before_there_were_states_are_read() -> None:
    old = [
        {"text": "A.", "supported": True, "support": 0.9, "citations": [1]},
        {"text": "B.", "supported": False, "support": 0.1, "citations": []},
        {"text": "C?", "supported": True, "support": None, "citations": []},
    ]
    stored = {**json.loads(said("q", "r").to_json()), "sentences": old, "inner": {"description": "the largest", "n": 1}}
    read = Turn.from_json(json.dumps(stored))
    assert [one.state for one in read.sentences] == ["supported", "not", "unchecked"]
    assert Turn.from_json(read.to_json()) == read


def test_replies_and_events_of_before_they_were_typed_are_what_they_were() -> None:
    """As stored by the versions whose replies and events were sentences alone."""

    def stored(text: str, origin: str, *events: str, unknown: bool = False) -> Turn:
        answer = {"text": text, "unknown": unknown, "origin": origin}
        return older_turns.read(json.dumps({**json.loads(said("q").to_json()), "answer": answer, "events": events}))

    own = stored(
        "Not from your library: this is the model's own knowledge, without a source.\n\nIt is oat drink.",
        "model",
        "No passage seems to answer this (confidence 0.00, below 0.01).",
    )
    assert own.answer == Answer("It is oat drink.", origin="model", outcome="own")
    assert own.events == (TurnEvent("none_relevant", "confidence 0.00, below 0.01"),)
    assert (unsourced_kind(own), headline(replace(own, status="done"))[:9]) == ("own", "Looked at")
    lost = stored("The library doesn't hold an answer to this.", "pool", "Something else.", unknown=True)
    assert lost.answer == Answer(lost.answer.text, True, "pool", "not_held")
    assert lost.events == (TurnEvent("other", "Something else."),)
    fell = "The passages together gave no answer, so each was asked alone."
    assert stored("A. [1]", "pool", fell).events == (TurnEvent("fell_back"),)
    assert older_turns.read(own.to_json()) == own


def test_a_models_reply_in_the_words_of_a_fixed_one_is_stored_as_it_is(store: Conversations) -> None:
    conversation = store.new("me")
    turn = replace(said("q"), answer=Answer("The library doesn't hold an answer to this."), status="done")
    store.save_turn("me", conversation.id, turn)
    assert store.get("me", conversation.id).turns[-1].answer == turn.answer


HOSTILE = st.text(st.sampled_from(list("<>![]()`~#*_-=:&\\/|\n\t 1ax\"'")), max_size=60) | st.sampled_from(
    [
        "<img src=x>",
        "![a](http://h/x.png)",
        "[a](javascript:x)",
        "```\nopen",
        "[x]: http://h 'y'\n[x]",
        "\\<b>",
        "# Head",
        "<!-- ",
    ]
)


@given(utterance=HOSTILE, reply=HOSTILE, quote=HOSTILE, title=HOSTILE)
def test_nothing_that_was_written_breaks_the_export(utterance: str, reply: str, quote: str, title: str) -> None:
    turn = said(
        utterance,
        reply if reply.strip() else "-",
        passages=(Passage("p", title, quote),),
        citations=(Citation(1, "p", 0, 1, "s", quote, 1.0),),
    )
    tokens = MarkdownIt("commonmark").parse(document("T", [turn, said("after", "last")]))
    inline = [child.type for token in tokens for child in token.children or []]
    top = [token.type for token in tokens if token.level == 0 and token.nesting >= 0]
    assert not {"html_block", "html_inline", "image", "link_open"} & {*inline, *(token.type for token in tokens)}
    head, question, answer = "heading_open", "paragraph_open", "blockquote_open"
    assert top == [
        head,
        question,
        answer,
        question,
        answer,
        question,
        "bullet_list_open",
        question,
        answer,
        question,
        answer,
    ]
