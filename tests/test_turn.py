"""The flow of a turn, with a scripted model: what is asked in which order, and what the turn holds in the end."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from assistant import turn as flow
from assistant.errors import SettingsError, UtteranceError
from assistant.protocols import Parts
from assistant.retrieve.search import search_text
from assistant.settings import TurnSettings
from assistant.types import Answer, Choices, Exchange, Fact, Messages, Turn, TurnEvent, now
from assistant.wording.replies import FIXED
from assistant.wording.views import STEP_ACTIVITIES, STEP_TITLES, as_json, headline
from tests.scripted import FixedRetriever, OutOfRoom, ScriptedLLM

GOLDEN = Path(__file__).parent / "golden"
DRAFT = "Lentils and oat drink make a good diet."
VEGETARIAN = Fact("f1", "I want a good diet without meat.", now(), now())
OFF = Fact("f2", "I like a good diet.", now(), now(), on=False)
EARLIER = Exchange("What are good diets?", "What are good diets?", "The vegan diet and the DASH diet.")

NOT_HELD = Answer(FIXED["not_held"], unknown=True, outcome="not_held")


def scripted(parts: Parts, *replies: object, choices: list[dict[str, float]] | None = None) -> Parts:
    return replace(parts, llm=ScriptedLLM(list(replies), choices or []))


def asked(parts: Parts, turn: Turn, stop: Event | None = None) -> Turn:
    *_, last = flow.run(turn, parts, stop or Event())
    return last


def yes_no(*yes: float) -> list[dict[str, float]]:
    return [{"yes": p, "no": 1 - p} for p in yes]


def stable(turn: Turn) -> dict[str, Any]:
    """The turn as JSON, without what differs from run to run."""
    view = as_json(turn)
    view.pop("id")
    view["timings"] = sorted(view["timings"])
    view["facts"] = [{**fact, "relevance": round(fact["relevance"], 3)} for fact in view["facts"]]
    view["passages"] = [{**passage, "score": round(passage["score"], 5)} for passage in view["passages"]]
    return view


def golden(name: str, turn: Turn) -> None:
    """Compare to tests/golden/NAME.json; UPDATE_GOLDEN=1 writes it anew, and the difference is then read in review."""
    file = GOLDEN / f"{name}.json"
    found = json.loads(json.dumps(stable(turn)))
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert found == json.loads(file.read_text(encoding="utf-8"))


def test_golden_a_question_with_facts_is_answered_and_cited(parts: Parts) -> None:
    said = "What is a good diet?"
    parts = scripted(parts, said, DRAFT, "Lentils are rich in protein. Oat drink holds no lactose.")
    turn = asked(parts, Turn(said, known=(VEGETARIAN, OFF)))
    assert turn.status == "done"
    assert turn.answer
    assert turn.answer.text.startswith("Lentils are rich in protein. [1]")
    golden("answered", turn)


def test_a_fact_that_the_answer_has_nothing_to_do_with_is_no_reason_for_it(parts: Parts) -> None:
    known = (
        replace(VEGETARIAN, text="Oat drink is my favourite drink"),
        replace(VEGETARIAN, text="My street is a drink"),
    )
    said = "Which drink is a drink?"
    turn = asked(scripted(parts, said, DRAFT, "Oat drink holds no lactose."), Turn(said, known=known))
    assert len(turn.used_facts) == 2
    assert [fact.text for fact in turn.reasons] == ["Oat drink is my favourite drink"]
    nothing = asked(scripted(parts, said, "A dr", *["unknown"] * 5), Turn(said, known=known))
    assert (len(nothing.used_facts), nothing.reasons) == (2, ())


def test_golden_the_fallback_asks_each_passage_and_votes(parts: Parts) -> None:
    replies = (DRAFT, "unknown", "unknown", "Oat drink holds no lactose.", "Oat drink holds no lactose at all.")
    turn = asked(scripted(parts, *replies), Turn("Which drink holds no lactose?"))
    assert turn.events == (TurnEvent("fell_back"),)
    assert [candidate.votes for candidate in turn.pool] == [0, 2, 2]
    golden("fallback", turn)


def test_stopped_in_the_fallback_no_bare_unknown_is_left(parts: Parts) -> None:
    stop = Event()
    replies = (DRAFT, "unknown", "unknown", "Oat drink holds no lactose.", "unknown")
    for turn in flow.run(Turn("Which drink holds no lactose?"), scripted(parts, *replies), stop):
        if turn.has_event("fell_back"):
            assert turn.answer is None
            stop.set()
    assert (turn.status, turn.answer, turn.events) == ("stopped", None, (TurnEvent("fell_back"),))


def test_golden_what_the_library_does_not_hold_is_admitted(parts: Parts) -> None:
    parts = scripted(parts, "France won it in 2018. Then Argentina w", "unknown", "Unknown.", "unknown", "unknown")
    turn = asked(parts, Turn("Who won the World Cup?", choices=Choices(below="refuse")))
    assert turn.answer
    assert turn.answer.text == NOT_HELD.text
    assert turn.answer.unknown
    assert turn.own_answer == "France won it in 2018."
    golden("not_held", turn)


def test_golden_a_follow_up_is_rewritten_and_glanced_for(parts: Parts) -> None:
    parts = scripted(parts, "What is so great about the DASH diet?", DRAFT, "Lentils are rich in protein.")
    turn = asked(parts, Turn("What's so great about the 2nd one?", (EARLIER,)))
    assert turn.rewritten
    assert turn.question == "What is so great about the DASH diet?"
    assert isinstance(parts.retriever, FixedRetriever)
    assert parts.retriever.queries == [
        "What are good diets? What's so great about the 2nd one?",
        search_text(turn),
        search_text(turn),
        DRAFT,
    ]
    golden("follow_up", turn)


@pytest.mark.parametrize(("known", "name"), [((VEGETARIAN,), "utterance"), ((OFF,), "question"), ((), "question")])
def test_there_are_sources_to_look_at_before_the_model_has_written_anything(
    parts: Parts, known: tuple[Fact, ...], name: str
) -> None:
    llm = ScriptedLLM()
    seen = flow.run(Turn("What is a good diet?", known=known), replace(parts, llm=llm), Event())
    first = next(turn for turn in seen if turn.passages)
    assert [(query.name, query.text) for query in first.queries] == [(name, "What is a good diet?")]
    assert not llm.prompts


def test_golden_a_loop_of_iterations_writes_documents_and_answers_from_the_last(parts: Parts) -> None:
    document = "Oat drink is made of oats. It holds no lactose."
    parts = scripted(parts, document, "Oat drink holds no lactose.")
    choices = Choices(loop="itrg_refine", strategy="document", k=2)
    turn = asked(parts, Turn("Which drink holds no lactose?", choices=choices))
    assert turn.answer
    assert turn.answer.text == "Oat drink holds no lactose. [1]"
    assert [one.document for one in turn.iterations] == [document, document]
    golden("iterations", turn)


def test_golden_small_talk_needs_no_library(parts: Parts) -> None:
    parts = scripted(parts, "Hello! I am well.")
    turn = asked(parts, Turn("Hello!", known=(VEGETARIAN,)))
    assert (turn.intent, turn.passages, turn.draft, turn.citations) == ("small_talk", (), "", ())
    assert turn.answer
    assert turn.answer.origin == "conversation"
    golden("small_talk", turn)


def test_what_is_to_be_written_needs_no_library(parts: Parts) -> None:
    turn_settings = TurnSettings(writing_threshold=0.0, intent_threshold=0.85)
    parts = scripted(parts, "Roses are red.\nLentils are brown.")
    parts = replace(parts, settings=parts.settings.model_copy(update={"turn": turn_settings}))
    turn = asked(parts, Turn("Write a poem about lentils.", (EARLIER,), known=(VEGETARIAN,)))
    assert (turn.intent, turn.status, turn.passages, turn.citations, turn.offers) == ("writing", "done", (), (), ())
    assert turn.answer
    assert (turn.answer.text, turn.answer.origin) == ("Roses are red.\nLentils are brown.", "model")
    [prompt] = parts.llm.prompts
    assert [message.role for message in prompt] == ["system", "user", "assistant", "user"]
    assert VEGETARIAN.text not in turn.used_facts
    assert VEGETARIAN.text not in prompt[0].content


def test_writing_that_goes_round_in_circles_is_ended(parts: Parts) -> None:
    verse = "It is a creature of joy,\nWith a heart that is true.\n"
    settings = parts.settings.model_copy(update={"turn": TurnSettings(writing_threshold=0.0)})
    parts = scripted(replace(parts, settings=settings), verse * 9)
    turn = asked(parts, Turn("Write a poem about cats."))
    assert turn.answer
    assert (turn.status, turn.answer.text) == ("done", verse.strip())


def test_an_answer_that_nothing_supports_falls_back(parts: Parts) -> None:
    replies = (DRAFT, "Monks invented lentils.", "unknown", "unknown", "unknown")
    asking = Turn("Where do lentils come from?", choices=Choices(below="refuse"))
    turn = asked(scripted(parts, *replies), asking)
    assert turn.events == (TurnEvent("fell_back"),)
    assert turn.answer
    assert turn.answer.unknown


def test_where_the_winner_has_no_support_another_candidate_speaks(parts: Parts) -> None:
    replies = (DRAFT, "unknown", *["Monks invented lentils."] * 2, "Lentils are rich in protein.")
    turn = asked(scripted(parts, *replies), Turn("Where do lentils come from?"))
    assert [candidate.votes for candidate in turn.pool] == [2, 2, 1]
    assert turn.answer
    assert not turn.answer.unknown


def test_what_about_is_asked_as_and(parts: Parts) -> None:
    parts = scripted(parts, "How much iron do I need?", DRAFT, "Lentils are rich in protein.")
    turn = asked(parts, Turn("What about iron?", (EARLIER,)))
    assert turn.question == "How much iron do I need?"
    assert isinstance(parts.llm, ScriptedLLM)
    assert "A: And iron?" in parts.llm.prompts[0][-1].content


def test_first_sources_come_before_the_model_has_said_a_word(parts: Parts) -> None:
    snapshots = flow.run(Turn("What is a good diet?"), scripted(parts, DRAFT, "Lentils."), Event())
    first = next(snapshot for snapshot in snapshots if snapshot.passages)
    assert first.draft == ""
    assert first.passages[0].found_by == ("question",)


def test_a_first_utterance_is_not_rewritten(parts: Parts) -> None:
    turn = asked(scripted(parts, DRAFT, "Lentils are rich in protein."), Turn("What is a good diet?"))
    assert turn.question == "What is a good diet?"
    assert not turn.rewritten


@pytest.mark.parametrize(
    ("said", "question"),
    [
        ("How many people live in the US?", "How many people live in the USA?"),
        ("Who leads the U.S.?", "Who leads the USA?"),
        ("Is the U.S.A. large?", "Is the USA large?"),
        ("TELL US MORE", "TELL US MORE"),
        ("Tell us more", "Tell us more"),
        ("How many US dollars are US$5?", "How many US dollars are US$5?"),
        ("Where are the US Virgin Islands?", "Where are the US Virgin Islands?"),
        ("What does the USB port do?", "What does the USB port do?"),
    ],
)
def test_the_us_is_named_in_full(parts: Parts, said: str, question: str) -> None:
    turn = asked(scripted(parts, DRAFT, "Lentils are rich in protein."), Turn(said))
    assert (turn.question, turn.rewritten) == (question, question != said)


@pytest.mark.parametrize(
    ("rewrite", "kept"), [("What should I eat more of?", False), ("As a vegetarian, what should I eat more of?", True)]
)
def test_a_first_message_is_only_rewritten_to_add_something(parts: Parts, rewrite: str, kept: bool) -> None:
    said = "The doctor says my iron is low. What should I eat more of?"
    turn = asked(scripted(parts, rewrite, DRAFT, "Lentils."), Turn(said, known=(VEGETARIAN,)))
    assert turn.question == (rewrite if kept else said)


def test_a_rewrite_that_was_cut_off_is_not_used(parts: Parts) -> None:
    said = "What should I cook tonight? I only have rice, eggs and spinach, and no more than half an hour."
    cut = OutOfRoom(["What should I cook tonight? I only have rice, eggs and", DRAFT, "Lentils are rich in protein."])
    turn = asked(replace(parts, llm=cut), Turn(said, (EARLIER,)))
    assert (turn.question, turn.rewritten) == (said, False)


def test_a_rewrite_is_asked_for_in_one_line(parts: Parts) -> None:
    said = "What should I cook?\nIt has to be quick."
    parts = scripted(parts, "What should I cook? It has to be quick.", DRAFT, "Lentils are rich in protein.")
    asked(parts, Turn(said, (EARLIER,)))
    assert isinstance(parts.llm, ScriptedLLM)
    assert "What should I cook? It has to be quick." in parts.llm.prompts[0][-1].content


def test_small_talk_knows_the_facts_that_are_nearest_to_it(parts: Parts) -> None:
    many = tuple(Fact(f"n{n}", f"My {'x' * (n + 1)} is mine.", now(), now()) for n in range(25))
    parts = replace(parts, llm=OutOfRoom(["Hello there. I am well and"]))
    turn = asked(parts, Turn("Hello!", known=(*many, replace(VEGETARIAN, text="Hello!"), OFF)))
    assert turn.answer
    assert turn.answer.text == "Hello there."
    prompt = "\n".join(message.content for message in parts.llm.prompts[0])
    assert prompt.count("Hello!") == 2
    assert OFF.text not in prompt
    assert prompt.count("is mine.") == 19


def test_an_item_of_a_long_reply_is_found_by_its_place(parts: Parts) -> None:
    tips = "\n".join(f"{n}. {'Save a little of the pay of each month. ' * 3}" for n in range(1, 5))
    said = Exchange("Give me five tips", "Give me five tips", f"{tips}\n5. Cook for a week.")
    parts = scripted(parts, "What about cooking?", DRAFT, "Lentils are rich in protein.")
    asked(parts, Turn("Tell me more about the last one", (said,)))
    assert parts.llm.prompts[0][-1].content.splitlines()[-3] == 'A: Tell me more about "Cook for a week"'


def test_a_place_that_a_fact_names_is_searched_for_by_its_name(parts: Parts) -> None:
    lives = replace(VEGETARIAN, text="My country is Norway.")
    parts = scripted(parts, "Is Norway good for walking?", DRAFT, "Walking for 30 minutes a day is good for the heart.")
    turn = asked(parts, Turn("Is my country good for walking?", known=(lives,)))
    assert turn.question == "Is Norway good for walking?"
    assert lives.text in parts.llm.prompts[0][-1].content


def test_a_first_message_that_no_fact_is_near_to_is_asked_as_it_stands(parts: Parts) -> None:
    far = replace(VEGETARIAN, text="My bicycle is blue.")
    parts = scripted(parts, DRAFT, "Lentils are rich in protein.")
    turn = asked(parts, Turn("Which pulses hold protein?", known=(far,)))
    assert (turn.question, turn.rewritten) == ("Which pulses hold protein?", False)
    assert turn.facts[0].relevance < parts.settings.facts.rewrite_threshold


@pytest.mark.parametrize("written", [" ".join(["The DASH diet is low in salt."] * 20), "How is tea made?"])
def test_a_rewrite_that_is_no_question_or_an_unrelated_one_is_not_used(parts: Parts, written: str) -> None:
    turn = asked(scripted(parts, written, DRAFT, "Lentils are rich in protein."), Turn("Why is that?", (EARLIER,)))
    assert turn.question == "Why is that?"


@pytest.mark.parametrize(
    "written",
    [
        "Yes, you can do it without oil.",
        "what are good diets",
        "What are good diets?",
        "And without meat? A: Lentils are a good choice.",
        'A: "What is a good diet without meat?"',
    ],
)
def test_an_answer_or_a_question_of_before_is_no_rewrite(parts: Parts, written: str) -> None:
    good = written.startswith("A:")
    tries = () if good else (written,) * 4
    turn = asked(scripted(parts, written, *tries, DRAFT, "Lentils do."), Turn("And without meat?", (EARLIER,)))
    # what goes on with the question before, and was not rewritten, is asked behind it
    question = "What is a good diet without meat?" if good else "What are good diets? And without meat?"
    assert (turn.question, search_text(turn)) == (question, question)


@pytest.mark.parametrize(
    ("others", "question"),
    [
        (["What is a good diet without meat?"], "What is a good diet without meat?"),
        # one is the message itself, one drops what is new in it
        (["And without meat?", "What is good?", "Is meat bad without salt?"], "Is meat bad without salt?"),
        (["And without meat?", "What is good?", "Yes.", ""], "What are good diets? And without meat?"),
    ],
)
def test_what_only_goes_on_is_written_anew_until_it_is_a_question(
    parts: Parts, others: list[str], question: str
) -> None:
    parts = scripted(parts, "What are good diets?", *others, DRAFT, "Lentils do.")
    assert asked(parts, Turn("And without meat?", (EARLIER,))).question == question
    assert not parts.llm.replies  # every try was made that the case lists, and none beyond


def test_what_only_goes_on_is_rewritten_from_the_question_before_alone(parts: Parts) -> None:
    older = Exchange("Which fish is cheap?", "Which fish is cheap?", "Herring is.")
    chain = Exchange("And without meat?", "What are good diets without meat?", "The DASH diet.")
    prompts: list[str] = []

    def rewritten(messages: Messages) -> str:
        prompts.append(messages[-1].content)
        return "What are good diets without fish?"

    turn = asked(scripted(parts, rewritten, DRAFT, "Lentils do."), Turn("And without fish?", (older, chain)))
    assert turn.question == "What are good diets without fish?"
    [prompt] = prompts
    assert "Herring" not in prompt
    assert chain.question in prompt  # as it was meant, since it stands alone
    longer = Turn("And which of all other diets cost very little?", (older, chain))
    assert asked(scripted(parts, rewritten, DRAFT, "Lentils do."), longer).question == turn.question
    assert "Herring" in prompts[1]  # more words may refer to anything that was said


@pytest.mark.parametrize(
    ("utterance", "question", "searched"),
    [
        ("And how many people live there?", "How many people live in India?", "How many people live in India?"),
        ("Tell me of its rivers, too.", "What is India?", "Tell me of its rivers, too. What is India?"),
        ("What is India?", "What is India?", "What is India?"),
        # "us" would find the US in every country's passages; of "the US" no word is lost
        ("Tell us of India.", "Tell us of India.", "Tell of India."),
        ("Is the US big?", "Is the USA big?", "Is the USA big?"),
    ],
)
def test_what_was_said_is_searched_for_where_the_rewrite_lost_words(
    utterance: str, question: str, searched: str
) -> None:
    assert search_text(Turn(utterance, question=question, rewritten=utterance != question)) == searched


def test_what_could_stand_alone_is_not_asked_behind_the_question_before(parts: Parts) -> None:
    said = "And which foods of all that there are hold the most protein?"
    turn = asked(scripted(parts, "Lentils do.", DRAFT, "Lentils are rich in protein."), Turn(said, (EARLIER,)))
    assert (turn.question, turn.rewritten) == (said, False)


def test_an_item_that_is_named_by_its_place_is_put_to_the_model(parts: Parts) -> None:
    listed = Exchange("Name two tips.", "Name two tips.", "- eat lentils\n- drink water")
    prompts: list[str] = []

    def nothing(messages: Messages) -> str:
        prompts.append(messages[-1].content)
        return ""

    turn = asked(scripted(parts, nothing, DRAFT, "Lentils are rich in protein."), Turn("Why the first one?", (listed,)))
    assert 'A: Why "eat lentils"?' in prompts[0]
    assert turn.question == 'Why "eat lentils"?'
    assert turn.rewritten


def test_the_same_question_again_is_not_taken_for_a_repetition(parts: Parts) -> None:
    replies = ("What are good diets?", DRAFT, "Lentils are rich in protein.")
    assert not asked(scripted(parts, *replies), Turn("What are good diets?", (EARLIER,))).rewritten


def test_two_loops_feed_the_digests_back(parts: Parts) -> None:
    parts = scripted(parts, "First draft.", "Second draft.", "Lentils are rich in protein.")
    turn = asked(parts, Turn("What is a good diet?", choices=Choices(loops=2)))
    assert turn.draft == "Second draft."
    assert isinstance(parts.llm, ScriptedLLM)
    assert "Lentils are rich in protein." in parts.llm.prompts[1][-1].content
    assert "Lentils are rich in protein." not in parts.llm.prompts[0][-1].content


@pytest.mark.parametrize("after", [1, 2, 3, 5, 8, 13, 21])
def test_stopping_keeps_what_was_written(parts: Parts, after: int) -> None:
    stop = Event()
    replies = (DRAFT, "Lentils are rich in protein. Oat drink holds no lactose.")
    for seen, turn in enumerate(flow.run(Turn("What is a good diet?"), scripted(parts, *replies), stop), 1):
        if seen == after:
            stop.set()
            written = turn.answer.text if turn.answer else ""
    assert turn.status == "stopped"
    assert (turn.answer.text if turn.answer else "").startswith(written)


def test_small_talk_that_was_stopped_says_so(parts: Parts) -> None:
    stop = Event()
    for turn in flow.run(Turn("Hello!"), scripted(parts, "Hello! What can I do for you?"), stop):
        if turn.answer:
            stop.set()
    assert (turn.intent, turn.status) == ("small_talk", "stopped")
    assert headline(turn).startswith("Stopped. Without the library, ")
    assert headline(replace(turn, status="done")).startswith("Answered without the library, ")


def test_every_step_has_a_name_for_people(parts: Parts) -> None:
    turn = asked(scripted(parts, DRAFT, *["unknown"] * 5), Turn("Which drink holds no lactose?"))
    stages = (*flow.OPENING_STAGES, *flow.TALK, *flow.QUESTION)
    assert {*turn.timings, *(stage.name for stage in stages)} <= set(STEP_TITLES)
    assert set(STEP_ACTIVITIES) == {"load", *STEP_TITLES}


def test_what_each_step_cost_is_noted_once(parts: Parts) -> None:
    parts = scripted(parts, DRAFT, *["unknown"] * 5)
    turn = asked(parts, Turn("Who won the World Cup?"))
    assert {"draft", "answer", "fallback"} <= set(turn.spent)
    assert turn.spent["draft"].completion == len(DRAFT.split())
    assert turn.tokens.completion == len(DRAFT.split()) + 5
    assert all(seconds >= 0 for seconds in turn.timings.values())


@pytest.mark.parametrize("utterance", ["", "   ", "\x00\x07", "\n\t"])
def test_an_empty_message_is_refused(parts: Parts, utterance: str) -> None:
    with pytest.raises(UtteranceError, match="empty"):
        next(flow.run(Turn(utterance), parts, Event()))


def test_a_message_of_100_000_characters_is_refused_with_both_numbers(parts: Parts) -> None:
    with pytest.raises(UtteranceError, match=r"100,000 characters; at most"):
        next(flow.run(Turn("x" * 100_000), parts, Event()))


@pytest.mark.parametrize(
    ("utterance", "english"),
    [
        ("ما هي عاصمة النرويج؟", ["What is the capital of Norway?"]),
        ("ノルウェーの首都は？", ["What is the capital of Norway?"]),
        ("🥗?", []),
        ("half \ud83d emoji", []),
        ("title:[a TO b] AND (*", []),
    ],
)
def test_any_other_message_is_answered(parts: Parts, utterance: str, english: list[str]) -> None:
    parts = scripted(parts, *english, DRAFT, "Lentils are rich in protein.")
    turn = asked(parts, Turn(utterance))
    assert turn.status == "done"
    assert Turn.from_json(turn.to_json()) == turn


def test_an_unknown_strategy_lists_those_there_are(parts: Parts) -> None:
    with pytest.raises(SettingsError, match=r"concat, concat_pf"):
        next(flow.run(Turn("Hm?", choices=Choices(strategy="magic")), parts, Event()))


def test_no_passages_means_not_in_the_library(parts: Parts) -> None:
    parts = replace(scripted(parts, DRAFT, "unknown"), retriever=FixedRetriever([]))
    turn = asked(parts, Turn("What is a good diet?", choices=Choices(below="refuse")))
    assert turn.answer
    assert turn.answer.text == NOT_HELD.text


def doubting(parts: Parts, way: str, threshold: float) -> Parts:
    turn = parts.settings.turn.model_copy(update={"chat_uncertainty": way, "chat_unknown_threshold": threshold})
    return replace(parts, settings=parts.settings.model_copy(update={"turn": turn}))


def test_an_answer_that_the_model_doubts_counts_as_unknown(parts: Parts) -> None:
    replies = (DRAFT, "Lentils are rich in protein.", "unknown", "unknown", "Oat drink holds no lactose.")
    # whether the passages hold the first answer, then the fallback's
    choices = yes_no(0.2, 0.9)
    parts = doubting(scripted(parts, *replies, choices=choices), "holds", 0.5)
    turn = asked(parts, Turn("Which drink holds no lactose?"))
    assert turn.events == (TurnEvent("fell_back"),)
    assert [one.unknown for one in turn.pool] == [True, True, False]
    assert turn.answer
    assert turn.answer.text == "Oat drink holds no lactose. [1]"


def test_each_candidate_of_the_pool_is_doubted_alike(parts: Parts) -> None:
    replies = (DRAFT, "unknown", "Lentils, perhaps.", "Oat drink holds no lactose.", "unknown")
    parts = doubting(scripted(parts, *replies, choices=yes_no(0.1, 0.8)), "holds", 0.5)
    turn = asked(parts, Turn("Which drink holds no lactose?"))
    assert [one.unknown for one in turn.pool] == [True, False, True]
