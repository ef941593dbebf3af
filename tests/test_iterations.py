"""The ITRG loops, driven through several rounds with a scripted model and a retriever that depends on the query."""

from __future__ import annotations

from dataclasses import replace
from threading import Event

import pytest

from assistant import loops
from assistant import turn as flow
from assistant.protocols import Parts
from assistant.types import Choices, Iteration, Passage, RankedFact, Turn
from tests.scripted import ScriptedLLM, answering

QUESTION = "where was the mother of Ada born"


class Library:
    """Finds passages whose title is a word of the query."""

    def __init__(self, *titles: str) -> None:
        self.passages = [Passage(title.lower(), title, f"{title} is known.") for title in titles]
        self.queries: list[str] = []

    def search(self, query: str, k: int) -> list[Passage]:
        self.queries.append(query)
        return [passage for passage in self.passages if passage.title in query][:k]


LIBRARY = ("Ada", "Anne", "Kirkby")


def with_knobs(parts: Parts, **knobs: object) -> Parts:
    turn = parts.settings.turn.model_copy(update=knobs)
    return replace(parts, settings=parts.settings.model_copy(update={"turn": turn}))


def ran(loop: str, parts: Parts, *replies: str, k: int = 4, **knobs: object) -> tuple[Turn, ScriptedLLM]:
    llm = ScriptedLLM(list(replies))
    parts = with_knobs(replace(parts, llm=llm, retriever=Library(*LIBRARY)), **knobs)
    turn = Turn(QUESTION, question=QUESTION, choices=Choices(loop=loop, k=k))
    *_, turn = loops.named(loop)(turn, parts, Event())
    assert llm.replies == []
    return turn, llm


def found(turn: Turn) -> list[tuple[str, ...]]:
    return [tuple(passage.id for passage in one.passages) for one in turn.iterations]


@pytest.mark.parametrize("loop", ["itrg_refine", "itrg_refresh"])
def test_each_round_searches_for_the_question_and_the_last_document(parts: Parts, loop: str) -> None:
    turn, llm = ran(loop, parts, "The mother was Anne.", "Anne was of Kirkby.", "Anne, Kirkby.")
    assert [one.query for one in turn.iterations] == [
        QUESTION,
        f"{QUESTION} The mother was Anne.",
        f"{QUESTION} Anne was of Kirkby.",
    ]
    assert found(turn) == [("ada",), ("ada", "anne"), ("ada", "anne", "kirkby")]
    assert turn.document == "Anne, Kirkby."
    assert [passage.id for passage in turn.passages] == ["ada", "anne", "kirkby"]
    assert [passage.found_by for passage in turn.passages] == [
        ("question", "document"),
        ("document",),
        ("document",),
    ]
    assert [query.name for query in turn.queries] == ["document"]
    assert len(llm.prompts) == 3


def test_refresh_forgets_the_document_and_reads_all_passages(parts: Parts) -> None:
    _, llm = ran("itrg_refresh", parts, "The mother was Anne.", "Anne was of Kirkby.", itrg_rounds=2)
    second = llm.prompts[1][-1].content
    assert "- Ada: " in second
    assert "- Anne: " in second
    assert "The mother was Anne." not in second


def test_refine_is_given_the_document_and_only_what_is_new(parts: Parts) -> None:
    _, llm = ran("itrg_refine", parts, "The mother was Anne.", "Anne was of Kirkby.", itrg_rounds=2)
    first, second = (prompt[-1].content for prompt in llm.prompts)
    assert "Earlier paragraph" not in first
    assert "Earlier paragraph: The mother was Anne." in second
    assert "- Anne: " in second
    assert "- Ada: " not in second


def test_refine_keeps_the_document_where_nothing_is_new(parts: Parts) -> None:
    turn, llm = ran("itrg_refine", parts, "Nobody knows.", early_stop=False)
    assert [one.document for one in turn.iterations] == ["Nobody knows."] * 3
    assert len(llm.prompts) == 1


def test_refresh_goes_on_where_nothing_is_new_unless_it_may_stop(parts: Parts) -> None:
    turn, llm = ran("itrg_refresh", parts, "One.", "Two.", "Three.", early_stop=False)
    assert [one.document for one in turn.iterations] == ["One.", "Two.", "Three."]
    turn, llm = ran("itrg_refresh", parts, "One.")
    assert [one.document for one in turn.iterations] == ["One.", "One."]
    assert len(llm.prompts) == 1


def test_where_passages_went_refine_keeps_its_document_and_refresh_writes_anew(parts: Parts) -> None:
    turn, _ = ran("itrg_refine", parts, "The mother was Anne.", "Unclear.")
    assert found(turn) == [("ada",), ("ada", "anne"), ("ada",)]
    assert turn.document == "Unclear."
    turn, _ = ran("itrg_refresh", parts, "The mother was Anne.", "Unclear.", "Still unclear.")
    assert found(turn) == [("ada",), ("ada", "anne"), ("ada",)]
    assert turn.document == "Still unclear."


