"""The step that says long replies in simpler words."""

from dataclasses import replace
from threading import Event

from assistant.protocols import Parts
from assistant.steps import simpler
from assistant.types import Answer, Turn
from tests.scripted import ScriptedLLM

LONG = Turn("What is sleep?", answer=Answer("Sleep consolidates memories. " * 30))


def test_a_long_reply_is_said_in_simpler_words(parts: Parts) -> None:
    assert simpler.is_due(LONG, parts)
    llm = ScriptedLLM(["Sleep helps you remember."])
    [turn] = simpler.run(LONG, replace(parts, llm=llm), Event())
    assert turn.answer.text == "Sleep helps you remember."
    assert "consolidates" in llm.prompts[-1][-1].content


def test_a_short_one_stays() -> None:
    assert not simpler.is_due(Turn("Hi", answer=Answer("Hello.")), None)
