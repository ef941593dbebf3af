"""A question in another language is understood in English, and answered in its own."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from threading import Event

import pytest

from assistant.protocols import Parts
from assistant.steps import facts, language
from assistant.steps.closed_book import unbacked
from assistant.types import Answer, Citation, Fact, Passage, Sentence, Turn, new_id, now
from assistant.wording.replies import LABEL, reply
from tests.scripted import FixedRetriever, OutOfRoom, ScriptedLLM

RENT = "Quel est le montant du loyer ?"
LEASE = Passage("lease", "Lease", "The rent is 1,240 euros a month, to be paid on the first.")
BAIL = Passage(
    "bail", "Bail", "Le loyer est de 1 240 euros par mois, à payer le premier du mois sur le compte de la propriétaire."
)


def through(step: object, turn: Turn, parts: Parts) -> Turn:
    *_, turn = step(turn, parts, Event())  # type: ignore[operator]
    return turn


def with_llm(parts: Parts, llm: ScriptedLLM, *passages: Passage) -> Parts:
    return replace(parts, llm=llm, retriever=FixedRetriever(list(passages)))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (RENT, "fr"),
        ("Wie viele Leute wohnen dort?", "de"),
        ("¿Cuál es la capital de Perú?", "es"),
        ("日本の首都はどこですか", "ja"),
        ("What is the capital of Peru?", "en"),
        ("wich cheese can i eat", "en"),
        ("ok", "en"),
        ("17*23?", "en"),
    ],
)
def test_languages_are_told_apart(text: str, code: str) -> None:
    assert language.language_of(text) == code


def test_a_foreign_message_is_put_into_english(parts: Parts) -> None:
    llm = ScriptedLLM(["How much is the rent?"])
    turn = through(language.message, Turn(RENT), with_llm(parts, llm, LEASE))
    assert (turn.english, turn.utterance_in_english, turn.utterance) == (
        "How much is the rent?",
        "How much is the rent?",
        RENT,
    )
    assert llm.prompts[0][-1].content == RENT


def test_a_foreign_message_of_several_lines_is_put_into_english_whole(parts: Parts) -> None:
    llm = ScriptedLLM(["I rent a flat. How much is the rent?"])
    through(language.message, Turn(f"Je loue un appartement.\n{RENT}"), with_llm(parts, llm, LEASE))
    assert llm.prompts[0][-1].content == f"Je loue un appartement. {RENT}"


@pytest.mark.parametrize("said", ["How much is the rent?", " ".join([RENT] * 40)])
def test_english_and_long_texts_are_left_alone(parts: Parts, said: str) -> None:
    assert through(language.message, Turn(said), with_llm(parts, ScriptedLLM(), LEASE)).utterance_in_english == said


def test_what_the_library_holds_in_that_language_is_not_translated(parts: Parts) -> None:
    assert not through(language.message, Turn(RENT), with_llm(parts, ScriptedLLM(), LEASE, BAIL)).english


def test_a_translation_that_found_no_end_is_not_used(parts: Parts) -> None:
    assert (
        through(language.message, Turn(RENT), with_llm(parts, OutOfRoom(["How much is"]), LEASE)).utterance_in_english
        == RENT
    )


def known(*texts: str) -> tuple[Fact, ...]:
    return tuple(Fact(new_id(), text, now(), now()) for text in texts)


def test_facts_are_put_into_english_once_where_the_turn_is_in_english(parts: Parts) -> None:
    llm = ScriptedLLM(["I can't stand coriander."], name="for coriander")
    turn = Turn("What could I cook?", known=known("Ich mag keinen Koriander.", "I live in Bonn."))
    for _ in range(2):
        found = through(language.message, turn, with_llm(parts, llm))
        assert [fact.in_english for fact in found.known] == ["I can't stand coriander.", "I live in Bonn."]
        assert [fact.text for fact in found.known] == ["Ich mag keinen Koriander.", "I live in Bonn."]
    assert len(llm.prompts) == 1
    ranked = through(facts.run, found, with_llm(parts, llm)).facts
    assert {fact.text for fact in ranked} == {"I can't stand coriander.", "I live in Bonn."}


def test_a_fact_that_is_off_is_not_put_into_english(parts: Parts) -> None:
    [off] = known("Ich mag keinen Kümmel.")
    turn = Turn("What could I cook?", known=(replace(off, on=False),))
    assert through(language.message, turn, with_llm(parts, ScriptedLLM())).known == turn.known


def test_a_fact_whose_translation_was_stopped_is_translated_in_the_next_turn(parts: Parts) -> None:
    turn, stop = Turn("What could I cook?", known=known("Ich mag keinen Dill.")), Event()

    def stopped(_: object) -> str:
        stop.set()
        return "I can't stand dill."

    llm = ScriptedLLM([stopped, "I can't stand dill."], name="for dill")
    *_, first = language.message(turn, with_llm(parts, llm), stop)
    assert [fact.in_english for fact in first.known] == ["Ich mag keinen Dill."]
    second = through(language.message, turn, with_llm(parts, llm))
    assert [fact.in_english for fact in second.known] == ["I can't stand dill."]


def test_a_newer_fact_in_another_language_takes_the_place_of_the_older_one(parts: Parts) -> None:
    older, newer = known("I'm vegan.", "Ich bin nicht vegan.")
    turn = Turn("What could I cook?", known=(older, replace(newer, changed=older.changed + timedelta(1))))
    found = through(language.message, turn, with_llm(parts, ScriptedLLM(["I'm not vegan."], name="not vegan")))
    assert [fact.text for fact in through(facts.run, found, parts).facts] == ["I'm not vegan."]


def test_facts_stay_as_they_are_where_the_turn_does_or_their_translation_fails(parts: Parts) -> None:
    mine = known("Je suis allergique aux noix.")
    held = through(language.message, Turn(RENT, known=mine), with_llm(parts, ScriptedLLM(), LEASE, BAIL))
    llm = OutOfRoom(["I'm allergic"], name="out of room")
    failed = [
        through(language.message, Turn("How much is the rent?", known=mine), with_llm(parts, llm, LEASE)) for _ in "ab"
    ]
    for turn in (held, *failed):
        assert [fact.in_english for fact in turn.known] == ["Je suis allergique aux noix."]
    assert len(llm.prompts) == 1, "what failed is not tried in every turn"


def test_the_reply_is_translated_sentence_by_sentence_and_keeps_its_citations(parts: Parts) -> None:
    text = "The rent is 1,240 euros. It is due on the first."
    cited = Citation(1, "lease", 0, 10, "The rent is 1,240 euros.", "The rent", 0.9)
    turn = replace(
        Turn(RENT, english="How much is the rent?"),
        answer=Answer("The rent is 1,240 euros. [1] It is due on the first."),
        sentences=(
            Sentence("The rent is 1,240 euros.", "supported", 0.9, (1,)),
            Sentence("It is due on the first.", "not", 0.1),
        ),
        citations=(cited,),
    )
    llm = ScriptedLLM(["Le loyer est de 1 240 euros.", "Il est dû le premier."])
    turn = through(language.reply, turn, with_llm(parts, llm))
    assert turn.answer == Answer("Le loyer est de 1 240 euros. [1] Il est dû le premier.")
    assert [one.text for one in turn.sentences] == ["Le loyer est de 1 240 euros.", "Il est dû le premier."]
    assert turn.citations[0].sentence == "Le loyer est de 1 240 euros."
    assert [text in prompt[-1].content for prompt, text in zip(llm.prompts, (text[:24], text[25:]), strict=True)] == [
        True,
        True,
    ]


def test_a_sentence_that_is_repeated_and_a_cited_row_of_a_table_are_translated(parts: Parts) -> None:
    english, french = ("It is due.", "Yes.", "It is due.", "| rent | due |"), ("Dû.", "Oui.", "Dû.", "| loyer | dû |")
    turn = replace(
        Turn(RENT, english="How much is the rent?"),
        answer=Answer("It is due. [1] Yes. It is due. [1]\n| rent | due [2] |"),
        sentences=tuple(Sentence(text, "supported") for text in english),
    )
    turn = through(language.reply, turn, with_llm(parts, ScriptedLLM(list(french))))
    assert turn.answer == Answer("Dû. [1] Oui. Dû. [1]\n| loyer | dû [2] |")
    assert tuple(one.text for one in turn.sentences) == french


def test_code_in_a_reply_is_not_translated(parts: Parts) -> None:
    code = "```\npay rent\n```"
    turn = Turn(RENT, english="How much is the rent?", answer=Answer(f"{code}\nIt is due."))
    turn = replace(turn, sentences=(Sentence(code, "unchecked"), Sentence("It is due.", "not")))
    turn = through(language.reply, turn, with_llm(parts, ScriptedLLM(["Dû."])))
    assert turn.answer == Answer(f"{code}\nDû.")


def test_the_line_that_tells_of_no_source_stays(parts: Parts) -> None:
    turn = Turn(RENT, english="How much is the rent?", answer=unbacked("About 800 euros."))
    turn = through(language.reply, turn, with_llm(parts, ScriptedLLM(["Environ 800 euros."])))
    assert turn.answer
    assert reply(turn.answer) == f"{LABEL}\n\nEnviron 800 euros."


def test_a_sentence_that_can_not_be_translated_stays_as_it_is(parts: Parts) -> None:
    turn = Turn(RENT, english="How much is the rent?", answer=unbacked("About 800 euros."))
    turn = through(language.reply, turn, with_llm(parts, OutOfRoom(["Environ"])))
    assert turn.answer == unbacked("About 800 euros.")


def test_by_default_the_reply_stays_as_it_was_checked(parts: Parts) -> None:
    knobs = parts.settings.turn.model_copy(update={"translate": True})
    translating = replace(parts, settings=parts.settings.model_copy(update={"turn": knobs}))
    turn = Turn(RENT, english="How much is the rent?")
    assert not language.is_due(turn, parts)
    assert language.is_due(turn, translating)
    assert not language.is_due(replace(turn, english=""), translating)


def test_an_english_passage_full_of_foreign_names_is_english(parts: Parts) -> None:
    names = Passage("pt", "Cabo Verde", "The municipalities (concelhos) are Boa Vista, Ribeira Grande and Porto Novo.")
    llm = ScriptedLLM(["What is the currency of Kenya?"])
    turn = through(language.message, Turn("Qual é a moeda do Quênia?"), with_llm(parts, llm, names))
    assert turn.english == "What is the currency of Kenya?"


def test_replies_to_english_and_what_is_not_known_are_left_alone(parts: Parts) -> None:
    for turn in (Turn("What?", answer=Answer("This.")), Turn(RENT, english="What?", answer=Answer("?", unknown=True))):
        assert through(language.reply, turn, with_llm(parts, ScriptedLLM())) == turn
