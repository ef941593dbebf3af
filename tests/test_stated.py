"""What is said in a conversation counts in it before it is stored: in facts, the store and later turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from threading import Event

import pytest

from assistant.chat import exchanges
from assistant.llm.embedder import SentenceEmbedder
from assistant.protocols import Parts
from assistant.retrieve.search import search_text
from assistant.steps import facts, recall, rewrite
from assistant.types import Answer, Exchange, Fact, RankedFact, Turn, now
from tests.scripted import ScriptedLLM

VEGAN, BERLIN, PARIS = "I'm vegan.", "I live in Berlin.", "I live in Paris."


def said(text: str, *stated: str, days: int = -1, **more: object) -> Exchange:
    """An exchange of a stored conversation."""
    return Exchange(text, text, "Noted.", "t", stated=stated, created=now() + timedelta(days=days), **more)  # type: ignore[arg-type]


def stored(text: str, days: int = -2, *, on: bool = True) -> Fact:
    moment = now() + timedelta(days=days)
    return Fact(text, text, moment, moment, on=on)


@pytest.fixture
def of(parts: Parts, embedder: SentenceEmbedder):
    def run(message: str, *history: Exchange, known: Sequence[Fact] = (), temporary: bool = False) -> Turn:
        turn = Turn(message, history, tuple(known), temporary=temporary)
        *_, turn = facts.run(turn, replace(parts, embedder=embedder), Event())
        return turn

    return run


def texts(turn: Turn, *, stored: bool = False) -> list[str]:
    return [fact.text for fact in turn.facts if fact.stored == stored]


def test_what_is_stated_in_another_form_is_a_fact_and_stays_in_the_question(of) -> None:
    turn = of("Pollen makes me sneeze. What could I do in the garden?")
    assert turn.stated == ("Pollen makes me sneeze.",)
    assert texts(turn) == ["Pollen makes me sneeze."]
    assert turn.request == turn.utterance


def test_what_the_message_states_is_a_fact_and_the_rest_is_asked(of) -> None:
    turn = of("Hello! I am vegan. What could I cook for dinner?")
    assert turn.stated == (VEGAN,)
    assert texts(turn) == [VEGAN]
    assert turn.told_facts == (VEGAN,)
    assert turn.request == "Hello! What could I cook for dinner?"


@pytest.mark.parametrize(
    "message",
    [
        "I'm vegan, what could I cook?",
        "I am vegan.",
        "What could I cook?",
        "I'm hungry. What could I cook?",
        "I want to know what vegans eat. Why?",
    ],
)
def test_a_sentence_that_also_asks_stays_whole(of, message: str) -> None:
    turn = of(message)
    assert turn.rest == ""
    assert turn.request == message


@pytest.mark.parametrize(
    ("known", "messages", "holds"),
    [
        ((), (BERLIN, PARIS, BERLIN), BERLIN),
        ((), (VEGAN, "I'm not vegan.", VEGAN), VEGAN),
        ((BERLIN,), (PARIS, BERLIN), BERLIN),
    ],
)
def test_what_is_said_again_after_something_else_holds_again(
    of, known: tuple[str, ...], messages: tuple[str, ...], holds: str
) -> None:
    history = [said(message, message, days=n - 9) for n, message in enumerate(messages)]
    known_facts = [stored(text, -20) for text in known]
    for turn in (of("What could I do?", *history, known=known_facts), of(holds, *history[:-1], known=known_facts)):
        assert [fact.text for fact in turn.facts] == [holds]


def test_what_an_earlier_message_states_is_ranked_like_a_fact(of) -> None:
    turn = of("What could I cook for a vegan dinner?", said("I am vegan. And lunch?", VEGAN), known=[stored(BERLIN)])
    assert texts(turn) == [VEGAN]
    assert texts(turn, stored=True) == [BERLIN]
    assert turn.used_facts == (VEGAN,)


def test_what_is_stated_again_is_one_fact(of) -> None:
    turn = of("I am vegan. Which dessert could I make?", said("I am vegan. And lunch?", VEGAN))
    assert texts(turn) == [VEGAN]
    assert turn.told_facts == (VEGAN,)


def test_what_passes_is_no_fact(of) -> None:
    assert not of("I'm hungry. What could I cook?").facts


def test_a_temporary_chat_heeds_what_is_said_in_it(of) -> None:
    assert texts(of("I am vegan. What could I cook?", temporary=True)) == [VEGAN]


def test_what_a_stored_fact_says_is_left_to_that_fact(of) -> None:
    before = said("I am vegan.", VEGAN)
    assert texts(of("And lunch?", before, known=[stored(VEGAN)])) == []
    assert of("And lunch?", before, known=[stored(VEGAN, on=False)]).facts == ()
    assert texts(of("I am vegan. And lunch?", known=[stored(VEGAN, on=False)])) == [VEGAN]


@pytest.mark.parametrize(("days", "kept"), [(-2, "I live in Oslo."), (0, BERLIN)])
def test_of_two_that_contradict_each_other_the_newer_one_counts(of, days: int, kept: str) -> None:
    turn = of("How far is the sea?", said("I live in Oslo.", "I live in Oslo."), known=[stored(BERLIN, days)])
    assert [fact.text for fact in turn.facts] == [kept]


def test_the_message_itself_is_newest(of) -> None:
    turn = of(
        "I moved to Rome. How far is the sea?", said("I live in Oslo.", "I live in Oslo."), known=[stored(BERLIN)]
    )
    assert [fact.text for fact in turn.facts] == ["I live in Rome."]


def test_what_is_to_be_forgotten_is_taken_back(of) -> None:
    before, forget = (
        said("I am vegan and I live in Berlin.", VEGAN, BERLIN),
        said("Forget that I'm vegan", asks="forget"),
    )
    assert texts(of("What could I cook?", before, forget)) == [BERLIN]
    assert set(texts(of("I see. What could I cook?", before, forget, said("I am vegan.", VEGAN)))) == {BERLIN, VEGAN}


def test_what_is_to_be_forgotten_in_another_language_is_taken_back(of, parts: Parts) -> None:
    nuts = "I'm allergic to nuts."
    before = said("Ich bin gegen Nüsse allergisch.", nuts)
    message = "Vergiss, dass ich gegen Nüsse allergisch bin."
    turn = replace(of(message, before), english="Forget that I'm allergic to nuts.", asks="forget")
    *_, turn = recall.run(turn, parts, Event())
    assert turn.answer == Answer(f"This no longer counts in our conversation: “{nuts}”", origin="conversation")
    assert texts(of("What could I cook?", before, *exchanges([turn]))) == []


def test_of_programs_that_keep_their_conversations_themselves_the_messages_are_read(of) -> None:
    assert texts(of("What could I cook?", Exchange("I am vegan.", "I am vegan.", "Noted."))) == [VEGAN]


def test_what_is_asked_may_point_at_what_is_stated_however_little_they_are_alike(parts: Parts) -> None:
    stamps = RankedFact("1", "I collect stamps.", 0.0, used=False, told=True, stored=False)
    turn = Turn("I collect stamps. Which is the oldest one?", facts=(stamps,), rest="Which is the oldest one?")
    [turn] = rewrite.run(turn, replace(parts, llm=ScriptedLLM(["Which is the oldest stamp?"])), Event())
    assert turn.question == "Which is the oldest stamp?"


def test_a_conversation_keeps_what_was_stated(of) -> None:
    turn = replace(of("I am vegan. What could I cook?"), answer=Answer("Beans."))
    [kept] = exchanges([Turn.from_json(turn.to_json())])
    assert (kept.stated, kept.created) == ((VEGAN,), turn.created)
    shown = replace(turn, facts=tuple(replace(fact, shows=True) for fact in turn.facts))
    assert exchanges([shown])[0].reasons == ()


def test_only_the_rest_is_searched_for(parts: Parts) -> None:
    turn = Turn("I am vegan. What could I cook?", stated=(VEGAN,), rest="What could I cook?")
    [turn] = rewrite.run(turn, parts, Event())
    assert (turn.question, turn.rewritten) == ("What could I cook?", True)
    assert search_text(turn) == "What could I cook?"
