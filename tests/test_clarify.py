"""Which messages speak of a place that nothing names, and what counts as the answer."""

from __future__ import annotations

import pytest

from assistant.steps.clarify import WHICH, told, unclear
from assistant.types import Exchange, RankedFact, Turn

ASKED = Exchange("What is the capital of my country?", "What is the capital of my country?", WHICH)


@pytest.mark.parametrize(
    ("utterance", "asks"),
    [
        ("What is the capital of my country?", True),
        ("Which is larger, my country or Austria?", True),
        ("How many people live where I live?", True),
        ("which languages are spoken where i'm from", True),
        ("I live in Oslo, Norway. How big is my city?", False),
        ("I'm from Portugal. What is the capital of my country?", False),
        ("Which is larger, my country Portugal or Austria?", False),
        ("My home country is Portugal; what is its capital?", False),
        ("Who sings My Country, 'Tis of Thee?", False),
        ("How do I heat my country house?", False),
        ("In my village we drink tea with milk at every hour of the day, and I wonder whether that is healthy.", False),
        ("What is a good diet?", False),
    ],
)
def test_a_place_is_asked_for_only_where_nobody_named_one(utterance: str, asks: bool) -> None:
    assert unclear(Turn(utterance)) is asks


def test_what_was_said_before_and_facts_may_tell_the_place() -> None:
    hello, oslo = Exchange("Hello", "Hello", "Hello!"), Exchange("What is there to see in Oslo?", "", "The fjord.")
    question = "How many people live in my city?"
    assert unclear(Turn(question, (hello,)))
    assert not unclear(Turn(question, (hello, oslo)))
    lives = RankedFact("f", "i live in oslo", 0.5, used=True)
    assert not unclear(Turn(question, facts=(lives,)))


@pytest.mark.parametrize(
    ("utterance", "is_place"),
    [
        ("Norway", True),
        ("I'm from Kenya.", True),
        ("in Bergen, on the west coast", True),
        ("it's norway", True),
        ("I'm Norwegian", True),
        ("the Republic of the Congo", True),
        ("Sorry, I meant Peru", True),
        ("Never mind", False),
        ("Hello", False),
        ("ok", False),
        ("I'm vegetarian", False),
        ("Give me a recipe for pancakes", False),
        ("Can you search my documents", False),
        ("Explain photosynthesis", False),
        ("Thanks", False),
        ("How do I boil an egg?", False),
        ("Write a poem about cats", False),
        ("I was born in one and moved to another when I was ten years old", False),
    ],
)
def test_only_a_place_is_taken_for_one(utterance: str, is_place: bool) -> None:
    assert told(Turn(utterance, (ASKED,))) is is_place
    assert not told(Turn(utterance))
