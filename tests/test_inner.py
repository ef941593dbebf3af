"""What a question describes instead of naming it is looked up first, and told with its source."""

from __future__ import annotations

from dataclasses import replace
from threading import Event

import pytest

from assistant import turn as flow
from assistant.retrieve.search import sought
from assistant.steps.inner import NOT_FOUND, described
from assistant.types import Choices, Parts, Passage, Turn
from tests.scripted import FixedRetriever, ScriptedLLM

RANKING = Passage(
    "r", "World - Countries by population", "The most populous country of all, with the most people, is India."
)
INDIA = Passage("i", "India - Capital", "The capital of India is New Delhi, in the north.")
QUESTION = "What is the capital of the country with the most people?"
INNER = "What is the country with the most people?"
DRAFT = "It is New Delhi."


def answered(
    parts: Parts, question: str, *replies: str, choices: list[dict[str, float]] | None = None
) -> tuple[Turn, list[str]]:
    """The turn over both passages, and what was searched for."""
    retriever = FixedRetriever([RANKING, INDIA])
    parts = replace(parts, llm=ScriptedLLM(list(replies), choices or []), retriever=retriever)
    *_, turn = flow.run(Turn(question, choices=Choices(k=2)), parts, Event())
    assert turn.status == "done"
    return turn, retriever.queries


@pytest.mark.parametrize(
    ("question", "description"),
    [
        (QUESTION, "the country with the most people"),
        ("What do people in the largest country in Africa eat?", "the largest country in Africa"),
        ("who rules the second largest country in the world", "the second largest country in the world"),
        ("Who leads the most populous country in South America?", "the most populous country in South America"),
        ("What is the population of the largest country by area?", "the largest country by area"),
        ("What is the capital of the largest state in the US?", "the largest state in the US"),
        ("How many people live in Europe’s smallest country?", "Europe’s smallest country"),
        ("How big is the country with the most people?", "the country with the most people"),
        ("In the country with the most people, what do they eat?", "the country with the most people"),
        (
            "What is the capital of the country that exports most oil and how big is it?",
            "the country that exports most oil",
        ),
        ("What is the largest country in the world?", ""),
        ("What's the country with the most people?", ""),
        ("Name the smallest country in Europe.", ""),
        ("Is Russia the largest country in the world?", ""),
        ("Does the country with the most people have a king?", ""),
        ("What is the largest city in the country where I live?", ""),
        ("What should I see in the best country for hiking?", ""),
        ("What are the benefits of the most common diet?", ""),
        ("What is the capital of Norway?", ""),
        ("", ""),
    ],
)
def test_what_is_described_rather_than_asked_for(question: str, description: str) -> None:
    assert described(question) == description


def test_a_long_message_is_looked_through_quickly() -> None:
    assert described("the most " * 5000 + "country with") == ""


def test_a_description_is_replaced_by_its_name_and_told_with_its_source(parts: Parts) -> None:
    turn, queries = answered(parts, QUESTION, "India.", DRAFT, "The capital of India is New Delhi.")
    assert queries[0] == INNER
    assert (turn.question, sought(turn), turn.rewritten) == ("What is the capital of India?",) * 2 + (True,)
    assert turn.answer
    assert turn.answer.text == "The capital of India is New Delhi. [1] The country with the most people is India. [2]"
    assert [(one.n, one.passage_id) for one in turn.citations] == [(1, "i"), (2, "r")]
    assert turn.sentences[-1].supported
    assert turn.events == ()
    assert Turn.from_json(turn.to_json()) == turn


def test_it_is_told_in_a_paragraph_of_its_own_behind_a_list(parts: Parts) -> None:
    turn, _ = answered(parts, QUESTION, "India", DRAFT, "In short:\n- The capital of India is New Delhi.")
    assert turn.answer
    assert turn.answer.text.splitlines()[1:] == [
        "- The capital of India is New Delhi. [1]", "", "The country with the most people is India. [2]"
    ]  # fmt: skip


def test_the_source_of_the_name_is_shown_where_the_answer_is_from_others(parts: Parts) -> None:
    retriever = FixedRetriever([])
    retriever.search = lambda query, k: [RANKING] if query == INNER else [INDIA]  # type: ignore[method-assign]
    llm = ScriptedLLM(["India", DRAFT, "The capital of India is New Delhi."])
    *_, turn = flow.run(Turn(QUESTION), replace(parts, llm=llm, retriever=retriever), Event())
    assert [passage.id for passage in turn.passages] == ["i", "r"]


@pytest.mark.parametrize(("name", "choices"), [("Norway", []), ("India", [{"yes": 0.1, "no": 0.9}] * 2)])
def test_a_name_that_no_passage_backs_is_not_put_in(parts: Parts, name: str, choices: list[dict[str, float]]) -> None:
    turn, _ = answered(parts, QUESTION, name, DRAFT, "The capital of India is New Delhi.", choices=choices)
    assert (turn.question, turn.inner) == (QUESTION, None)
    assert turn.events == (NOT_FOUND.format("the country with the most people"),)
    assert turn.answer
    assert turn.answer.text == "The capital of India is New Delhi. [1]"


@pytest.mark.parametrize("reply", ["unknown", "It is a country in the south of Asia with the most people of all."])
def test_what_is_no_name_is_not_put_in(parts: Parts, reply: str) -> None:
    turn, _ = answered(parts, QUESTION, reply, DRAFT, "The capital of India is New Delhi.")
    assert (turn.question, turn.inner) == (QUESTION, None)


def test_an_answer_that_is_not_known_tells_nothing_of_the_description(parts: Parts) -> None:
    turn, _ = answered(parts, QUESTION, "India", DRAFT, *["unknown"] * 3)
    assert turn.answer
    assert turn.answer.unknown
    assert turn.citations == ()


def test_stopped_while_it_is_looked_up_the_turn_says_nothing_of_it(parts: Parts) -> None:
    stop = Event()

    def stopping(_: object) -> str:
        stop.set()
        return "India"

    parts = replace(parts, llm=ScriptedLLM([stopping]), retriever=FixedRetriever([RANKING, INDIA]))
    *_, turn = flow.run(Turn(QUESTION), parts, stop)
    assert (turn.status, turn.inner, turn.events) == ("stopped", None, ())


def test_it_can_be_switched_off(parts: Parts) -> None:
    knobs = parts.settings.model_copy(update={"turn": parts.settings.turn.model_copy(update={"inner": False})})
    turn, queries = answered(replace(parts, settings=knobs), QUESTION, DRAFT, "The capital of India is New Delhi.")
    assert (turn.question, queries[0]) == (QUESTION, QUESTION)
