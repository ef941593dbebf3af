"""The Protocols that the parts of a turn implement, and `Parts`, the bundle of parts that a turn is run with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Protocol

from assistant.settings import Backend, Settings
from assistant.types import Choice, Claim, Completion, Messages, Options, Passage, Relevance, Turn, Verdict

if TYPE_CHECKING:  # processes that read a document are many, and need none of it
    import numpy as np
    from numpy.typing import NDArray


class LLM(Protocol):
    """Chat in, text out. `stop` is checked between tokens; once set, what was generated so far is kept.

    `can_score` says whether it can compute the likelihood of a text; otherwise `score` raises an error.
    """

    name: str
    context: int
    can_score: bool

    def count(self, messages: Messages) -> int:
        """The number of tokens in the prompt that is made of these messages."""
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

        Texts that were not scored because `stop` was set get minus infinity.

        Raises:
            ModelError: the model can't score (`can_score` is False).
        """
        ...


class Engine(LLM, Protocol):
    """A loaded LLM: in this process, in a process of its own, or on a server. `backend` names what runs it."""

    backend: Backend

    def close(self) -> None:
        """Unload the model. Calls under way end first or fail; later ones fail. Closing twice does nothing."""
        ...


class Embedder(Protocol):
    """Sentence embeddings. Hashable, so that classifiers trained on its vectors can be cached by it."""

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
    """A callback that is told how far a long task has come."""

    def __call__(self, done: int, total: int) -> None:
        """`done` of `total` units (bytes, documents) are ready."""
        ...


def silent(done: int, total: int) -> None:
    """A `Progress` that shows nothing."""


class Estimator(Protocol):
    """Estimates how relevant passages are to a question. `name` identifies it in calibrations and results.

    `calibration` says in a few words how its confidences were calibrated; "" if they were not.
    """

    name: str
    calibration: str

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
        """One estimate for each passage, in order; r = 0.5 and s = 0 for those not read because `stop` was set."""
        ...


# Makes the estimator for a turn: one that asks a language model gets the turn's own, whose tokens are counted.
EstimatorOf = Callable[[LLM], Estimator]


class SupportJudge(Protocol):
    """Judges whether evidence supports claims. Safe to call from several threads."""

    @property
    def threshold(self) -> float:
        """The lowest probability at which a claim counts as supported."""
        ...

    def judge(self, claims: Sequence[Claim], stop: Event) -> list[Verdict]:
        """One verdict for each claim, in order; claims not judged because `stop` was set count as not supported."""
        ...


class SuitabilityJudge(Protocol):
    """Judges whether texts clash with what a person said about themselves. Safe to call from several threads."""

    @property
    def threshold(self) -> float:
        """The lowest value at which a fact and a text count as a clash."""
        ...

    def clashes(self, facts: Sequence[str], texts: Sequence[str], stop: Event, question: str = "") -> list[list[float]]:
        """How likely each fact clashes with each text, in [0, 1]: a row for each fact; 0 for pairs that `stop` cut off.

        With a `question` the texts are judged as the reply to it, or as a part of that.

        Raises:
            ModelError: the judge can't be used.
        """
        ...


# Makes the judge for a turn: one that asks a language model gets the turn's own, whose tokens are counted.
SupportJudgeOf = Callable[[LLM], SupportJudge]


@dataclass(frozen=True)
class Parts:
    """What a turn is run with.

    Without an `estimator` the relevance of passages is unknown; without a judge of `support` sentences stay unchecked;
    without one of `suitability` nothing is left out. A judge that is set but could not be loaded raises a ModelError
    when it is asked.
    """

    settings: Settings
    llm: LLM
    embedder: Embedder
    retriever: Retriever
    estimator: EstimatorOf | None = None
    support: SupportJudgeOf | None = None
    suitability: SuitabilityJudge | None = None


class Step(Protocol):
    """A step, a loop or a strategy: takes the turn and yields it as it grows. Being stopped is not an error."""

    def __call__(self, turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
        """Snapshots of the turn, the last one with all that this step adds."""
        ...
