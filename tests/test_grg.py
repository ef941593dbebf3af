"""Generate-Retrieve-Generate: its fluent prompt, its history, and what a further loop searches for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from assistant import turn as flow
from assistant.evaluation.searching import Finder
from assistant.experiment.conditions import always_drafting
from assistant.loops import grg, grg_draft
from assistant.protocols import Parts
from assistant.settings import load
from assistant.types import Choices, Exchange, Message, Passage, RankedFact, Relevance, Turn
from tests.scripted import ScriptedLLM

FACTS = (
    RankedFact("1", "I'm vegetarian.", 0.6, used=True),
    RankedFact("2", "I'm lactose intolerant.", 0.5, used=True),
    RankedFact("3", "I have a dog.", 0.1, used=False),
)
ASKED = Turn("What is a good diet?", question="What is a good diet?", facts=FACTS, choices=Choices(k=1))
PASSAGES = {word: Passage(word, word, f"All about {word}.") for word in ("diet", "lentils", "tofu", "oats")}


class ByWord:
    """Finds the passages whose word the query holds, and remembers the queries."""

    def __init__(self) -> None:
        self.queries: list[str] = []

    def search(self, query: str, k: int) -> list[Passage]:
        self.queries.append(query)
        return [passage for word, passage in PASSAGES.items() if word in query.lower()][:k]


def looped(parts: Parts, turn: Turn, *drafts: str, stop: Event | None = None) -> tuple[list[Turn], Parts]:
    parts = replace(parts, llm=ScriptedLLM(list(drafts)), retriever=ByWord())
    return list(grg.run(turn, parts, stop or Event())), parts


def test_facts_and_question_are_one_fluent_prompt(parts: Parts) -> None:
    _, parts = looped(parts, ASKED, "Lentils.")
    [prompt] = parts.llm.prompts
    assert prompt[-1] == Message("user", "I'm vegetarian. I'm lactose intolerant. What is a good diet?")
    _, parts = looped(parts, replace(ASKED, facts=()), "Lentils.")
    assert parts.llm.prompts[0][-1].content == "What is a good diet?"


def test_the_history_is_what_the_turn_was_given(parts: Parts) -> None:
    canonical = Exchange("Can you help me with my diet?", "Can you help me with my diet?", "Sure, gladly.")
    _, parts = looped(parts, replace(ASKED, history=(canonical,)), "Lentils.")
    roles = [(message.role, message.content) for message in parts.llm.prompts[0][1:3]]
    assert roles == [("user", canonical.utterance), ("assistant", canonical.reply)]


def test_the_draft_of_a_chat_sees_the_last_exchange_and_that_of_the_paper_all_that_fit(parts: Parts) -> None:
    long = "I eat bread and cheese every day. " * 20
    history = tuple(Exchange(f"Number {n}.", f"Number {n}.", long) for n in range(4))
    asked = replace(ASKED, history=history)
    _, chat = looped(parts, asked, "Lentils.")
    seen = [message.content for message in chat.llm.prompts[0][1:-1]]
    assert seen[0] == "Number 3."
    assert len(seen) == 2
    assert len(seen[1]) <= 200
    paper = replace(parts, settings=always_drafting(parts.settings))
    _, paper = looped(paper, asked, "Lentils.")
    seen = [message.content for message in paper.llm.prompts[0][1:-1]]
    assert seen == [text.strip() for one in history for text in (one.utterance, one.reply)]
    # four replies of 140 words each and a draft of 48 tokens: three of them fit into 520
    small = replace(paper, llm=ScriptedLLM(["Lentils."], context=520), retriever=ByWord())
    *_, turn = grg.run(asked, small, Event())
    assert [message.content for message in small.llm.prompts[0][1:-1:2]] == ["Number 1.", "Number 2.", "Number 3."]
    assert turn.cuts == ("the oldest exchange (1)",)


@pytest.mark.parametrize("loops", [1, 2])
def test_the_papers_loop_searches_for_the_draft_alone(parts: Parts, loops: int) -> None:
    drafts = ["Eat lentils.", "Eat tofu."][:loops]
    parts = replace(parts, llm=ScriptedLLM(list(drafts)), retriever=ByWord())
    *_, turn = grg_draft.run(replace(ASKED, choices=Choices(loop="grg_draft", loops=loops, k=4)), parts, Event())
    assert parts.retriever.queries == drafts
    assert [(query.name, query.text) for query in turn.queries] == [("draft", drafts[-1])]
    assert [passage.id for passage in turn.passages] == [drafts[-1].split()[1].rstrip(".")]


def test_where_the_model_has_no_draft_the_question_is_searched_for(parts: Parts) -> None:
    parts = replace(parts, llm=ScriptedLLM(["  "]), retriever=ByWord())
    *_, turn = grg_draft.run(ASKED, parts, Event())
    assert [query.name for query in turn.queries] == ["question"]
    assert [passage.id for passage in turn.passages] == ["diet"]


def test_a_whole_turn_runs_with_the_papers_loop(parts: Parts) -> None:
    parts = replace(parts, llm=ScriptedLLM(["Eat lentils.", "All about lentils."]), retriever=ByWord())
    asked = Turn("What is a good diet?", choices=Choices("concat", "grg_draft", k=1))
    *_, turn = flow.run(asked, parts, Event())
    assert turn.status == "done"
    assert turn.answer
    assert turn.answer.text.startswith("All about lentils.")
    assert [citation.passage_id for citation in turn.citations] == ["lentils"]


def test_the_papers_settings_are_a_file() -> None:
    found = load(Path(__file__).parents[1] / "docs/results/settings/grg-paper.toml")
    assert (found.turn.loop, found.turn.max_draft_tokens, found.turn.digest_order) == ("grg_draft", 200, "score")


@pytest.mark.parametrize("loops", [1, 2, 3])
def test_each_loop_searches_for_its_own_draft(parts: Parts, loops: int) -> None:
    drafts = ["Eat lentils.", "Eat tofu.", "Eat oats."][:loops]
    turn = replace(ASKED, choices=Choices(loops=loops, k=4))
    snapshots, parts = looped(parts, turn, *drafts)
    last = snapshots[-1]
    searched = [query for draft in drafts for query in (turn.question, draft)]
    assert parts.retriever.queries == [turn.question, *searched]
    assert [query.text for query in last.queries] == [turn.question, drafts[-1]]
    assert {passage.id for passage in last.passages} == {"diet", drafts[-1].split()[1].rstrip(".")}
    assert last.draft == drafts[-1]
    assert set(last.timings) == ({"draft", "digests"} if loops > 1 else {"draft"})


def test_a_further_draft_is_written_from_the_digests_of_the_loop_before(parts: Parts) -> None:
    turn = replace(ASKED, choices=Choices(loops=2, k=4))
    _, parts = looped(parts, turn, "Eat lentils.", "Eat tofu.")
    first, second = (prompt[-1].content for prompt in parts.llm.prompts)
    assert "What is known so far" not in first
    assert "- All about lentils." in second
    assert second.endswith("I'm vegetarian. I'm lactose intolerant. What is a good diet?")


def test_stopped_in_the_second_loop_the_first_loops_passages_stay(parts: Parts) -> None:
    stop = Event()
    llm = ScriptedLLM(["Eat lentils.", lambda _: (stop.set(), "Eat tofu.")[1]])
    parts = replace(parts, llm=llm, retriever=ByWord())
    *_, last = grg.run(replace(ASKED, choices=Choices(loops=2, k=4)), parts, stop)
    assert {passage.id for passage in last.passages} == {"diet", "lentils"}


def test_evaluation_ranks_by_the_last_loops_draft(parts: Parts) -> None:
    retriever = ByWord()
    parts = replace(parts, llm=ScriptedLLM(["Eat lentils.", "Eat tofu."]), retriever=retriever)
    finder = Finder(parts.settings, retriever, lambda: parts, loops=2)
    assert [passage.id for passage in finder.find("draft", "What is a good diet?", 9)] == ["tofu"]
    assert {passage.id for passage in finder.find("grg", "What is a good diet?", 9)} == {"diet", "tofu"}


class Sure:
    """Gives every passage the same confidence, and counts how often it is asked."""

    name, calibration = "sure", ""

    def __init__(self, confidence: float) -> None:
        self.confidence, self.asked = confidence, 0

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
        self.asked += 1
        return [Relevance.of_confidence(self.confidence) for _ in passages]


def gated(parts: Parts, confidence: float, *replies: str) -> tuple[Turn, ScriptedLLM, Sure]:
    """A whole turn on one question, where no draft is written from a confidence of 0.6."""
    knobs = parts.settings.turn.model_copy(
        update={"draft_threshold": 0.6, "strategy": "concat", "digest": "extractive", "quote_threshold": 1.0}
    )
    llm, sure = ScriptedLLM(list(replies)), Sure(confidence)
    parts = replace(
        parts, llm=llm, retriever=ByWord(), estimator=lambda _: sure,
        settings=parts.settings.model_copy(update={"turn": knobs}),
    )  # fmt: skip
    *_, turn = flow.run(Turn("What is a good diet?", choices=Choices("concat", k=1)), parts, Event())
    return turn, llm, sure


def test_no_draft_is_written_where_the_first_search_is_sure(parts: Parts) -> None:
    turn, _, sure = gated(parts, 0.7, "All about diet.")
    assert turn.draft == ""
    assert [query.name for query in turn.queries] == ["question"]
    assert sure.asked == 1  # what the loop was told is not asked again
    assert turn.confidence
    assert turn.confidence.value == pytest.approx(0.7)


def test_a_draft_is_written_where_the_first_search_is_not_sure(parts: Parts) -> None:
    turn, _, sure = gated(parts, 0.5, "Eat lentils.", "All about diet.")
    assert turn.draft == "Eat lentils."
    assert [query.name for query in turn.queries] == ["question", "draft"]
    assert {passage.id for passage in turn.passages} <= {"diet", "lentils"}
    assert sure.asked == 2