def test_one_iteration_is_one_search_and_one_document(parts: Parts) -> None:
    turn, _ = ran("itrg_refine", parts, "The mother was Anne.", itrg_rounds=1)
    assert found(turn) == [("ada",)]
    assert [query.name for query in turn.queries] == ["question"]


def test_a_library_that_holds_nothing_ends_early(parts: Parts) -> None:
    llm = ScriptedLLM(["Perhaps."])
    turn = Turn(QUESTION, question=QUESTION)
    *_, turn = loops.named("itrg_refresh")(turn, replace(parts, llm=llm, retriever=Library()), Event())
    assert found(turn) == [(), ()]
    assert turn.passages == ()
    assert turn.document == "Perhaps."


@pytest.mark.parametrize("loop", ["itrg_refine", "itrg_refresh"])
def test_stopped_in_the_middle_what_was_written_is_kept(parts: Parts, loop: str) -> None:
    stop = Event()
    llm = ScriptedLLM(["The mother was Anne."])
    turns = loops.named(loop)(
        Turn(QUESTION, question=QUESTION), replace(parts, llm=llm, retriever=Library(*LIBRARY)), stop
    )
    for turn in turns:
        if turn.document == "The mother":
            stop.set()
    assert turn.document == "The mother"
    assert len(turn.iterations) == 1


def test_facts_about_the_person_are_in_the_prompt_not_in_the_query(parts: Parts) -> None:
    llm = ScriptedLLM(["Anne."])
    turn = Turn(QUESTION, question=QUESTION, facts=(RankedFact("f", "I like Ada.", 0.9, used=True),))
    parts = with_knobs(replace(parts, llm=llm, retriever=Library(*LIBRARY)), itrg_rounds=1)
    *_, turn = loops.named("itrg_refresh")(turn, parts, Event())
    assert f"I like Ada. {QUESTION}" in llm.prompts[0][-1].content
    assert turn.iterations[0].query == QUESTION


def whole(parts: Parts, *replies: str, question: str = "Which drink holds no lactose?") -> Turn:
    choices = Choices(loop="itrg_refresh", strategy="document", k=2)
    *_, turn = flow.run(Turn(question, choices=choices), replace(parts, llm=ScriptedLLM(list(replies))), Event())
    return turn


def test_a_whole_turn_answers_from_the_document_and_cites_passages(parts: Parts) -> None:
    turn = whole(parts, "Oat drink holds no lactose.", "Oat drink holds no lactose.")
    assert turn.status == "done"
    assert turn.answer
    assert turn.answer.text == "Oat drink holds no lactose. [1]"
    assert turn.citations[0].passage_id == "p2"
    assert turn.spent["document"].completion == 5
    assert turn.timings["document"] > 0
    assert Turn.from_json(turn.to_json()) == turn


def test_what_an_earlier_round_found_is_cited_where_the_document_still_says_it(parts: Parts) -> None:
    rounds = {"Ada": [Passage("ada", "Ada", "Ada was the daughter of Anne."), Passage("eve", "Eve", "Eve was tall.")]}
    rounds["Anne"] = [Passage("anne", "Anne", "Anne was born in Kirkby.")]

    class Rounds:
        def search(self, query: str, k: int) -> list[Passage]:
            return rounds["Anne" if "daughter of Anne" in query else "Ada"]

    said = "Ada was the daughter of Anne."
    llm = ScriptedLLM([said, said, said])
    parts = with_knobs(replace(parts, llm=llm, retriever=Rounds(), estimator=None), itrg_rounds=2)
    choices = Choices(loop="itrg_refine", strategy="document", k=2)
    *_, turn = flow.run(Turn("What was the name of the mother of Ada?", choices=choices), parts, Event())
    assert found(turn) == [("ada", "eve"), ("anne",)]
    assert turn.answer
    assert turn.answer.text == "Ada was the daughter of Anne. [1]"
    assert [citation.passage_id for citation in turn.citations] == ["ada"]
    assert {passage.id for passage in turn.passages} == {"anne", "ada"}


def test_a_document_that_does_not_answer_is_admitted(parts: Parts) -> None:
    turn = whole(parts, "Lentils are rich.", "unknown", "unknown")
    assert turn.answer
    assert turn.answer.unknown


def test_without_a_document_the_strategy_reads_the_passages(parts: Parts) -> None:
    llm = ScriptedLLM(["18 grams"])
    turn = Turn("how much", question="how much", passages=(Passage("p", "Lentils", "18 grams."),))
    turn = replace(turn, choices=Choices(form="factoid"))
    *_, turn = answering("document")(turn, replace(parts, llm=llm), Event())
    assert turn.answer
    assert turn.answer.text == "18 grams"
    assert "[1] Lentils: 18 grams." in llm.prompts[0][-1].content


def test_a_turn_stored_before_there_were_iterations_can_be_read() -> None:
    text = Turn("hello").to_json().replace('"iterations":[],', "")
    assert "iterations" not in text
    assert Turn.from_json(text).iterations == ()
    assert Iteration("q", ()).document == ""
