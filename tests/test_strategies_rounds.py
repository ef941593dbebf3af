"""Strategies that reason or take several rounds, driven through two of them, and self-consistency."""

from collections.abc import Iterator
from dataclasses import replace
from threading import Event

import pytest

from assistant.protocols import Parts
from assistant.strategies.post_fusion import CHAT_MAX_TOKENS
from assistant.strategies.shared.consistency import sampled
from assistant.strategies.shared.reasoning import split
from assistant.strategies.shared.strategy import in_full, strategy_named
from assistant.types import (
    Choices,
    Citation,
    Completion,
    Confidence,
    Messages,
    Options,
    Sentence,
    Turn,
    TurnEvent,
)
from tests.conftest import ScriptedLLM
from tests.scripted import OutOfRoom, answering


def turn_of(parts: Parts, form: str = "factoid", question: str = "how much protein is in a cup of lentils") -> Turn:
    passages = tuple(parts.retriever.search(question, 3))
    return Turn(question, question=question, passages=passages, choices=Choices(form=form))


def final(step, turn: Turn, parts: Parts, stop: Event | None = None) -> Turn:
    *_, turn = step(turn, parts, stop or Event())
    return turn


def ran(name: str, parts: Parts, *replies: str, form: str = "factoid") -> tuple[Turn, ScriptedLLM]:
    llm = ScriptedLLM(list(replies))
    turn = final(answering(name), turn_of(parts, form), replace(parts, llm=llm))
    assert llm.replies == []
    return turn, llm


@pytest.mark.parametrize("name", ["pruning", "summary"])
def test_the_thought_is_kept_apart_from_the_answer(parts: Parts, name: str) -> None:
    turn, llm = ran(name, parts, "Passage 2 is about milk, so it is out.\nAnswer: 18 grams")
    assert turn.reasoning == "Passage 2 is about milk, so it is out."
    assert turn.answer
    assert (turn.answer.text, turn.answer.unknown) == ("18 grams", False)
    [prompt] = llm.prompts
    assert [message.role for message in prompt] == ["system", "user", "assistant", "user"]
    assert "[3] Walking: Walking for 30 minutes" in prompt[-1].content
    assert prompt[-1].content.endswith("Question: how much protein is in a cup of lentils")


def test_pruning_and_summary_show_different_thoughts(parts: Parts) -> None:
    pruning, summary = (ran(name, parts, "Answer: x")[1].prompts[0] for name in ("pruning", "summary"))
    assert "rule out" in pruning[0].content
    assert "sum up" in summary[0].content
    assert pruning[2] != summary[2]
    assert pruning[1] == summary[1]


@pytest.mark.parametrize("name", ["pruning", "summary"])
def test_a_thought_may_end_in_unknown(parts: Parts, name: str) -> None:
    turn, _ = ran(name, parts, "None of them says it.\nAnswer: unknown")
    assert turn.answer
    assert turn.answer.unknown


@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        ("It is 3.\nAnswer: 82.5 metres", "It is 3.", "82.5 metres"),
        ("It is 3.\n**Answer:** 82.5 metres", "It is 3.", "82.5 metres"),
        ("Final answer: Oslo", "", "Oslo"),
        ("The answer: no.\nAnswer: Oslo\nAnswer: Bergen", "The answer: no.\nAnswer: Oslo", "Bergen"),
        ("The answer is in passage 3", "The answer is in passage 3", ""),
        ("Answer:", "", ""),
    ],
)
def test_the_last_label_divides_thought_and_answer(text: str, thought: str, answer: str) -> None:
    assert split(text) == (thought, answer)


@pytest.mark.parametrize("said", ["18 grams", "Answer: 18 grams"])
def test_a_model_that_forgets_the_label_is_asked_for_the_answer_alone(parts: Parts, said: str) -> None:
    thought = "Passage 1 gives the protein, so it is the answer."
    turn, llm = ran("summary", parts, thought, said)
    assert turn.reasoning == thought
    assert turn.answer
    assert turn.answer.text == "18 grams"
    assert [message.role for message in llm.prompts[1][-2:]] == ["assistant", "user"]
    assert llm.prompts[1][-2].content == thought
    assert llm.prompts[1][:-2] == llm.prompts[0]


def test_an_answer_that_ran_out_of_room_ends_with_a_whole_sentence(parts: Parts) -> None:
    def last(*replies: str) -> tuple[Turn, OutOfRoom]:
        llm = OutOfRoom(list(replies))
        return final(answering("pruning"), turn_of(parts, "chat"), replace(parts, llm=llm)), llm

    turn, llm = last("Passage 1.\nAnswer: A cup of lentils holds 18 grams of protein. That is")
    assert turn.answer
    assert turn.answer.text.startswith("A cup of lentils holds 18 grams of protein.")
    assert "That is" not in turn.answer.text
    # where not even one is whole, the answer alone is asked for
    turn, llm = last("Passage 1.\nAnswer: A cup of", "Lentils hold 18 grams of protein. They also")
    assert len(llm.prompts) == 2
    assert turn.answer
    assert turn.answer.text.startswith("Lentils hold 18 grams of protein.")
    assert "also" not in turn.answer.text


