"""Loops that search for more than the question: its aspects, again where nothing sure was found, in two steps."""

from __future__ import annotations

from dataclasses import replace
from threading import Event
from types import ModuleType

import pytest

from assistant.loops import aspects, corrective, decompose
from assistant.protocols import Parts
from assistant.types import Turn
from tests.scripted import ScriptedLLM
from tests.test_grg import ASKED, ByWord, Sure

WRITTEN = "- lentils\nlentils\ntofu\n\noats"


def run(loop: ModuleType, parts: Parts, reply: str, **changed: object) -> tuple[Turn, list[str]]:
    parts = replace(parts, llm=ScriptedLLM([reply]), retriever=ByWord(), **changed)
    *_, turn = loop.run(replace(ASKED, facts=()), parts, Event())
    return turn, [query.text for query in turn.queries]


def test_aspects_are_searched_for_beside_the_question_each_once(parts: Parts) -> None:
    turn, queries = run(aspects, parts, WRITTEN)
    assert queries == [ASKED.question, "lentils", "tofu"]
    assert [query.name for query in turn.queries] == ["question", "aspect 1", "aspect 2"]
    assert run(aspects, parts, " ")[1] == [ASKED.question]


@pytest.mark.parametrize(("sure", "searched"), [(0.9, 1), (0.3, 3), (0.001, 2)])
def test_the_search_is_corrected_where_nothing_sure_was_found(parts: Parts, sure: float, searched: int) -> None:
    _, queries = run(corrective, parts, WRITTEN, estimator=lambda _: Sure(sure))
    assert len(queries) == searched
    assert (ASKED.question in queries) == (sure > 0.01)


@pytest.mark.parametrize(("written", "more"), [("lentils", ["lentils"]), ("None.", []), ("what is a good diet", [])])
def test_what_is_missing_is_searched_for_once(parts: Parts, written: str, more: list[str]) -> None:
    assert run(decompose, parts, written)[1] == [ASKED.question, *more]
