"""Replies with several versions: answered again, compared, chosen; on real databases, with a scripted model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from sqlalchemy import Engine

from assistant.chat import INTERNAL_ERROR, Chat
from assistant.errors import ModelError, SequiturError, SettingsError, StoreError
from assistant.protocols import Parts
from assistant.store.conversations import Conversations, Version
from assistant.store.database import connect
from assistant.types import Answer, Candidate, Choices, Turn, TurnEvent, Work
from assistant.wording.views import ballots, events
from ptkb.store import Ptkb
from tests.scripted import ScriptedLLM
from tests.sources import Given

DRAFT, ANSWER = "Lentils make a good diet.", "Lentils are rich in protein."
OTHER = "Oat drink holds no lactose."
DIET = "What is a good diet?"
Start = Callable[..., tuple[Chat, Conversations]]


@pytest.fixture
def store(engine: Engine) -> Conversations:
    return Conversations(engine)


@pytest.fixture
def start(parts: Parts, tmp_path: Path) -> Start:
    engine = connect(f"sqlite:///{tmp_path / 'chats.sqlite3'}")
    store = Conversations(engine)

    def make(*replies: object) -> tuple[Chat, Conversations]:
        source = Given(replace(parts, llm=ScriptedLLM(list(replies))))
        return Chat(store, Ptkb(engine), source), store

    return make


def said(utterance: str, reply: str = "", **fields: object) -> Turn:
    return Turn(utterance, answer=Answer(reply) if reply else None, status="done", **fields)  # type: ignore[arg-type]


def written_by_another(engine: Engine) -> None:
    """Make all turns look as if another process had written them."""
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE turns SET process = 'another'")


def talk(store: Conversations, *turns: Turn) -> str:
    made = store.new("me").id
    for turn in turns:
        store.save_turn("me", made, turn)
    return made


def ids(store: Conversations, conversation: str) -> list[str]:
    return [turn.id for turn in store.get("me", conversation).turns]


# --- the store ---------------------------------------------------------------------------------------------------


def test_a_version_is_kept_beside_its_turn_and_shown_once_chosen(store: Conversations) -> None:
    one, two, new = said("one", "1"), said("two", "2"), said("one", "another 1")
    made = talk(store, one, two)
    store.save_turn("me", made, new, Version(one.id))
    assert ids(store, made) == [one.id, two.id]
    store.choose("me", made, new.id)
    read = store.get("me", made)
    assert [turn.id for turn in read.turns] == [new.id, two.id]
    assert read.versions == {new.id: (one.id, new.id)}
    assert [read.position_of(turn) for turn in (one.id, new.id, two.id, "none")] == [0, 0, 1, -1]
    assert store.list("me")[0].turns == 2
    newer = said("one", "a third 1")
    store.save_turn("me", made, newer, Version(new.id))  # a version of a version is one of the same reply
    store.choose("me", made, one.id)
    assert store.get("me", made).versions == {one.id: (one.id, new.id, newer.id)}


def test_versions_outlive_a_restart_and_go_with_their_reply(
    store: Conversations, reopened: Callable[[], Engine]
) -> None:
    one, two, new = said("one", "1"), said("two", "2"), said("two", "another 2")
    made = talk(store, one, two)
    store.save_turn("me", made, new, Version(two.id))
    store.choose("me", made, new.id)
    engine = reopened()
    again = Conversations(engine)
    assert again.get("me", made) == store.get("me", made)
    again.remove_turn("me", made, new.id)
    assert ids(store, made) == [one.id]
    store.delete("me", made)
    with engine.connect() as raw:
        left = raw.exec_driver_sql("SELECT (SELECT count(*) FROM turns) + (SELECT count(*) FROM versions)").scalar()
    assert left == 0


def test_what_is_compared_is_so_until_one_is_chosen_and_what_has_no_text_goes(store: Conversations) -> None:
    old = said("one", "1")
    made = talk(store, old)
    first, second = said("one", "another 1"), said("one", error="No memory.")
    store.save_turn("me", made, first, Version(old.id, 1))
    store.save_turn("me", made, second, Version(old.id, 2))
    assert store.get("me", made).compared == {old.id: (first, second)}
    store.choose("me", made, first.id)
    read = store.get("me", made)
    assert (read.turns, read.compared) == ((first,), {})
    assert read.versions == {first.id: (old.id, first.id)}


def test_a_version_that_came_to_nothing_is_forgotten_but_never_the_one_shown(store: Conversations) -> None:
    old, new = said("one", "1"), said("one")
    made = talk(store, old)
    store.save_turn("me", made, new, Version(old.id))
    for turn in (new, old):
        store.discard("me", made, turn.id)
    read = store.get("me", made)
    assert (read.turns, read.versions) == ((old,), {})


def test_a_version_of_a_reply_that_was_taken_back_is_not_stored(store: Conversations) -> None:
    old, new = said("one", "1"), said("one", "2")
    made = talk(store, old)
    store.save_turn("me", made, new, Version(old.id))
    store.remove_turn("me", made, old.id)
    for attempt in (
        lambda: store.save_turn("me", made, new, Version(old.id)),
        lambda: store.choose("me", made, new.id),
    ):
        with pytest.raises(StoreError, match="not found"):
            attempt()
    assert ids(store, made) == []


def test_nobody_touches_the_versions_of_somebody_else(store: Conversations) -> None:
    old, new = said("one", "1"), said("one", "2")
    made, own = talk(store, old), store.new("you").id
    store.save_turn("me", made, new, Version(old.id))
    for attempt in (
        lambda: store.choose("you", made, new.id),
        lambda: store.choose("you", own, new.id),
        lambda: store.discard("you", made, new.id),
        lambda: store.save_turn("you", own, said("x", "y"), Version(old.id)),
        lambda: store.save_turn("you", made, said("x", "y"), Version(old.id)),
    ):
        with pytest.raises(StoreError):
            attempt()
    store.discard("you", own, new.id)  # nothing of theirs
    assert store.get("me", made).versions == {old.id: (old.id, new.id)}
    assert store.get("you", own).turns == ()


# --- the chat ----------------------------------------------------------------------------------------------------


def asked(chat: Chat, conversation: str, text: str = DIET) -> Turn:
    *_, turn = chat.ask("me", conversation, text, Choices(), Event())
    return turn


def test_an_earlier_reply_is_answered_again_in_its_place_and_what_follows_stays(start: Start) -> None:
    question = "Which lentils hold much protein?"
    chat, store = start(DRAFT, ANSWER, question, DRAFT, ANSWER, DRAFT, OTHER)
    made = store.new("me").id
    first, second = asked(chat, made), asked(chat, made, "Which ones have much of it?")
    *_, new = chat.again("me", made, first.id, Choices("concat"), Event())
    read = store.get("me", made)
    second = replace(second, history=())  # which the turns before tell
    assert read.turns == (new, second)
    assert (new.history, new.choices.strategy) == ((), "concat")
    assert read.versions == {new.id: (first.id, new.id)}
    store.choose("me", made, first.id)
    assert store.get("me", made).turns == (first, second)


def test_the_next_question_follows_the_version_that_is_shown(start: Start) -> None:
    chat, store = start(DRAFT, ANSWER, DRAFT, OTHER, "Which diet?", DRAFT, ANSWER)
    made = store.new("me").id
    first = asked(chat, made)
    list(chat.again("me", made, first.id, Choices(), Event()))
    assert [one.reply for one in asked(chat, made, "And what of it?").history] == [OTHER]


def test_answering_again_keeps_the_old_reply_if_nothing_comes_of_it(start: Start) -> None:
    def broken(_messages: object) -> str:
        raise ZeroDivisionError

    chat, store = start(DRAFT, ANSWER, DRAFT, broken, DRAFT, ANSWER)
    made = store.new("me").id
    old = asked(chat, made)
    *_, failed = chat.again("me", made, old.id, Choices(), Event())
    assert failed.error == INTERNAL_ERROR
    stop = Event()
    for turn in chat.again("me", made, old.id, Choices(), stop):
        if turn.draft:
            stop.set()
    read = store.get("me", made)
    assert (read.turns, read.versions) == ((old,), {})


def test_a_new_reply_that_is_stopped_keeps_what_was_written(start: Start) -> None:
    chat, store = start(DRAFT, ANSWER, DRAFT, OTHER)
    made = store.new("me").id
    old, stop = asked(chat, made), Event()
    for turn in chat.again("me", made, old.id, Choices(), stop):
        if turn.answer and len(turn.answer.text) > 8:
            stop.set()
    read = store.get("me", made)
    assert (read.turns[0].id, read.turns[0].status) == (turn.id, "stopped")
    assert read.versions == {turn.id: (old.id, turn.id)}


def test_two_strategies_answer_one_after_the_other_and_one_is_kept(start: Start) -> None:
    pool = [OTHER, OTHER, "unknown"]
    # one draft for both: the second strategy answers from what was found for the first
    chat, store = start(DRAFT, ANSWER, DRAFT, ANSWER, *pool)
    made = store.new("me").id
    old = asked(chat, made)
    snapshots = list(chat.compare("me", made, old.id, ("concat", "post_fusion"), Choices(), Event()))
    order = list(dict.fromkeys(turn.id for turn in snapshots))
    read = store.get("me", made)
    assert read.turns == (old,)
    sides = read.compared[old.id]
    assert [turn.id for turn in sides] == order
    assert [turn.choices.strategy for turn in sides] == ["concat", "post_fusion"]
    assert all(turn.status == "done" and turn.tokens.prompt and turn.seconds for turn in sides)
    assert [one.votes for one in sides[1].pool] == [2, 2, 0]
    assert sides[0].passages == sides[1].passages != ()
    shared = ("facts", "intent", "question", "passages", "digests")
    assert [sides[0].timings[step] for step in shared] == [sides[1].timings[step] for step in shared]
    assert sides[0].timings["answer"] != sides[1].timings["answer"]
    store.choose("me", made, order[1])
    read = store.get("me", made)
    assert ([turn.id for turn in read.turns], read.compared) == ([order[1]], {})
    assert read.versions == {order[1]: (old.id, *order)}


def test_work_on_whole_documents_is_not_compared(start: Start) -> None:
    chat, store = start(ANSWER, OTHER)
    made = talk(store, old := said("Summarise oats.pdf", "Oats cook.", work=Work("summary", ("d",), ("oats.pdf",))))
    with pytest.raises(SequiturError, match="answer it again instead"):
        list(chat.compare("me", made, old.id, ("concat", "post_fusion"), Choices(), Event()))
    assert store.get("me", made).versions == {}


def test_comparing_anew_ends_the_comparison_before(start: Start) -> None:
    chat, store = start(*[DRAFT, ANSWER], *[DRAFT, ANSWER, ANSWER] * 2)
    made = store.new("me").id
    old = asked(chat, made)
    for _ in range(2):
        list(chat.compare("me", made, old.id, ("concat", "concat_pf"), Choices(), Event()))
    read = store.get("me", made)
    assert [len(read.compared[old.id]), len(read.versions[old.id])] == [2, 5]


@pytest.mark.parametrize(("written", "left"), [(True, 1), (False, 0)])
def test_a_comparison_that_is_stopped_does_not_begin_its_second_half(start: Start, written: bool, left: int) -> None:
    chat, store = start(DRAFT, ANSWER, DRAFT, ANSWER)
    made = store.new("me").id
    old, stop = asked(chat, made), Event()
    for turn in chat.compare("me", made, old.id, ("concat", "post_fusion"), Choices(), stop):
        if turn.answer if written else turn.draft:
            stop.set()
    assert len(store.get("me", made).compared.get(old.id, ())) == left


@pytest.mark.parametrize(("pair", "told"), [(("concat", "nonsense"), "nonsense"), (("concat", "concat"), "different")])
def test_strategies_that_cant_be_compared_are_refused_at_once(start: Start, pair: tuple[str, str], told: str) -> None:
    chat, store = start(DRAFT, ANSWER)
    made = store.new("me").id
    old = asked(chat, made)
    with pytest.raises(SettingsError, match=told):
        next(chat.compare("me", made, old.id, pair, Choices(), Event()))
    with pytest.raises(SettingsError, match="nonsense"):
        next(chat.again("me", made, old.id, Choices("nonsense"), Event()))
    assert store.get("me", made).turns == (old,)


def test_the_second_of_two_that_are_compared_does_not_fail_with_the_first(start: Start) -> None:
    def broken(_messages: object) -> str:
        raise ModelError("The model is out.")

    chat, store = start(DRAFT, ANSWER, broken, DRAFT, *[ANSWER] * 4)
    made = store.new("me").id
    old = asked(chat, made)
    seen = list(chat.compare("me", made, old.id, ("concat", "post_fusion"), Choices(), Event()))
    one, two = store.get("me", made).compared[old.id]
    assert (one.status, one.error) == ("failed", "The model is out.")
    assert (two.status, two.error) == ("done", "")
    assert {turn.status for turn in seen if turn.id == two.id} == {"running", "done"}


def test_a_conversation_deleted_while_two_are_compared_ends_it(start: Start) -> None:
    chat, store = start(DRAFT, ANSWER, DRAFT, ANSWER)
    made = store.new("me").id
    old = asked(chat, made)
    stream = chat.compare("me", made, old.id, ("concat", "post_fusion"), Choices(), Event())
    next(stream)
    store.delete("me", made)
    with pytest.raises(StoreError, match="not found"):
        list(stream)
    with pytest.raises(SequiturError):
        next(chat.compare("me", store.new("me").id, old.id, ("concat", "post_fusion"), Choices(), Event()))


def test_a_comparison_that_a_killed_process_left_has_stopped(store: Conversations, engine: Engine) -> None:
    old, half = said("one", "1"), Turn("one", answer=Answer("half"))
    made = talk(store, old)
    store.save_turn("me", made, half, Version(old.id, 1))
    written_by_another(engine)
    assert store.get("me", made).compared == {old.id: (replace(half, status="stopped"),)}


# --- the votes, for people ---------------------------------------------------------------------------------------

POOL = (
    Candidate("Lyon.", "p1", 2, group=0),
    Candidate("Paris.", "p2", 1, group=1),
    Candidate("It is Lyon.", "p3", 2, group=0),
    Candidate("unknown", "p4", unknown=True),
)


def test_the_fallback_is_told_as_an_event() -> None:
    turn = Turn(
        "?",
        pool=POOL,
        answer=Answer("Lyon. [1]", origin="pool"),
        events=(TurnEvent("other", "Noted."), TurnEvent("fell_back")),
        status="done",
    )
    told = "2 of 4 say “Lyon”, 1 says something else, 1 gave no answer."
    assert events(turn) == ["Noted.", f"The passages together gave no answer, so each was asked alone: {told}"]
    assert events(replace(turn, events=())) == [f"Each passage was asked alone: {told}"]
    assert events(replace(turn, pool=())) == [
        "Noted.",
        "The passages together gave no answer, so each was asked alone.",
    ]
    later = replace(turn, events=(TurnEvent("fell_back"), TurnEvent("other", "Quoted.")))
    assert events(later)[1] == "Quoted."  # in the order in which it happened
    lost = replace(turn, events=(), answer=Answer("Not held.", unknown=True, origin="pool"))
    assert events(lost)[0].endswith("1 gave no answer; but no sentence of a passage backs that.")
    nothing = replace(turn, events=(), pool=POOL[3:] * 2)
    assert events(nothing) == ["Each passage was asked alone: none of them gave an answer."]


def test_each_answer_of_the_pool_has_the_passages_that_voted_for_it() -> None:
    turn = Turn("?", pool=POOL, answer=Answer("It is Lyon. [1]", origin="pool"))
    assert [(one.text, [voter.passage_id for voter in one.voters], one.won) for one in ballots(turn)] == [
        ("It is Lyon.", ["p1", "p3"], True),
        ("Paris.", ["p2"], False),
    ]
    overruled = replace(turn, answer=Answer("Paris.", origin="pool"))  # the winner had no support
    assert [one.text for one in ballots(overruled) if one.won] == ["Paris."]
    assert ballots(overruled)[0].text == "Paris."


def test_where_passages_are_weighed_their_shares_are_told_and_decide_the_order() -> None:
    pool = (replace(POOL[0], probability=0.3), replace(POOL[1], weight=0.6, probability=0.7), POOL[2], POOL[3])
    turn = Turn("?", pool=pool, answer=Answer("Paris.", origin="pool"), status="done")
    assert [(one.text, one.share) for one in ballots(replace(turn, answer=None))] == [("Paris.", 0.7), ("Lyon.", 0.3)]
    assert "1 of 4 says “Paris” (70% by relevance), 2 say something else" in events(turn)[0]


def test_pools_of_before_groups_were_kept_go_by_their_texts() -> None:
    old = tuple(replace(one, group=-1) for one in POOL)
    assert [len(one.voters) for one in ballots(Turn("?", pool=old))] == [1, 1, 1]
    assert len(ballots(Turn("?", pool=(old[0], old[0])))) == 1