def test_a_thought_without_an_answer_may_end_unknown(parts: Parts) -> None:
    turn, _ = ran("pruning", parts, "No passage is left.", "unknown")
    assert turn.answer
    assert turn.answer.unknown


def test_a_thought_that_is_stopped_has_no_answer(parts: Parts) -> None:
    stop = Event()
    turns = answering("pruning")(turn_of(parts), replace(parts, llm=ScriptedLLM(["a b c d"])), stop)
    next(turns)
    stop.set()
    *_, turn = turns
    assert turn.reasoning == "a"
    assert turn.answer is None


def test_chat_answers_of_a_thought_are_cited(parts: Parts) -> None:
    turn, llm = ran(
        "pruning",
        parts,
        "Only lentils are left.\nAnswer: A cup of cooked lentils holds 18 grams of protein.",
        form="chat",
    )
    assert turn.answer
    assert turn.answer.text == "A cup of cooked lentils holds 18 grams of protein. [1]"
    assert [citation.passage_id for citation in turn.citations] == ["p1"]
    assert "- Lactose: " in llm.prompts[0][-1].content


def test_the_distiller_reads_only_passages_that_gave_an_answer(parts: Parts) -> None:
    turn, llm = ran("pf_concat", parts, "18 grams", "unknown", "30 minutes", "18 grams")
    assert [(c.text, c.votes) for c in turn.pool] == [("18 grams", 1), ("unknown", 0), ("30 minutes", 1)]
    second = llm.prompts[-1][-1].content
    assert "Lentils" in second
    assert "Walking" in second
    assert "Lactose" not in second
    assert "Candidate answers: 18 grams; 30 minutes\n" in second
    assert turn.answer
    assert (turn.answer.text, turn.answer.unknown, turn.answer.origin) == ("18 grams", False, "passages")


@pytest.mark.parametrize("name", ["post_fusion", "pf_concat", "re_rag"])
def test_a_title_that_is_copied_is_no_part_of_an_answer(parts: Parts, name: str) -> None:
    turn = turn_of(parts, "factoid")
    copied = [f"{passage.title}: {said}" for passage, said in zip(turn.passages, ("unknown", "18 grams"), strict=False)]
    parts = replace(parts, llm=ScriptedLLM([*copied, *["unknown"] * 3, "18 grams"]))
    last = final(answering(name), turn, parts)
    known = [one.text for one in last.pool if not one.unknown]
    assert known == ["18 grams"]


@pytest.mark.parametrize(("tokens", "room"), [(160, CHAT_MAX_TOKENS), (20, 20)])
@pytest.mark.parametrize("name", ["post_fusion", "pf_concat", "re_rag"])
def test_a_passage_alone_is_given_no_more_room_than_an_answer(parts: Parts, name: str, tokens: int, room: int) -> None:
    rooms = []

    class Roomy(ScriptedLLM):
        def complete(self, batch, options: Options, stop: Event) -> list[Completion]:
            rooms.append(options.max_tokens)
            return super().complete(batch, options, stop)

    settings = parts.settings.model_copy(
        update={"turn": parts.settings.turn.model_copy(update={"max_answer_tokens": tokens})}
    )
    parts = replace(parts, settings=settings, llm=Roomy(["Lentils hold 18 grams of protein."] * 4))
    final(answering(name), turn_of(parts, "chat"), parts)
    assert set(rooms) == {room}


def test_the_distiller_names_equal_candidates_once(parts: Parts) -> None:
    _, llm = ran("pf_concat", parts, "18 grams", "The 18 grams.", "20 grams", "18 grams")
    assert "Candidate answers: 18 grams; 20 grams\n" in llm.prompts[-1][-1].content


def test_the_distiller_has_no_second_round_when_no_passage_answers(parts: Parts) -> None:
    turn, llm = ran("pf_concat", parts, *["unknown"] * 3)
    assert len(llm.prompts) == 3
    assert turn.answer
    assert turn.answer.unknown


def test_the_distiller_may_still_not_know(parts: Parts) -> None:
    turn, _ = ran("pf_concat", parts, "18 grams", "unknown", "unknown", "unknown")
    assert turn.answer
    assert turn.answer.unknown
    assert len(turn.pool) == 3


def test_the_distiller_in_chat_form(parts: Parts) -> None:
    said = "A cup of cooked lentils holds 18 grams of protein."
    turn, llm = ran("pf_concat", parts, said, "unknown", "unknown", said, form="chat")
    assert f"First answers:\n- {said}\n" in llm.prompts[-1][-1].content
    assert turn.answer
    assert turn.answer.text == f"{said} [1]"


class Dice(ScriptedLLM):
    """Keeps the options that it is called with."""

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        self.options = [*getattr(self, "options", []), options]
        return super().stream(messages, options, stop)


def consistent(name: str, samples: int, parts: Parts, *replies: str, form: str = "factoid") -> tuple[Turn, Dice]:
    llm = Dice(list(replies))
    step = in_full(sampled(strategy_named(name), samples, seed=7))
    turn = final(step, turn_of(parts, form), replace(parts, llm=llm))
    assert llm.replies == []
    return turn, llm


