import pytest

from assistant.errors import UtteranceError
from assistant.prompting.budget import fit
from assistant.prompting.render import render
from assistant.types import Exchange, Passage
from tests.scripted import ScriptedLLM


def long(n: int) -> str:
    return " ".join(["word"] * n)


def test_what_fits_is_left_alone() -> None:
    messages, cuts = fit("rewrite", ScriptedLLM(), 60, history=(), facts=(), utterance="And Sweden?")
    assert cuts == ()
    assert "And Sweden?" in messages[-1].content


def test_the_oldest_exchange_goes_first() -> None:
    history = tuple(Exchange(f"question {n}", "", long(150)) for n in range(4))
    bare = ScriptedLLM().count(render("rewrite", history=(), facts=(), utterance="And Sweden?"))
    llm = ScriptedLLM(context=bare + 60 + 400)
    messages, cuts = fit("rewrite", llm, 60, history=history, facts=(), utterance="And Sweden?")
    assert cuts == ("the oldest exchange (2)",)
    assert "question 1" not in messages[-1].content
    assert "question 3" in messages[-1].content
    assert llm.count(messages) <= bare + 400


def test_then_passages_then_facts_then_the_question() -> None:
    passages = tuple(Passage(str(n), "Title", long(200)) for n in range(3))
    bare = ScriptedLLM().count(render("chat/concat", passages=passages[:1], facts=(), question=""))
    llm = ScriptedLLM(context=bare + 60 + 60)
    values = {"passages": passages, "facts": (long(100),), "question": long(100)}
    messages, cuts = fit("chat/concat", llm, 60, **values)
    assert cuts == ("the last passage (2)", "a fact (1)", "half of the question (1)")
    assert llm.count(messages) <= bare + 60


def test_a_single_passage_goes_before_the_question() -> None:
    bare = ScriptedLLM().count(render("chat/post_fusion", passage=Passage("1", "Title", ""), facts=(), question=""))
    llm = ScriptedLLM(context=bare + 60 + 150)
    passage, question = Passage("1", "Title", long(1000)), long(60)
    messages, cuts = fit("chat/post_fusion", llm, 60, passage=passage, facts=(), question=question)
    assert cuts == ("half of the passage (4)",)
    assert question in messages[-1].content
    assert llm.count(messages) <= bare + 150


def test_a_context_too_small_for_anything_is_told() -> None:
    with pytest.raises(UtteranceError, match=r"llm\.context"):
        fit("rewrite", ScriptedLLM(context=80), 60, history=(), facts=(), utterance=long(300))
