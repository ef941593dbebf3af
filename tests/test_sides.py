"""The sides of a comparison."""

from __future__ import annotations

from time import process_time

import pytest

from assistant.retrieve.sides import sides


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Which has more people, Norway or Sweden?", ["Norway", "Sweden"]),
        ("Does Norway have more people than Sweden?", ["Norway", "Sweden"]),
        ("Is the coast of Norway longer than that of Chile?", ["Norway", "Chile"]),
        ("Compare the population of Norway and Sweden", ["Norway", "Sweden"]),
        ("Norway, Sweden or Denmark: which is the largest?", ["Norway", "Sweden", "Denmark"]),
        ("Is the United States of America larger than Canada?", ["United States of America", "Canada"]),
        ("Norway vs. Sweden", ["Norway", "Sweden"]),
        ("Which is known for animation, Lev Yilmaz or Pamela B. Green?", ["Lev Yilmaz", "Pamela B. Green"]),
        ("Is tea or coffee better before bed?", ["tea", "coffee"]),
        ("What is the difference between a vegan and a vegetarian diet?", ["vegan", "vegetarian"]),
        ("How do the economies of Kenya and Ghana differ?", ["Kenya", "Ghana"]),
        ("What do Peru and Bolivia have in common?", ["Peru", "Bolivia"]),
        ("How does Norway compare to Sweden?", ["Norway", "Sweden"]),
        ("How does the climate of Peru differ from that of Chile?", ["Peru", "Chile"]),
        ("How much is the population of Norway compared to Sweden?", ["Norway", "Sweden"]),
        ("How high are prices in Peru compared with those in Chile?", ["Peru", "Chile"]),
        ("Give me two or three tips for better sleep.", []),
        ("Is it OK to nap for an hour or so in the afternoon?", []),
        ("Should I nap in the afternoon or not?", []),
        ("Is coffee with or without milk better?", []),
        ("Should I nap 20 or 30 minutes?", []),
        ("How can both my son and I sleep longer?", []),
        ("Which team won the most titles between 2000 and 2010?", []),
        ("I weigh between 70 and 80 kg, how much protein do I need at least?", []),
        ("How does it compare to Sweden?", []),
        ("How much is that compared to Sweden?", []),
        ("What is a good diet?", []),
        ("What is the capital of Norway?", []),
        ("Who wrote Romeo and Juliet?", []),
        ("Norway or Norway?", []),
        ("Who? Or what?", []),
        ("or", []),
        ("", []),
    ],
)
def test_the_sides_of_a_comparison(question: str, names: list[str]) -> None:
    assert [side.name for side in sides(question)] == names


@pytest.mark.parametrize(
    "message",
    [
        "DEAR SIR I WRITE TO YOU " * 200,
        "both " * 26 + "A " * 135,
        "A" * 80 + " and " + "A'" * 155,
        "A" * 80 + " and " + "A'A " * 78,
        "A'" * 100 + "A " * 100,
    ],
    ids=lambda message: f"{len(message)} {message[:8]}",
)
def test_no_message_takes_long(message: str) -> None:
    """Another thread can't run meanwhile, so that a page would stand still."""

    def seconds() -> float:
        since = process_time()
        sides(message)
        return process_time() - since

    assert min(seconds() for _ in range(3)) < 0.25


def test_a_long_message_is_no_comparison() -> None:
    question = "Does Norway have more people than Sweden?"
    assert sides(question + " " * (400 - len(question)))
    assert sides(question + " " * (401 - len(question))) == ()


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        (
            "Is the coast of Norway longer than that of Chile?",
            ["Is the coast of Norway longer?", "Is the coast of Chile longer?"],
        ),
        ("Which has more, the UK or the USA?", ["Which has more, the UK?", "Which has more, the USA?"]),
        (
            "Norway, Sweden or Peru: which is old?",
            ["Norway: which is old?", "Sweden: which is old?", "Peru: which is old?"],
        ),
        ("Compare the size of Peru and that of Chile.", ["Compare the size of Peru.", "Compare the size of Chile."]),
        ("How do Peru and Chile differ?", ["How do Peru differ?", "How do Chile differ?"]),
    ],
)
def test_each_side_is_asked_for_without_the_others(question: str, asked: list[str]) -> None:
    assert [side.text for side in sides(question)] == asked


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Which has more people, the UK or the USA?", "How many people does the UK have?"),
        ("Norway, Sweden or Peru: which country has the most people?", "How many people does Norway have?"),
        ("Which of them have less protein, lentils or beans?", "How much protein do lentils have?"),
        ("Does Norway have more people than Sweden?", "How many people does Norway have?"),
        ("Does Finland have fewer lakes per person than Sweden?", "How many lakes per person does Finland have?"),
        ("Are there more doctors in Cuba than in Italy?", "How many doctors are there in Cuba?"),
        ("Is there more caffeine in tea or in coffee?", "How much caffeine is there in tea?"),
        ("Where are there more doctors, in Cuba or in Italy?", "How many doctors are there in Cuba?"),
        ("Does Norway have more than 5 lakes, or Peru?", "Does Norway have more than 5 lakes?"),
    ],
)
def test_for_more_of_something_it_is_asked_how_much_there_is(question: str, asked: str) -> None:
    assert sides(question)[0].text == asked
