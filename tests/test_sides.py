"""The sides of a comparison."""

from __future__ import annotations

from threading import Event

import pytest

from assistant.retrieve.sides import sides
from assistant.strategies import concat
from assistant.types import Parts, Turn
from tests.scripted import ScriptedLLM


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


def test_each_side_is_asked_for_without_the_others() -> None:
    one, other = sides("Does Norway have more people than Sweden?")
    assert (one.text, other.text) == ("Does Norway have more people than ?", "Does have more people than Sweden?")


@pytest.mark.parametrize(
    ("question", "hint"),
    [
        ("Which has more people, Norway or Sweden?", True),
        ("Which is larger, Kenya or Ghana?", True),
        ("Compare the capitals of Peru and Bolivia", False),
        ("Should I eat before or after a run?", False),
        ("What is a good diet?", False),
    ],
)
def test_only_where_figures_decide_they_are_asked_for(parts: Parts, question: str, hint: bool) -> None:
    llm = parts.llm
    assert isinstance(llm, ScriptedLLM)
    llm.replies.append("unknown")
    passages = tuple(parts.retriever.search("", 3))
    list(concat.run(Turn(question, question=question, passages=passages), parts, Event()))
    assert ("figures" in llm.prompts[-1][-1].content) is hint
