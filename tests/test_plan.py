"""Look-ups of parts of a question: what is a plan, what is searched for, and what a plan that fails leaves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Event

import pytest

from assistant import turn as flow
from assistant.errors import ModelError
from assistant.prompt import render
from assistant.settings import RelevanceSettings
from assistant.steps import plan
from assistant.steps.plan import WHOLE, planned
from assistant.types import Choices, Confidence, Parts, Passage, Query, Relevance, Turn
from tests.scripted import ScriptedLLM

QUESTION = "Where was the painter of The Red Boat born?"
PLAN = '{"1": "Who painted The Red Boat?", "2": "Where was #1 born?"}'
BOAT = Passage("boat", "The Red Boat", "The Red Boat was painted by Ina Holm.")
HOLM = Passage("holm", "Ina Holm", "Ina Holm was born in Larvik.")
OTHERS = [Passage(f"other {n}", "", f"Painters were born somewhere {n}.") for n in range(4)]


@dataclass
class Named:
    """Finds the passages whose title the query names, and then others; remembers what was asked."""

    queries: list[str] = field(default_factory=list)

    def search(self, query: str, k: int) -> list[Passage]:
        self.queries.append(query)
        return [*(one for one in (BOAT, HOLM) if one.title in query), *OTHERS][:k]


@dataclass
class Always:
    """Says the same of each question."""

    several: bool = True

    def needs_several(self, question: str) -> bool:
        return self.several


class Broken:
    def needs_several(self, question: str) -> bool:
        raise ModelError("The file is of version 2.")


class Titles:
    """Is sure of a passage whose title the question names."""

    name, calibration = "titles", ""

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
        return [Relevance.of_confidence(0.9 if p.title and p.title in question else 0.1) for p in passages]


def planning(parts: Parts, *replies: object, **changes: object) -> Parts:
    given = {"llm": ScriptedLLM(list(replies)), "retriever": Named(), "multi_hop": Always(), **changes}
    return replace(choosing(parts, "auto"), **given)


def choosing(parts: Parts, setting: str) -> Parts:
    turn = parts.settings.turn.model_copy(update={"plan": setting})
    return replace(parts, settings=parts.settings.model_copy(update={"turn": turn}))


def found(*passages: Passage, **changes: object) -> Turn:
    turn = Turn(QUESTION, question=QUESTION, queries=(Query("question", QUESTION),), choices=Choices(k=3))
    return turn.grow(passages=passages or tuple(OTHERS[:3]), **changes)


def last(turn: Turn, parts: Parts, stop: Event | None = None) -> Turn:
    *_, turn = plan.run(turn, parts, stop or Event())
    return turn


# --- what is a plan ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "lookups"),
    [
        (PLAN, {1: "Who painted The Red Boat?", 2: "Where was #1 born?"}),
        ('{"1": " How high\\n is A? ", "2": "How high is B?"}', {1: "How high is A?", 2: "How high is B?"}),
        ('{"1": "P?", "2": "Q?", "3": "R of #2?", "4": "S?"}', {1: "P?", 2: "Q?", 3: "R of #2?"}),
        # one that waits for itself, for a later one, or for one that can't be made
        ('{"1": "Who painted #2?", "2": "Q?", "3": "R?"}', {2: "Q?", 3: "R?"}),
        ('{"1": "P of #1?", "2": "Q of #1?", "3": "R?"}', {}),
        ('{"1": "P?", "2": "p"}', {}),
        ('{"1": "P?", "2": ""}', {}),
        ('{"1": "P?", "2": "?!"}', {}),
        ('{"1": "P?", "2": 7}', {}),
        (json.dumps({"1": QUESTION.lower(), "2": "P?"}), {}),
        (json.dumps({"1": QUESTION, "2": "P?", "3": "Q?"}), {2: "P?", 3: "Q?"}),
        ('["P?", "Q?"]', {}),
        ('{"1": "P?", "2": "Q', {}),
        ("Who painted it?", {}),
        ("", {}),
    ],
)
def test_what_is_a_plan(written: str, lookups: dict[int, str]) -> None:
    assert planned(written, QUESTION) == lookups


def test_the_examples_of_the_prompt_are_plans() -> None:
    for maybe_one in (True, False):
        _, *examples, asked = render("plan", question="Is it?", maybe_one=maybe_one)
        assert asked.content == "Is it?"
        pairs = list(zip(examples[::2], examples[1::2], strict=True))
        plans = [planned(reply.content, question.content) for question, reply in pairs]
        assert [bool(one) for one in plans] == [n > 0 or not maybe_one for n in range(len(plans))]
        # each can be made in two rounds
        for one in plans:
            first = {n for n, text in one.items() if "#" not in text}
            assert all(f"#{n}" not in text for text in one.values() for n in {1, 2, 3} - first)


# --- what is looked up -------------------------------------------------------------------------------------------


def test_an_answer_takes_its_place_in_the_next_look_up(parts: Parts) -> None:
    parts = planning(parts, PLAN, "Ina Holm.")
    *_, first, turn = plan.run(found(), parts, Event())
    assert [query.text for query in first.queries] == [QUESTION, "Who painted The Red Boat?"]
    assert turn.queries == (
        Query("question", QUESTION),
        Query("look-up 1", "Who painted The Red Boat?"),
        Query("look-up 2", "Where was Ina Holm born?"),
    )
    # one of each look-up, one of the question
    assert [one.id for one in turn.passages] == ["boat", "holm", "other 0"]
    assert turn.passages[1].found_by == ("look-up 2",)
    # it was answered from what it found
    assert "painted by Ina Holm" in parts.llm.prompts[1][-1].content


def test_what_stands_alone_is_searched_for_without_an_answer(parts: Parts) -> None:
    parts = planning(parts, '{"1": "How old is The Red Boat?", "2": "How old is Ina Holm?"}')
    turn = last(found(), parts)
    assert parts.retriever.queries == ["How old is The Red Boat?", "How old is Ina Holm?"]
    assert [one.id for one in turn.passages] == ["boat", "holm", "other 0"]
    assert len(parts.llm.prompts) == 1


@pytest.mark.parametrize("answer", ["unknown", "", "Unknown."])
def test_a_look_up_whose_answer_is_not_found_is_not_made(parts: Parts, answer: str) -> None:
    parts = planning(parts, PLAN, answer)
    turn = last(found(), parts)
    assert parts.retriever.queries == ["Who painted The Red Boat?"]
    assert turn.passages[0].id == "boat"


def test_there_are_two_rounds_at_most(parts: Parts) -> None:
    parts = planning(parts, '{"1": "Who painted The Red Boat?", "2": "Where was #1 born?", "3": "Where is #2?"}', "Ina")
    assert [query.text for query in last(found(), parts).queries[1:]] == [
        "Who painted The Red Boat?",
        "Where was Ina born?",
    ]


def test_the_set_is_as_sure_as_its_weakest_look_up_but_never_less_than_before(parts: Parts) -> None:
    knobs = RelevanceSettings(threshold=0.5)
    settings = choosing(parts, "auto").settings.model_copy(update={"relevance": knobs})
    sure = planning(parts, PLAN, "Ina Holm", settings=settings, estimator=lambda _: Titles())
    turn = last(found(confidence=Confidence(0.2, 0.5, "titles")), sure)
    assert turn.confidence == Confidence(pytest.approx(0.9), 0.5, "titles")
    assert [one.confidence for one in turn.passages[:2]] == pytest.approx([0.9, 0.9])
    lost = planning(parts, PLAN, "Nobody", settings=settings, estimator=lambda _: Titles())
    turn = last(found(confidence=Confidence(0.2, 0.5, "titles")), lost)
    assert turn.confidence == Confidence(0.2, 0.5, "titles")


# --- when, and what a plan that fails leaves ---------------------------------------------------------------------


def test_it_is_asked_for_where_the_judge_sees_such_a_question_or_always(parts: Parts) -> None:
    other = planning(parts, PLAN, "Ina Holm", multi_hop=Always(several=False))
    before = found()
    assert last(before, other) == last(before, replace(other, multi_hop=None)) == before
    assert other.llm.prompts == []
    assert len(last(before, choosing(other, "always")).queries) == 3


def test_never_is_no_step_of_the_turn(parts: Parts) -> None:
    chosen = Choices(strategy="concat", loop="retrieve_then_generate", k=2)
    never = choosing(planning(parts, "Larvik."), "never")
    *_, turn = flow.run(Turn(QUESTION, choices=chosen), never, Event())
    assert "plan" not in turn.timings
    *_, turn = flow.run(Turn(QUESTION, choices=chosen), planning(parts, PLAN, "Ina Holm", "Larvik."), Event())
    assert turn.status == "done"
    assert [one.id for one in turn.passages] == ["boat", "holm"]
    assert turn.spent["plan"].completion > 0
    assert Turn.from_json(turn.to_json()) == turn


@pytest.mark.parametrize("written", ["I would look it up.", "", "{}", json.dumps({"1": QUESTION, "2": QUESTION})])
def test_what_is_no_plan_leaves_the_turn_as_it_was(parts: Parts, written: str) -> None:
    before = found()
    assert last(before, planning(parts, written)) == before


def test_an_error_leaves_the_turn_as_it_was_and_says_why(parts: Parts) -> None:
    before = found()
    assert last(before, planning(parts, multi_hop=Broken())) == before.told(f"{WHOLE}The file is of version 2.")

    def fail(_: object) -> str:
        raise ModelError("It was unloaded.")

    assert last(before, planning(parts, fail)) == before.told(f"{WHOLE}It was unloaded.")
    after = last(before, planning(parts, PLAN, fail))
    assert after.events == (f"{WHOLE}It was unloaded.",)


def test_a_stop_leaves_what_was_found(parts: Parts) -> None:
    stop = Event()
    stop.set()
    before = found()
    assert last(before, planning(parts, PLAN), stop) == before

    def stopping(_: object) -> str:
        stop.set()
        return "Ina Holm"

    stop.clear()
    turn = last(before, planning(parts, PLAN, stopping), stop)
    assert [query.name for query in turn.queries] == ["question", "look-up 1"]
