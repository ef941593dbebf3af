"""The step that says a long answer again in one sentence."""

from __future__ import annotations

from dataclasses import replace
from threading import Event

from assistant.protocols import Parts
from assistant.steps import gist
from assistant.turn import QUESTION
from assistant.types import Answer, Turn
from tests.scripted import ScriptedLLM

LONG = "Lentils hold much protein. " * 80
TURN = Turn("What do lentils hold?", question="What do lentils hold?")


def test_a_long_answer_begins_with_its_gist(parts: Parts) -> None:
    llm = ScriptedLLM(["Protein, above all."])
    [turn] = gist.run(replace(TURN, answer=Answer(LONG)), replace(parts, llm=llm), Event())
    assert turn.answer == Answer(f"Protein, above all.\n\n{LONG}")
    assert LONG.strip() in llm.prompts[0][-1].content


def test_it_is_due_for_long_answers_between_answer_and_citations(parts: Parts) -> None:
    names = [stage.name for stage in QUESTION]
    assert names[names.index("answer") :][:3] == ["answer", "gist", "citations"]
    assert gist.is_due(replace(TURN, answer=Answer(LONG)), parts)
    assert not gist.is_due(replace(TURN, answer=Answer("Protein.")), parts)
    assert not gist.is_due(TURN, parts)
