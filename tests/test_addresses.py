"""The second look: a cited reply is put to the language model beside its sources, and set aside where it says no."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import Event

import pytest

from assistant import turn as flow
from assistant.errors import ModelError
from assistant.judges.addresses import ANY, Addresses, with_nearest_evidence
from assistant.protocols import Parts
from assistant.steps import cite
from assistant.steps.closed_book import unbacked
from assistant.types import Answer, Choice, Choices, Claim, Messages, Passage, Turn, TurnEvent, Verdict
from assistant.wording.replies import FIXED
from tests.scripted import ScriptedLLM, WordEmbedder

QUESTION = "Which drink holds no lactose?"
REPLY = "Oat drink holds no lactose."
ALONE = Choices(strategy="concat", loop="retrieve_then_generate")

NOT_HELD = Answer(FIXED["not_held"], unknown=True, outcome="not_held")


def choosing(parts: Parts, *yes: float, replies: Sequence[str] = (), threshold: float = 0.6) -> Parts:
    """Parts whose model gives these probabilities of yes, in order, and these replies."""
    turn = parts.settings.turn.model_copy(update={"addresses_threshold": threshold})
    llm = ScriptedLLM(list(replies), [{"yes": p, "no": 1 - p} for p in yes])
    return replace(parts, settings=parts.settings.model_copy(update={"turn": turn}), llm=llm)


def settled(parts: Parts, text: str = REPLY, stop: Event | None = None, **given: object) -> Turn:
    passages = given.pop("passages", tuple(parts.retriever.search(QUESTION, 3)))
    turn = Turn(QUESTION, question=QUESTION, passages=passages, answer=Answer(text), **given)
    for turn in cite.run(turn, parts, stop or Event()):  # noqa: B007 - the last one is looked at
        pass
    return turn


def asked(parts: Parts, choices: Choices = ALONE) -> Turn:
    *_, turn = flow.run(Turn(QUESTION, choices=choices), parts, Event())
    return turn


def shown(parts: Parts) -> str:
    """What the model was shown last."""
    return parts.llm.asked[-1][-1].content


# --- what becomes of a reply -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("yes", "kept"), [(0.9, True), (0.03, True), (0.02, False), (0.0, False)])
def test_a_reply_below_the_threshold_is_set_aside(parts: Parts, yes: float, kept: bool) -> None:
    """The judge of these tests is as sure as can be, so that the model has to be nearly as sure of the contrary."""
    turn = settled(choosing(parts, yes))
    assert turn.answer == Answer(f"{REPLY} [1]", unknown=not kept)
    assert turn.events == (() if kept else (TurnEvent("set_aside"),))
    assert turn.citations
    assert "addresses" in turn.timings


@pytest.mark.parametrize(
    ("reply", "verdict", "kept"),
    [
        ("Yes, oat drink holds no lactose.", {"yes": 0.8, "no": 0.1, "unknown": 0.1}, True),
        ("Yes, oat drink holds no lactose.", {"yes": 0.01, "no": 0.89, "unknown": 0.1}, False),
        ("No, oat drink holds no lactose.", {"yes": 0.1, "no": 0.8, "unknown": 0.1}, True),
        ("no: oat drink holds no lactose.", {"yes": 0.89, "no": 0.01, "unknown": 0.1}, False),
    ],
)
def test_a_yes_or_no_is_held_against_the_question_alone(
    parts: Parts, reply: str, verdict: dict[str, float], kept: bool
) -> None:
    """The judge of these tests is as sure as can be; the model, asked without the reply, as sure of the contrary."""
    parts = choosing(parts, 0.5)
    parts.llm.choices.append(verdict)
    turn = settled(parts, reply)
    assert turn.has_event("set_aside") is not kept
    assert reply not in shown(parts)
    assert shown(parts).endswith(f"Question: {QUESTION}\nyes, no or unknown")


def test_other_words_are_no_verdict(parts: Parts) -> None:
    parts = choosing(parts, 0.9)
    assert not settled(parts, "Nobody finds lactose in oat drink.").has_event("set_aside")
    assert len(parts.llm.asked) == 1


def test_what_only_says_the_question_again_is_set_aside_and_nobody_is_asked(parts: Parts) -> None:
    turn = settled(choosing(parts), "The drink holds no lactose.")
    assert turn.answer == Answer("The drink holds no lactose. [1]", unknown=True)
    assert turn.events == (TurnEvent("set_aside"),)


def test_a_threshold_of_0_asks_nobody(parts: Parts) -> None:
    parts = choosing(parts, threshold=0.0)
    turn = settled(parts)
    assert turn.answer == Answer(f"{REPLY} [1]")
    assert (parts.llm.asked, "addresses" in turn.timings) == ([], False)


def test_what_no_passage_says_and_a_short_answer_are_not_looked_at(parts: Parts) -> None:
    parts = choosing(parts)
    assert settled(parts, "Camels graze in deserts far away.").events == ()
    assert settled(parts, choices=Choices(form="factoid")).answer == Answer(REPLY)
    assert parts.llm.asked == []


def test_a_stop_meanwhile_keeps_the_reply(parts: Parts) -> None:
    stop = Event()

    class Stopped(ScriptedLLM):
        def choose(self, batch: Sequence[Messages], words: tuple[str, ...], stop: Event) -> list[Choice]:
            stop.set()
            return [Choice({"yes": 0.0, "no": 1.0}) for _ in batch]

    turn = settled(replace(choosing(parts), llm=Stopped()), stop=stop)
    assert (turn.answer, turn.events) == (Answer(f"{REPLY} [1]"), ())


def test_a_model_that_can_not_choose_keeps_the_reply_and_it_is_said(parts: Parts) -> None:
    class Mute(ScriptedLLM):
        def choose(self, batch: Sequence[Messages], words: tuple[str, ...], stop: Event) -> list[Choice]:
            raise ModelError("yes and no begin alike.")

    turn = settled(replace(choosing(parts), llm=Mute()))
    assert turn.answer == Answer(f"{REPLY} [1]")
    assert turn.events == (TurnEvent("second_look_failed", "yes and no begin alike."),)


# --- in a whole turn ---------------------------------------------------------------------------------------------


def test_what_was_set_aside_falls_back_to_each_passage_alone(parts: Parts) -> None:
    replies = ("Lactose is the sugar in milk.", "unknown", REPLY, "unknown")
    turn = asked(choosing(parts, 0.0, 0.9, replies=replies), replace(ALONE, strategy="concat_pf", k=3))
    assert turn.events == (TurnEvent("set_aside"), TurnEvent("fell_back"))
    assert turn.answer == Answer(f"{REPLY} [1]", origin="pool")


def test_what_was_set_aside_is_not_shown_as_the_models_own(parts: Parts) -> None:
    parts = choosing(parts, 0.0, replies=(REPLY, "Almond drink has none."))
    turn = asked(parts)
    assert turn.answer == unbacked("Almond drink has none.")
    assert turn.events == (TurnEvent("set_aside"), TurnEvent("own_knowledge"))
    assert turn.citations == ()


@pytest.mark.parametrize("below", ["answer", "refuse", "ask"])
def test_or_it_is_said_that_the_library_holds_nothing(parts: Parts, below: str) -> None:
    turn = asked(choosing(parts, 0.0, replies=(REPLY,)), replace(ALONE, below=below))
    assert turn.answer == NOT_HELD
    assert (turn.citations, TurnEvent("unsupported") in turn.events) == ((), False)


# --- what the model is shown -------------------------------------------------------------------------------------


def test_it_is_shown_the_question_the_source_and_its_reply_without_numbers(parts: Parts) -> None:
    parts = choosing(parts, 0.9)
    settled(parts, "Oat drink holds no lactose [2].")
    assert shown(parts).splitlines() == [
        "Text: Lactose: Oat drink holds no lactose.",
        f"Question: {QUESTION}",
        f"Reply: {REPLY}",
        "yes or no",
    ]


def test_for_each_sentence_of_the_reply_it_is_shown_the_one_nearest_to_it(parts: Parts) -> None:
    many = [f"Sentence number {n} has ten words and tells of rain." for n in range(60)]
    many[30], many[34] = REPLY, "Goats eat grass in spring."
    parts = choosing(parts, 0.9)
    settled(parts, f"{many[34]} {REPLY}", passages=(Passage("long", "", " ".join(many)),))
    assert shown(parts).splitlines()[0] == f"Text: {REPLY} {many[34]}"


def test_it_is_shown_three_sources_at_most_in_the_order_of_the_passages(parts: Parts) -> None:
    said = [f"{animal} eat grass in spring." for animal in ("Cows", "Goats", "Sheep", "Geese")]
    passages = tuple(Passage(f"p{n}", "", text) for n, text in enumerate(said))
    parts = choosing(parts, 0.9)
    turn = settled(parts, " ".join(reversed(said)), passages=passages)
    assert len({one.passage_id for one in turn.citations}) == 4
    assert shown(parts).splitlines()[0] == f"Text: {' '.join(said[:3])}"


# --- as a judge, to be measured ----------------------------------------------------------------------------------


def test_as_a_judge_it_reads_a_claim_as_a_reply_to_its_question() -> None:
    llm = ScriptedLLM(choices=[{"yes": p, "no": 1 - p} for p in (0.6, 0.5)])
    oats, milk = Passage("o", "Oats", "Camels graze. Oats hold none."), Passage("m", "", "It holds some.")
    claims = [Claim("Oats.", (oats, milk), QUESTION), Claim("Milk holds some.", (milk,))]
    judge = Addresses(llm, None, WordEmbedder(), 0.6, 0.8)
    assert judge.judge(claims, Event()) == [Verdict(0.6, "supported"), Verdict(0.5, "not")]
    first, second = (messages[-1].content for messages in llm.asked)
    assert first.startswith(f"Text: Oats: Oats hold none.\nQuestion: {QUESTION}\nReply: Oats.")
    assert f"Question: {ANY}\nReply: Milk holds some." in second


def test_the_mean_of_the_log_odds_of_both_judges_counts() -> None:
    class Fixed:
        threshold = 0.5

        def judge(self, claims: Sequence[Claim], stop: Event) -> list[Verdict]:
            return [Verdict(p, "not") for p in (0.8, 0.2, 0.0)]

    llm = ScriptedLLM(choices=[{"yes": p, "no": 1 - p} for p in (0.8, 0.8, 0.99)])
    claims = [Claim("Oats.", (Passage("o", "", "Oats."),), QUESTION)] * 3
    found = Addresses(llm, Fixed(), WordEmbedder(), 0.6, 0.8).judge(claims, Event())
    assert [one.probability for one in found] == pytest.approx([0.8, 0.5, 0.5])
    assert [one.state for one in found] == ["supported", "not", "not"]


def test_of_no_claims_nobody_is_asked() -> None:
    llm = ScriptedLLM()
    assert (Addresses(llm, None, WordEmbedder(), 0.6, 0.8).judge([], Event()), llm.asked) == ([], [])


def test_evidence_without_a_sentence_is_shown_as_it_is() -> None:
    claim = Claim("Oats.", (Passage("o", "Oats", " "),), QUESTION)
    assert with_nearest_evidence(claim, WordEmbedder()) == claim
