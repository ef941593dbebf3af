"""Finds passages for a question of an experiment, by any loop or by a part of one.

`question` searches for the question alone, `draft` for the model's draft alone; any other name is a loop. A loop runs
as it does in a turn, with few passages; its last queries are then searched again, as deep as the experiment wants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import Event

from assistant import variants
from assistant.retrieve.search import look
from assistant.types import Choices, Parts, Passage, Query, Turn

ALONE = ("question", "draft")


class Finder:
    """Passages for questions. What a loop did for a question is kept, so that `draft` and `grg` run it once."""

    def __init__(self, parts: Parts, loops: int = 1) -> None:
        self._parts = parts
        self._loops = loops
        self._queries: dict[tuple[str, str], tuple[Query, ...]] = {}

    def find(self, loop: str, question: str, depth: int) -> tuple[Passage, ...]:
        """At most `depth` passages, best first.

        Raises:
            SettingsError: there is no such loop.
        """
        knobs = self._parts.settings.retrieve.model_copy(update={"depth": depth})
        deep = replace(self._parts, settings=self._parts.settings.model_copy(update={"retrieve": knobs}))
        turn = Turn(question, question=question, choices=Choices(k=depth))
        return look(turn, deep, *self._asked(loop, question)).passages

    def _asked(self, loop: str, question: str) -> tuple[Query, ...]:
        if loop == "question":
            return (Query("question", question),)
        if loop == "draft":
            return tuple(query for query in self._run("grg", question) if query.name == "draft")
        return self._run(loop, question)

    def _run(self, loop: str, question: str) -> tuple[Query, ...]:
        if (loop, question) not in self._queries:
            choices = Choices(loop=loop, k=self._parts.settings.retrieve.k, loops=self._loops)
            turn = Turn(question, question=question, choices=choices)
            *_, turn = variants.step("loops", loop)(turn, self._parts, Event())
            self._queries[loop, question] = turn.queries
        return self._queries[loop, question]


def check_loops(names: Sequence[str]) -> None:
    """Refuse a name that is no loop, before anything is loaded.

    Raises:
        SettingsError: there is no such loop; the message lists those there are.
    """
    for name in names:
        if name not in ALONE:
            variants.step("loops", name)
