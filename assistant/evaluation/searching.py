"""Finds passages for the questions of an experiment, by a loop or by a part of one.

`question` searches for the question alone, `draft` for the model's draft alone, `generate` for the question and a text
that the model writes from its own knowledge; any other name is a loop. A loop runs as it does in a turn, with few
passages, but never ends early; its last queries are then searched again, as deep as the experiment wants.

`ranked` searches for the question and goes on as a turn does: the relevance estimator chooses the passages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from threading import Condition, Event

from cachetools import cached

from assistant import loops
from assistant.evaluation.baselines import generate
from assistant.experiment.cache import saved_seconds_of
from assistant.experiment.conditions import always_drafting
from assistant.flow.timing import charged, timed
from assistant.llm.meter import Meter
from assistant.llm.repetition import RepetitionCutter
from assistant.protocols import Parts, Retriever, Step
from assistant.retrieve.fusion import fuse
from assistant.retrieve.search import search_and_fuse
from assistant.settings import Settings
from assistant.steps import relevance
from assistant.types import Choices, Passage, Query, Turn

SINGLE_SEARCHES = ("question", "draft", "generate")
ITERATIONS = 3
BM25 = "bm25"


class Finder:
    """Passages for questions.

    A loop's turn for a question is cached, so that `draft` and `grg` run it only once, also in parallel. `parts` loads
    what loops run with; it is not called as long as only `question` is used, which needs no model. `loops` is the X of
    Generate-Retrieve-Generate, `iterations` the T of ITRG. `stop` ends loops early. A loop's cost includes the seconds
    that were saved by cached replies of the model.
    """

    def __init__(
        self,
        settings: Settings,
        retriever: Retriever,
        parts: Callable[[], Parts],
        loops: int = 1,
        iterations: int = ITERATIONS,
        stop: Event | None = None,
    ) -> None:
        self._settings = always_drafting(settings.changed(turn={"itrg_rounds": iterations, "early_stop": False}))
        self._loops, self._stop = loops, stop or Event()
        # a thread that asks for what another one is just computing waits for it
        self._parts = cached({}, condition=Condition())(parts)
        self._cached_run = cached({}, condition=Condition())(self._run_loop)
        self._search = cached({}, condition=Condition())(retriever.search)

    def find(self, loop: str, question: str, depth: int, k: int | None = None) -> tuple[Passage, ...]:
        """At most `depth` passages, best first.

        Raises:
            SettingsError: there is no such loop.
        """
        if loop == "ranked":  # what it chose is used as it is, instead of searching for its last query again
            return self.turn(loop, question, max(depth, k or 0)).passages[:depth]
        # as deep as in a turn, so that what is fused does not depend on how much of it is wanted
        search_depth = max(depth, self._settings.retrieve.fusion_depth)
        rankings = {query.name: self._search(query.text, search_depth) for query in self.queries(loop, question, k)}
        return tuple(fuse(rankings, depth, self._settings.retrieve.rrf_k))

    def queries(self, loop: str, question: str, k: int | None = None) -> tuple[Query, ...]:
        """What is searched for.

        Raises:
            SettingsError: there is no such loop.
        """
        queries = self.turn(loop, question, k).queries
        return tuple(query for query in queries if query.name == "draft") if loop == "draft" else queries

    def turn(self, loop: str, question: str, k: int | None = None) -> Turn:
        """The turn as the loop leaves it, with its cost; `k` passages are shown to what writes, by default the setting.

        Raises:
            SettingsError: there is no such loop.
        """
        if loop == "question":
            return Turn(question, question=question, queries=(Query("question", question),))
        name = "grg" if loop == "draft" else loop
        return self._cached_run(name, question, k or self._settings.retrieve.top_k_for(name))

    def _run_loop(self, name: str, question: str, k: int) -> Turn:
        # short answers, for which no passage is left out
        choices = Choices(loop=name, k=k, form="factoid", loops=self._loops)
        turn = Turn(question, question=question, choices=choices)
        llm = self._parts().llm
        parts = replace(self._parts(), settings=self._settings, llm=Meter(RepetitionCutter(llm)))
        seconds_before = saved_seconds_of(llm)
        *_, turn = timed("passages", _step(name), turn, parts, self._stop)
        return charged(turn, "passages", saved_seconds_of(llm) - seconds_before)


def check_loops(names: Sequence[str]) -> None:
    """Refuse names of loops that don't exist, before anything is loaded.

    Raises:
        SettingsError: a loop doesn't exist; the message lists those that do.
    """
    for name in names:
        if name not in SINGLE_SEARCHES:
            _step(name)


def _ranked(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """A search for the question alone, of which the relevance estimator chooses as in a turn."""
    yield from relevance.run(search_and_fuse(turn, parts, Query("question", turn.question)), parts, stop)


def _step(name: str) -> Step:
    steps: Mapping[str, Step] = {"generate": generate, "ranked": _ranked}
    return steps[name] if name in steps else loops.named(name)
