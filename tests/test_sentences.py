"""Which sentences of passages the model is shown: those that the estimator of relevance finds likeliest to answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import Event

import pytest

from assistant.errors import ModelError
from assistant.prompting.sentence_selection import best_sentences, likeliest_sentences
from assistant.protocols import Parts
from assistant.steps import digest
from assistant.types import Passage, RankedFact, Relevance, Turn

RULES = (
    "Pets are a matter of consent. Cats are allowed. Dogs need written consent. Smoking is not allowed on the stairs."
)
HOURS = "Quiet hours begin at ten. Cats hunt at night."
LEASE, HOUSE = Passage("p1", "Lease", RULES), Passage("p2", "House", HOURS)
SURE = {"Cats are allowed.": 0.9, "Dogs need": 0.6, "Cats hunt": 0.5, "Quiet": 0.3}


class Judge:
    """Is as sure of a sentence as its first words are; keeps what it was asked."""

    name, calibration = "judge", ""

    def __init__(self, sure: dict[str, float] | None = None) -> None:
        self.sure = SURE if sure is None else sure
        self.questions: list[str] = []

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
        self.questions.append(question)
        return [Relevance.of_confidence(self._of(passage)) for passage in passages]

    def _of(self, passage: Passage) -> float:
        return next((sure for words, sure in self.sure.items() if passage.text.startswith(words)), 0.1)


def shown(chars: int, *passages: Passage) -> list[str]:
    found = likeliest_sentences(passages, ["Are cats allowed?"], Judge(), chars, Event())
    assert [one.passage_id for one in found] == [passage.id for passage in passages]
    return [one.text for one in found]


def test_each_passage_keeps_its_best_and_the_likeliest_of_all_others_fill_the_room() -> None:
    assert shown(10, LEASE, HOUSE) == ["Cats are allowed.", "Cats hunt at night."]
    assert shown(70, LEASE, HOUSE) == ["Cats are allowed. Dogs need written consent.", "Cats hunt at night."]
    assert shown(95, LEASE, HOUSE)[1] == HOURS
    assert shown(900, LEASE, HOUSE) == [RULES, HOURS]


def test_sentences_stand_in_the_passages_own_order_and_say_where() -> None:
    [found] = likeliest_sentences([LEASE], ["?"], Judge({"Smoking": 0.9, "Cats": 0.8}), 70, Event())
    assert found.text == "Cats are allowed. Smoking is not allowed on the stairs."
    assert [RULES[span.start : span.end] for span in found.spans] == [
        "Cats are allowed.",
        "Smoking is not allowed on the stairs.",
    ]


def test_the_best_sentence_comes_first_where_that_order_is_asked_for(parts: Parts) -> None:
    judge = Judge({"Smoking": 0.9, "Cats": 0.8})
    [found] = likeliest_sentences([LEASE], ["?"], judge, 70, Event(), "score")
    assert found.text == "Smoking is not allowed on the stairs. Cats are allowed."
    assert [RULES[span.start : span.end] for span in found.spans] == [
        "Smoking is not allowed on the stairs.",
        "Cats are allowed.",
    ]
    [as_it_stands] = best_sentences([LEASE], "consent for dogs", parts.embedder, 70)
    [best_first] = best_sentences([LEASE], "consent for dogs", parts.embedder, 70, "score")
    assert best_first.text.startswith("Dogs need written consent.")
    assert as_it_stands.text != best_first.text
    assert sorted(as_it_stands.spans, key=lambda one: one.start) == sorted(best_first.spans, key=lambda one: one.start)


def test_the_lines_of_a_list_stay_apart() -> None:
    notes = Passage("p3", "Packing", "Kids\nrain trousers, size 116\nswim vests of Annika. Borrow them.\nsun cream")
    assert shown(900, notes) == [notes.text]
    judge = Judge({"rain": 0.9, "Borrow": 0.8})
    [few] = likeliest_sentences([notes], ["What size?"], judge, 40, Event())
    assert few.text == "rain trousers, size 116\nBorrow them."


def test_nothing_and_empty_passages_are_no_trouble() -> None:
    assert likeliest_sentences([], ["?"], Judge(), 900, Event()) == ()
    assert shown(900, Passage("p0", "Empty", ""), HOUSE) == ["", HOURS]


def digested(parts: Parts, judge: Judge, *facts: str) -> list[str]:
    turn = Turn(
        "?", facts=tuple(RankedFact(text, text, 0.5, used=True) for text in facts),
        question="Are cats allowed?", passages=(LEASE, HOUSE),
    )  # fmt: skip
    [turn] = digest.run(turn, replace(room_for(parts, 70), estimator=lambda _: judge), Event())
    return [one.text for one in turn.digests]


def room_for(parts: Parts, chars: int) -> Parts:
    turn = parts.settings.turn.model_copy(update={"max_context_chars": chars})
    return replace(parts, settings=parts.settings.model_copy(update={"turn": turn}))


def test_a_turn_asks_of_the_question_alone_and_with_the_facts_that_are_used(parts: Parts) -> None:
    judge = Judge()
    assert digested(parts, judge)[0] == "Cats are allowed. Dogs need written consent."
    assert judge.questions == ["Are cats allowed?"]
    digested(parts, judge, "I have a cat.")
    assert judge.questions[1:] == ["Are cats allowed?", "I have a cat. Are cats allowed?"]


@pytest.mark.parametrize("error", [ModelError("It is gone."), RuntimeError("a bug")])
def test_where_the_estimator_fails_sentence_bert_ranks_the_sentences(parts: Parts, error: Exception) -> None:
    class Broken(Judge):
        def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
            raise error

    assert digested(parts, Broken()) == [RULES, HOURS]
