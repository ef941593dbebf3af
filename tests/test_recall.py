"""Questions about what is known, answered from the store; corrections, groups, temporary chats and uses."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest

from assistant import turn as flow
from assistant.chat import Chat
from assistant.errors import StoreError
from assistant.llm.embedder import SentenceEmbedder
from assistant.protocols import Parts
from assistant.settings import TurnSettings
from assistant.steps import reasons, recall
from assistant.steps.intent import asks_of
from assistant.store.conversations import Conversations, MessageLink
from assistant.store.database import connect
from assistant.types import Answer, Asks, Choices, Exchange, Fact, OmittedText, RankedFact, Turn, now
from ptkb.extract import outdated_facts
from ptkb.fields import fields_of
from ptkb.store import Ptkb
from tests.sources import Given

DATA = Path(__file__).parent / "data"


def fact(text: str, days: int = 0, **more: object) -> Fact:
    moment = now() + timedelta(days=days)
    return Fact(text, text, moment, moment, **more)


def told(parts: Parts, asks: Asks, utterance: str = "?", known: tuple[Fact, ...] = (), **more: object) -> Turn:
    *_, turn = recall.run(Turn(utterance, asks=asks, known=known, **more), parts, Event())
    return turn


def test_what_is_known_is_told_in_groups_and_off_ones_are_said_to_be_so(parts: Parts) -> None:
    turn = told(parts, "recall", known=(fact("I run."), fact("I live in Oslo.", on=False)))
    assert turn.answer
    assert turn.answer.text.startswith("I know 2 things about you:\n\n**")
    assert "- I live in Oslo. (switched off)" in turn.answer.text
    assert recall.lead(turn) == "I know 2 things about you:"
    assert {one.text for one in turn.listed} == {"I run.", "I live in Oslo."}


def test_what_was_only_said_is_told_and_taken_back_at_once(parts: Parts) -> None:
    said = tuple(RankedFact(text, text, 0.5, used=True, stored=False) for text in ("I'm vegan.", "I run."))
    turn = told(parts, "recall", facts=said)
    assert turn.answer == Answer("In this conversation you told me: “I'm vegan.”, “I run.”", origin="conversation")
    turn = told(parts, "recall", known=(fact("I live in Oslo."),), facts=said)
    assert recall.lead(turn) == "In this conversation you told me: “I'm vegan.”, “I run.” I know 1 thing about you:"
    turn = told(parts, "forget", "Forget that I'm vegan", facts=said)
    assert turn.answer == Answer("This no longer counts in our conversation: “I'm vegan.”", origin="conversation")
    assert told(parts, "forget", "Forget my age", facts=said).answer == Answer(recall.NOTHING, origin="conversation")
    turn = told(parts, "forget", "Forget that I'm vegan", (fact("I live in Oslo."),), facts=said)
    assert recall.lead(turn).startswith("This no longer counts in our conversation: “I'm vegan.” Which of these")


def test_what_is_to_be_forgotten_is_looked_for_and_nothing_is_known_where_nothing_is(parts: Parts) -> None:
    known = tuple(map(fact, ("I live in Oslo.", "I have a dog.", "I run.", "I sing.")))
    turn = told(parts, "forget", "Forget that I have a dog", known)
    assert turn.listed[0].text == "I have a dog."
    assert len(turn.listed) == recall.NEAREST
    assert recall.lead(turn).endswith("Nothing goes before you say so.")
    assert told(parts, "forget").answer == Answer(recall.NOTHING, origin="conversation")
    assert told(parts, "recall", temporary=True).answer == Answer(recall.UNREAD, origin="conversation")


def test_why_tells_places_facts_or_that_there_is_nothing(parts: Parts) -> None:
    assert told(parts, "why").answer == Answer(recall.NO_REPLY, origin="conversation")
    last = Exchange("?", "?", "!", "t", "passages", ("I run.", "gone"), (("Oats", "Oats have\nfibre."),))
    turn = told(parts, "why", known=(fact("I run."),), history=(last,))
    assert turn.answer
    assert "- Oats: “Oats have fibre.”" in turn.answer.text
    assert (turn.about, [one.id for one in turn.listed]) == ("t", ["I run."])
    own = told(parts, "why", history=(Exchange("?", "?", "!", "t", "model"),))
    assert own.answer
    assert "the model's own knowledge" in own.answer.text


@pytest.mark.parametrize("text", ["x" * 500, "<b>I</b> **run**", "أنا أعيش في القاهرة", "- I\n- list"])
def test_any_fact_is_told_on_a_line_of_its_own(parts: Parts, text: str) -> None:
    turn = told(parts, "recall", known=(fact(text),))
    assert turn.answer
    assert turn.answer.text.splitlines()[-1] == f"- {' '.join(text.split())}"


def test_a_reply_depends_on_what_something_was_left_out_for(parts: Parts) -> None:
    facts = (RankedFact("a", "I run.", 0.5, used=True), RankedFact("b", "No nuts for me.", 0.1, used=False))
    turn = Turn("Tea?", facts=facts, answer=Answer("Green."), left_out=(OmittedText("nuts", "No nuts for me."),))
    *_, turn = reasons.run(turn, parts, Event())
    assert [(one.id, one.shows) for one in turn.facts] == [("a", False), ("b", True)]
    assert [one.id for one in turn.reasons] == ["b"]


def test_a_correction_outranks_what_it_corrects() -> None:
    old, new, other = fact("I live in Bergen.", -2), fact("I live in Oslo.", -1), fact("I run.")
    assert outdated_facts([new, old, other]) == {old.id: new}
    assert outdated_facts([replace(new, on=False), old, other]) == {}
    more = fact("I live in Bergen and I have a dog.", -3)
    assert outdated_facts([more, new]) == {}  # it says more, which would be lost
    assert len(outdated_facts([fact(f"I weigh {n} kg.", n) for n in range(200)])) == 199


def test_a_temporary_turn_knows_nothing_offers_nothing_and_is_not_kept(parts: Parts) -> None:
    engine = connect("sqlite://")
    conversations, ptkb = Conversations(engine), Ptkb(engine)
    ptkb.add("me", "I'm vegetarian.")
    chat = Chat(conversations, ptkb, Given(parts))
    made = conversations.new("me", temporary=True).id
    *_, turn = chat.ask("me", made, "I have a dog. I live in Oslo.", Choices(), Event())
    assert (turn.temporary, turn.known, turn.offers, turn.status) == (True, (), (), "done")
    assert conversations.list("me") == []
    assert [one.id for one in conversations.get("me", made).turns] == [turn.id]
    with pytest.raises(StoreError):
        conversations.get("you", made)
    with pytest.raises(StoreError):
        Conversations(engine).get("me", made)  # which is what another process has of it


def test_where_a_fact_came_from_and_was_used_last_is_known_until_the_message_goes() -> None:
    store = Conversations(connect("sqlite://"))
    made = store.new("me").id
    for name in ("one", "two"):
        shows = (RankedFact("f", "I run.", 0.5, used=True, shows=True),)
        store.save_turn("me", made, Turn(name, id=name, status="done", facts=shows))
    assert store.last_uses("me") == {"f": MessageLink(made, "two", "two")}
    assert store.message_links("me", ["one", "gone"]) == {"one": MessageLink(made, "one", "one")}
    assert store.last_uses("you") == store.message_links("you", ["one"]) == {}
    store.remove_turn("me", made, "two")
    assert store.last_uses("me") == {"f": MessageLink(made, "one", "one")}


def test_of_a_fact_that_was_only_said_no_use_is_kept() -> None:
    store = Conversations(connect("sqlite://"))
    made = store.new("me").id
    said = RankedFact("s", "I run.", 0.5, used=True, shows=True, stored=False)
    store.save_turn("me", made, Turn("one", id="one", status="done", facts=(said,)))
    assert store.last_uses("me") == {}
    assert store.get("me", made).turns[0].facts == (said,)


def test_the_group_of_a_fact_goes_when_its_words_change(tmp_path: Path) -> None:
    ptkb = Ptkb(connect(f"sqlite:///{tmp_path}/facts.sqlite3"))
    added = ptkb.add("me", "I run.")
    ptkb.set_fields("me", {added.id: "other", "gone": "food"})
    assert ptkb.facts("me")[0].field == "other"
    assert ptkb.edit("me", added.id, "I eat.").field == ""


def test_a_message_about_what_is_known_needs_no_model(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assistant.steps.intent.asks_of", lambda *_: "recall")
    *_, turn = flow.run(Turn("What do you know about me?", known=(fact("I run."),)), parts, Event())
    assert (turn.status, turn.intent, turn.asks) == ("done", "conversation", "recall")
    assert set(turn.timings) == {"english", "facts", "intent", "answer", "offers"}


@pytest.mark.model
def test_messages_about_what_is_known_are_told_from_others(embedder: SentenceEmbedder) -> None:
    rows = [json.loads(line) for line in (DATA / "memory_messages.jsonl").read_text("utf-8").splitlines()]
    rows = [row for row in rows if row["split"] == "test"]
    found = [asks_of(row["text"], embedder, TurnSettings()) for row in rows]
    right = sum(got == row["asks"] for got, row in zip(found, rows, strict=True))
    assert right / len(rows) >= 0.85
    assert sum(bool(got) and not row["asks"] for got, row in zip(found, rows, strict=True)) <= 2


@pytest.mark.model
def test_facts_are_grouped_by_what_they_are_about(embedder: SentenceEmbedder) -> None:
    texts = ["I don't eat shellfish.", "I have epilepsy.", "I live in Turin.", "My aunt is a pilot.", "I'm a plumber."]
    assert fields_of(texts, embedder) == ["food", "health", "places", "people", "work"]
    assert fields_of([], embedder) == []