def test_samples_of_concat_vote_with_their_answers(parts: Parts) -> None:
    turn, llm = consistent("concat", 4, parts, "20 grams", "unknown", "18 grams", "18 Grams.")
    assert [candidate.votes for candidate in turn.pool] == [1, 0, 2, 2]
    assert turn.answer
    assert (turn.answer.text, turn.answer.unknown) == ("18 grams", False)
    assert [(options.seed, options.temperature) for options in llm.options] == [(7 + n, 0.7) for n in range(4)]


def test_samples_of_post_fusion_vote_with_all_their_pools(parts: Parts) -> None:
    replies = ["18 grams", "unknown", "30 minutes", "20 grams", "unknown", "30 minutes"]
    turn, llm = consistent("post_fusion", 2, parts, *replies)
    assert len(turn.pool) == 2 * 3
    assert turn.answer
    assert turn.answer.text == "30 minutes"
    assert {options.seed for options in llm.options} == {7, 8}


def test_samples_of_the_fallback_are_taken_of_each_of_its_two_rounds(parts: Parts) -> None:
    unknown = ["unknown"] * 2
    turn, _ = consistent("concat_pf", 2, parts, *unknown, "18 grams", "unknown", "2 cups", "30 minutes", *unknown)
    assert len(turn.pool) == 2 * 3
    assert turn.answer
    assert turn.answer.text == "18 grams"
    assert turn.events == (TurnEvent("fell_back"),)


def test_samples_of_which_one_knows_need_no_second_round(parts: Parts) -> None:
    turn, _ = consistent("concat_pf", 3, parts, "unknown", "18 grams", "unknown")
    assert [candidate.votes for candidate in turn.pool] == [0, 1, 0]
    assert turn.answer
    assert turn.answer.text == "18 grams"
    assert turn.events == ()


def test_samples_that_all_do_not_know_are_unknown(parts: Parts) -> None:
    turn, _ = consistent("concat", 2, parts, "unknown", "Unknown.")
    assert turn.answer
    assert turn.answer.unknown


def test_the_winning_chat_sample_is_the_answer(parts: Parts) -> None:
    said = "A cup of cooked lentils holds 18 grams of protein."
    turn, _ = consistent("concat", 3, parts, "Walking is good for the heart.", said, said, form="chat")
    assert turn.answer
    assert turn.answer.text == said


def test_where_answers_are_weighed_the_samples_vote_and_not_their_pools(parts: Parts) -> None:
    # of each sample the first passage's answer weighs most, and two of three passages say something else
    answers = ["18 grams", "milk", "milk"]
    knobs = parts.settings.relevance.model_copy(update={"rerank_top_k": 3})
    weighing = replace(
        parts, llm=ScriptedLLM(answers * 2), settings=parts.settings.model_copy(update={"relevance": knobs})
    )
    turn = turn_of(parts)
    confidences = (0.9, 0.2, 0.2)
    judged = tuple(replace(p, confidence=c) for p, c in zip(turn.passages, confidences, strict=False))
    turn = replace(
        turn, passages=judged, choices=replace(turn.choices, form="factoid"), confidence=Confidence(0.9, 0.2, "sure")
    )
    *_, last = in_full(sampled(strategy_named("re_rag"), 2, seed=0))(turn, weighing, Event())
    assert last.answer
    assert last.answer.text == "18 grams"


def test_a_stopped_vote_is_not_held(parts: Parts) -> None:
    stop = Event()
    step = in_full(sampled(strategy_named("concat"), 3, seed=0))
    turns = step(turn_of(parts), replace(parts, llm=ScriptedLLM(["18 grams of protein"] * 3)), stop)
    next(turns)
    stop.set()
    *_, turn = turns
    assert turn.pool == ()


@pytest.mark.parametrize(
    ("replies", "second"),
    [(["18 grams", "18 grams.", "30 minutes"], "30 minutes"), (["18 grams", "18 grams.", "unknown"], "18 grams.")],
)
def test_the_second_answer_is_another_one_where_there_is_another(parts: Parts, replies: list[str], second: str) -> None:
    turn, _ = ran("post_fusion", parts, *replies)
    again = final(strategy_named("post_fusion").retry, turn, parts)
    assert turn.answer
    assert again.answer
    assert (turn.answer.text, again.answer.text) == ("18 grams", second)


def test_a_second_answer_comes_without_the_citations_of_the_first(parts: Parts) -> None:
    for name in ("post_fusion", "re_rag"):
        llm = ScriptedLLM(["Milk.", "Walking for 30 minutes.", "Milk."])
        turn = final(answering(name), turn_of(parts, "chat"), replace(parts, llm=llm))
        cited = replace(
            turn,
            sentences=(Sentence("Milk.", state="supported"),),
            citations=(Citation(1, turn.passages[0].id, 0, 5, "Milk.", "Oats.", 1.0),),
        )
        *_, second = strategy_named(name).retry(cited, parts, Event())
        assert second.answer != turn.answer, name
        assert (second.sentences, second.citations) == ((), ())
