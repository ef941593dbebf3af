"""What the parts of a turn must be able to do, and `Parts` itself: all that a turn is run with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from assistant.settings import Backend, Settings
from assistant.types import Choice, Claim, Completion, Messages, Options, Passage, Relevance, Turn, Verdict


class LLM(Protocol):
    """Chat in, text out. `stop` is checked between tokens; once set, what was generated so far is kept.

    `can_score` says whether it can tell how likely a given text is; `score` fails where it can't.
    """

    name: str
    context: int
    can_score: bool

    def count(self, messages: Messages) -> int:
        """Tokens of the prompt that these messages make."""
        ...

    def stream(self, messages: Messages, options: Options, stop: Event) -> Iterator[Completion]:
        """The completion as it grows; the last one has `finish` set."""
        ...

    def complete(self, batch: Sequence[Messages], options: Options, stop: Event) -> list[Completion]:
        """One completion for each prompt, in order."""
        ...

    def choose(self, batch: Sequence[Messages], words: tuple[str, ...], stop: Event) -> list[Choice]:
        """For each prompt, how likely each of `words` is as the reply, normalised over the words."""
        ...

    def score(self, batch: Sequence[tuple[Messages, str]], stop: Event) -> list[float]:
        """For each (prompt, text): the sum of the text's natural-log token probabilities after the prompt.

        Those that `stop` overtook get minus infinity.

        Raises:
            ModelError: it can't tell (`can_score` is False).
        """
        ...


class Engine(LLM, Protocol):
    """An LLM as it is loaded: in this process, in one of its own, or at a server. `backend` names what runs it."""

    backend: Backend

    def close(self) -> None:
        """Unload the model. Calls under way end first or fail; later ones fail. Closing twice does nothing."""
        ...


class Embedder(Protocol):
    """Sentence embeddings. Hashable, since what was learned from its vectors is kept by it."""

    name: str

    def __hash__(self) -> int: ...

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), dimension), each row of length 1, so that a dot product is the cosine."""
        ...


class Retriever(Protocol):
    """Finds passages. Safe to call from several threads."""

    def search(self, query: str, k: int) -> list[Passage]:
        """At most `k` passages, best first."""
        ...


class Progress(Protocol):
    """Told how far a long task is."""

    def __call__(self, done: int, total: int) -> None:
        """`done` of `total` units (bytes, documents) are ready."""
        ...


def silent(done: int, total: int) -> None:
    """A `Progress` that shows nothing."""


class Estimator(Protocol):
    """Tells how relevant passages are to a question. `name` is kept with what was calibrated for it.

    `calibration` says how its confidences were calibrated, in a few words; "" if they were not.
    """

    name: str
    calibration: str

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
        """One estimate for each passage, in order. Passages that `stop` overtook get even odds (r = 0.5, s = 0)."""
        ...


# One that asks a language model is given the turn's own, which counts its tokens.
EstimatorOf = Callable[[LLM], Estimator]


class SupportJudge(Protocol):
    """Tells what is supported. Safe to call from several threads."""

    @property
    def threshold(self) -> float:
        """The probability from which on a claim counts as supported."""
        ...

    def judge(self, claims: Sequence[Claim], stop: Event) -> list[Verdict]:
        """One verdict a claim, in order; what `stop` overtook counts as not supported."""
        ...


class SuitabilityJudge(Protocol):
    """Tells what clashes with what a person said of themselves. Safe to call from several threads."""

    @property
    def threshold(self) -> float:
        """From which on a pair counts as a clash."""
        ...

    def clashes(self, facts: Sequence[str], texts: Sequence[str], stop: Event) -> list[list[float]]:
        """How surely each fact clashes with each text, in [0, 1]: a row a fact; what `stop` overtook has 0.

        Raises:
            ModelError: the judge can't be used.
        """
        ...


# One that asks a language model is given the turn's own, which counts its tokens.
SupportJudgeOf = Callable[[LLM], SupportJudge]


@dataclass(frozen=True)
class Parts:
    """What a turn is run with.

    Without an `estimator` nobody says how relevant the passages are; without a judge of `support` sentences stay
    unchecked; without one of `suitability` nothing is left out. One that the settings name and that could not be loaded
    raises a ModelError when it is asked.
    """

    settings: Settings
    llm: LLM
    embedder: Embedder
    retriever: Retriever
    estimator: EstimatorOf | None = None
    support: SupportJudgeOf | None = None
    suitability: SuitabilityJudge | None = None


class Step(Protocol):
    """A step, a loop or a strategy: takes the turn, yields it as it grows. Raises no error for being stopped."""

    def __call__(self, turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
        """Snapshots of the turn, the last one with all that this step adds."""
        ...
