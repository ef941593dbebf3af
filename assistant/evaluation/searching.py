"""Finds passages for a question of an experiment, by any loop or by a part of one.

`question` searches for the question alone, `draft` for the model's draft alone; any other name is a loop. A loop runs
as it does in a turn, with few passages; its last queries are then searched again, as deep as the experiment wants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event

from assistant import variants
from assistant.retrieve.fusion import fuse
from assistant.settings import Settings
from assistant.types import Choices, Parts, Passage, Query, Retriever, Turn

ALONE = ("question", "draft")


class Finder:
    """Passages for questions. What a loop did for a question is kept, so that `draft` and `grg` run it once.

    `parts` gives what loops run with; it is not asked for it while only `question` is wanted, which needs no model.
    """

    def __init__(self, settings: Settings, retriever: Retriever, parts: Callable[[], Parts], loops: int = 1) -> None:
        self._knobs = settings.retrieve
        self._retriever = retriever
        self._parts = parts
        self._loops = loops
        self._queries: dict[tuple[str, str], tuple[Query, ...]] = {}

    def find(self, loop: str, question: str, depth: int) -> tuple[Passage, ...]:
        """At most `depth` passages, best first.

        Raises:
            SettingsError: there is no such loop.
        """
        queries = self.queries(loop, question)
        rankings = {query.name: self._retriever.search(query.text, depth) for query in queries}
        return tuple(fuse(rankings, depth, self._knobs.rrf))

    def queries(self, loop: str, question: str) -> tuple[Query, ...]:
        """What is searched for.

        Raises:
            SettingsError: there is no such loop.
        """
        if loop == "question":
            return (Query("question", question),)
        if loop == "draft":
            return tuple(query for query in self._run("grg", question) if query.name == "draft")
        return self._run(loop, question)

    def _run(self, loop: str, question: str) -> tuple[Query, ...]:
        if (loop, question) not in self._queries:
            choices = Choices(loop=loop, k=self._knobs.k, loops=self._loops)
            turn = Turn(question, question=question, choices=choices)
            *_, turn = variants.step("loops", loop)(turn, self._parts(), Event())
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
