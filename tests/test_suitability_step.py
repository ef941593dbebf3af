"""What clashes with what a person said of themselves is left out of what the model reads, and of what it wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from threading import Event

import pytest

from assistant import turn as flow
from assistant.errors import ModelError
from assistant.judges.load import UnusableJudge
from assistant.protocols import Parts
from assistant.steps import suitability
from assistant.steps.closed_book import unbacked
from assistant.store.conversations import Conversation
from assistant.types import (
    Answer,
    Choices,
    Digest,
    Fact,
    OmittedText,
    Passage,
    RankedFact,
    Relevance,
    Turn,
    TurnEvent,
    now,
)
from assistant.web import render
from assistant.wording.replies import FIXED, fixed
from assistant.wording.views import as_json
from tests.scripted import FixedRetriever, ScriptedLLM

ALLERGY = "I have a peanut allergy."
LIST = "Good ideas are oats with berries, toast with peanut butter, or yoghurt."


@dataclass
class Named:
    """Finds that a text clashes with the fact on peanuts if it names them, and with no other fact."""

    threshold: float = 0.5
    texts: list[str] = field(default_factory=list)

    def clashes(self, facts: Sequence[str], texts: Sequence[str], stop: Event, question: str = "") -> list[list[float]]:
        self.texts += texts
        return [[0.9 * ("peanut" in fact and "peanut" in text.lower()) for text in texts] for fact in facts]


def told(*facts: str) -> tuple[RankedFact, ...]:
    return tuple(RankedFact(fact, fact, 0.1, used=False) for fact in facts)


def read(parts: Parts, *texts: str, facts: Sequence[str] = ("I play chess.", ALLERGY)) -> Turn:
    passages = tuple(Passage(f"p{n}", "Breakfast", text) for n, text in enumerate(texts))
    digests = tuple(Digest(passage.id, passage.text) for passage in passages)
    [turn] = suitability.passages(
        Turn("What?", facts=told(*facts), passages=passages, digests=digests),
        replace(parts, suitability=Named()),
        Event(),
    )
    return turn


def test_of_a_list_only_what_clashes_goes(parts: Parts) -> None:
    turn = read(parts, LIST, "Eat slowly.")
    assert [one.text for one in turn.shown] == ["Good ideas are oats with berries, or yoghurt.", "Eat slowly."]
    assert turn.left_out == (OmittedText("toast with peanut butter", ALLERGY, "p0"),)


@pytest.mark.parametrize(
    ("text", "rest", "out"),
    [
        ("Ideas: peanut butter on toast, tofu.", "Ideas: tofu.", "peanut butter on toast"),
        ("Peanuts, apples, or pears.", "Apples, or pears.", "Peanuts"),
        ("Eat apples, pears, and peanuts!", "Eat apples, pears!", "peanuts"),
        ("Take peanut oil for it. Stir well.", "Stir well.", "Take peanut oil for it."),
        (
            "Snacks such as peanuts, apples and pears are cheap.",
            "Snacks such as apples, and pears are cheap.",
            "peanuts",
        ),
        ("Snacks such as apples, pears and peanuts.", "Snacks such as apples, pears.", "peanuts"),
        ("Snacks such as peanuts and apples.", "Snacks such as apples.", "peanuts"),
        ("Take fruit, including apples, pears or peanut bars.", "Take fruit, including apples, pears.", "peanut bars"),
        (
            "Eat apples, pears and peanuts that you roasted for an hour. Stir.",
            "Stir.",
            "Eat apples, pears and peanuts that you roasted for an hour.",
        ),
        ("Peanuts, peanut butter.\nApples.", "Apples.", "Peanuts, peanut butter."),
        (
            "Good are oats with berries, wholemeal toast with pears or peanut butter, or plain yoghurt.",
            "Good are oats with berries, or plain yoghurt.",
            "wholemeal toast with pears or peanut butter",
        ),
        (
            "Stir well. Apples, pears and peanuts of any kind that you like all help, and nothing else does.",
            "Stir well.",
            "Apples, pears and peanuts of any kind that you like all help, and nothing else does.",
        ),
    ],
)
def test_what_is_left_reads_well(parts: Parts, text: str, rest: str, out: str) -> None:
    turn = read(parts, text)
    assert [one.text for one in turn.shown] == [rest]
    assert [one.text for one in turn.left_out] == [out]


@pytest.mark.parametrize(
    ("text", "first_item", "rest", "out"),
    [
        ("A snack combines peanuts, apples and pears.", "peanuts", "A snack combines apples, and pears.", "peanuts"),
        ("Good are the peanuts, a pear or a fig.", "peanuts.", "Good are a pear, or a fig.", "the peanuts"),
        ("Eat more peanuts, peanut oil and figs.", "peanuts", "Eat more figs.", "peanuts"),
    ],
)
def test_of_a_list_that_nothing_introduces_the_beginning_is_kept(
    parts: Parts, text: str, first_item: str, rest: str, out: str
) -> None:
    llm = ScriptedLLM([first_item])
    turn = read(replace(parts, llm=llm), text, "Stir.")
    assert [one.text for one in turn.shown] == [rest, "Stir."]
    assert turn.left_out[0].text == out
    assert text in llm.prompts[0][-1].content


def failing(_: object) -> str:
    raise ModelError("It is gone.")


@pytest.mark.parametrize("first_item", ["", "walnuts", "A snack combines peanuts", "nuts", failing])
def test_a_list_whose_beginning_is_not_found_goes_whole(parts: Parts, first_item: object) -> None:
    text = "A snack combines peanuts, apples and pears."
    turn = read(replace(parts, llm=ScriptedLLM([first_item])), text, "Stir.")
    assert [one.text for one in turn.shown] == ["Stir."]
    assert (turn.left_out, turn.events) == ((OmittedText(text, ALLERGY, "p0"),), ())


class Unsure(Named):
    """Is sure of peanuts, and of nothing else that they are made with: as good as sure of oil, less so of salt."""

    def clashes(self, facts: Sequence[str], texts: Sequence[str], stop: Event, question: str = "") -> list[list[float]]:
        odds = {"peanut": 0.9, "oil": 0.55, "salt": 0.45}
        return [[max(p * (word in text) for word, p in odds.items()) for text in texts] for _ in facts]


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("Take bread, peanuts, oil and salt.", "Take bread, and salt."),
        ("Take bread, oil and salt.", "Take bread, oil and salt."),
        ("Take peanuts, oil and figs.", "Take figs."),
    ],
)
def test_beside_an_item_that_clashes_others_go_from_even_odds_on(parts: Parts, text: str, rest: str) -> None:
    turn = Turn("What?", facts=told(ALLERGY), digests=(Digest("p0", text),))
    own = replace(parts, suitability=Unsure(threshold=0.7), llm=ScriptedLLM(["peanuts"]))
    [turn] = suitability.passages(turn, own, Event())
    assert turn.digests[0].text == rest


class Together:
    """Is sure of a clash where "oil" and "salt" stand in one text, and nearly sure of either alone."""

    threshold = 0.7

    def clashes(self, facts: Sequence[str], texts: Sequence[str], stop: Event, question: str = "") -> list[list[float]]:
        return [[0.4 * ("oil" in text) + 0.5 * ("salt" in text) for text in texts] for _ in facts]


@pytest.mark.parametrize(
    "text",
    [
        "Take bread, some oil, much salt, and figs.",
        "Take oil, salt.",
    ],
)
def test_a_list_of_which_no_item_clashes_by_itself_goes_whole(parts: Parts, text: str) -> None:
    turn = Turn("What?", facts=told(ALLERGY), digests=(Digest("p0", text),))
    [turn] = suitability.passages(turn, replace(parts, suitability=Together()), Event())
    assert turn.digests[0].text == ""
    assert [one.text for one in turn.left_out] == [text]


def test_a_passage_of_which_nothing_is_left_is_not_read(parts: Parts) -> None:
    turn = read(parts, "Peanut butter is a good start.", "Eat slowly.")
    assert [one.id for one in turn.shown] == ["p1"]
    assert len(turn.passages) == 2


def test_without_facts_or_a_judge_nothing_is_asked(parts: Parts) -> None:
    assert read(parts, LIST, facts=()).left_out == ()
    turn = Turn("What?", facts=told(ALLERGY), digests=(Digest("p0", LIST),))
    assert list(suitability.passages(turn, parts, Event())) == [turn]


def test_a_judge_that_can_not_be_used_is_told_and_all_stays(parts: Parts) -> None:
    turn = Turn("What?", facts=told(ALLERGY), digests=(Digest("p0", LIST),), answer=Answer(LIST))
    broken = replace(parts, suitability=UnusableJudge("It is broken; get it again."))
    for step in (suitability.passages, suitability.reply):
        [after] = step(turn, broken, Event())
        assert after.events == (TurnEvent("suitability_failed", "It is broken; get it again."),)
        assert after.digests == turn.digests
        assert after.answer == turn.answer
    with pytest.raises(ModelError):
        UnusableJudge("It is broken.").clashes([ALLERGY], [LIST], Event())


def asked(parts: Parts, *replies: str, passages: Sequence[Passage]) -> Turn:
    parts = replace(
        parts, llm=ScriptedLLM(list(replies)), retriever=FixedRetriever(list(passages)), suitability=Named()
    )
    choices = Choices("concat", "retrieve_then_generate", k=2)
    *_, turn = flow.run(
        Turn("What is for breakfast?", known=(Fact("f", ALLERGY, now(), now()),), choices=choices), parts, Event()
    )
    assert turn.status == "done", turn.error
    return turn


def test_a_whole_turn_leaves_out_what_the_model_wrote_as_well(parts: Parts) -> None:
    said = "Good ideas are oats with berries, toast with peanut butter, or yoghurt."
    turn = asked(parts, said, passages=[Passage("p", "Breakfast", LIST)])
    assert turn.answer
    assert turn.answer.text == "Good ideas are oats with berries, or yoghurt. [1]"
    assert turn.left_out[0] == OmittedText("toast with peanut butter", ALLERGY, "p")
    assert turn.left_out[-1] == OmittedText("toast with peanut butter", ALLERGY)
    assert Turn.from_json(turn.to_json()) == turn
    assert as_json(turn)["left_out"][0]["fact"] == ALLERGY
    html = render.transcript(Conversation("i", "", now(), now(), (turn,)), ())
    assert "Left out, for what you told me: 2" in html
    assert "for “I have a peanut allergy.”, in Breakfast" in html


def test_what_is_left_of_a_reply_that_passed_is_cited_and_not_looked_at_again(parts: Parts) -> None:
    llm = ScriptedLLM([], [])  # has nothing to say
    settings = parts.settings.changed(turn={"addresses_threshold": 0.6})
    own = replace(parts, llm=llm, suitability=Named(), settings=settings)
    passages = (Passage("p", "Breakfast", "Eat apples. Eat peanuts."),)
    turn = Turn("What?", facts=told(ALLERGY), passages=passages, answer=Answer("Eat apples. [1] Eat peanuts. [1]"))
    *_, after = suitability.reply(turn, own, Event())
    assert after.answer
    assert (after.answer.text, after.answer.origin, llm.asked) == ("Eat apples. [1]", "passages", [])


def test_where_nothing_is_left_that_is_said_and_nobody_writes(parts: Parts) -> None:
    turn = asked(parts, passages=[Passage("p", "Breakfast", "Have peanut butter.")])
    assert turn.answer
    assert turn.answer.text == FIXED["unsuited"]
    assert turn.citations == ()


@dataclass
class LikesApples:
    """An estimator that finds whatever names apples, or peanuts even more, to answer."""

    name: str = "likes apples"
    calibration: str = ""

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
        confidences = {"peanut": 0.95, "apple": 0.9}
        return [
            Relevance.of_confidence(max(c for word, c in {**confidences, "": 0.1}.items() if word in p.text.lower()))
            for p in passages
        ]


@pytest.mark.parametrize(
    ("text", "reply", "cited"),
    [
        ("Have peanut butter. Apples are good.", "Apples are good. [1]", 1),
        ("Have peanut butter. Eat slowly.", FIXED["unsuited"], 0),
    ],
)
def test_in_place_of_a_reply_that_does_not_suit_what_is_left_is_quoted(
    parts: Parts, text: str, reply: str, cited: int
) -> None:
    settings = parts.settings.changed(turn={"quote_threshold": 0.9})
    own = replace(parts, settings=settings, suitability=Named(), estimator=lambda _: LikesApples())
    passages = (Passage("p", "Breakfast", text),)
    digests = (Digest("p", text.partition(". ")[2]),)
    written = Answer("Have peanut butter. [1]")
    turn = Turn("What?", facts=told(ALLERGY), passages=passages, digests=digests, answer=written)
    *_, after = suitability.reply(turn, own, Event())
    assert after.answer
    assert (after.answer.text, len(after.citations)) == (reply, cited)
    assert after.left_out == (OmittedText("Have peanut butter.", ALLERGY),)
    # a sentence that clashes itself is not quoted either
    *_, whole = suitability.reply(replace(turn, digests=()), own, Event())
    assert whole.answer == fixed("unsuited")
    # before the model says something by itself, quoting was tried
    *_, by_itself = suitability.reply(replace(turn, answer=unbacked("Have peanut butter.")), own, Event())
    assert by_itself.answer == fixed("unsuited")


def test_the_models_own_knowledge_is_sifted_too(parts: Parts) -> None:
    own = replace(parts, suitability=Named())
    turn = Turn("What?", facts=told(ALLERGY), answer=unbacked("Eat apples. Eat peanuts."))
    [after] = suitability.reply(turn, own, Event())
    assert after.answer == unbacked("Eat apples.")
    guessed = replace(turn, answer=Answer("?", unknown=True, origin="model"), own_answer="Eat apples. Eat peanuts.")
    [guess] = suitability.reply(guessed, own, Event())
    assert (guess.own_answer, [one.text for one in guess.left_out]) == ("Eat apples.", ["Eat peanuts."])
    listed = replace(turn, answer=unbacked("Eat apples. Buy pears, peanuts, and plums. These are cheap."))
    [shorter] = suitability.reply(listed, own, Event())
    assert shorter.answer == unbacked("Eat apples.")
    assert [one.text for one in shorter.left_out] == ["Buy pears, peanuts, and plums."]
    [nothing] = suitability.reply(replace(turn, answer=Answer("Eat peanuts.", origin="model")), own, Event())
    assert nothing.answer == fixed("unsuited")


def test_what_no_source_says_any_more_is_the_models_own(parts: Parts) -> None:
    turn = Turn("What?", facts=told(ALLERGY), passages=(Passage("p", "Food", "Peanuts."),))
    turn = replace(turn, answer=Answer("Eat plums daily. Eat peanuts."))
    *_, after = suitability.reply(turn, replace(parts, suitability=Named()), Event())
    assert after.answer == unbacked("Eat plums daily.")
    assert after.events == (TurnEvent("unsupported"),)
