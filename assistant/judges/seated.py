"""Judges that wait until their turn has a seat at the language model, as the turn's requests to the model do.

Judges keep all cores busy. If many people ask at once, only turns that have a seat are judged, so that the others get
their first sources as fast as if they were alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Event

from assistant.protocols import Estimator, Parts, SuitabilityJudge, SupportJudge
from assistant.types import Claim, Passage, Relevance, Verdict

# Returns once the turn has a seat, or is stopped.
Wait = Callable[[Event], None]


def seated(parts: Parts, wait: Wait) -> Parts:
    """The parts, with judges that `wait` before they read anything."""
    estimator, support, suitability = parts.estimator, parts.support, parts.suitability
    return replace(
        parts,
        estimator=estimator and (lambda llm: _Estimator(estimator(llm), wait)),
        support=support and (lambda llm: _Support(support(llm), wait)),
        suitability=suitability and _Suitability(suitability, wait),
    )


class _Estimator:
    def __init__(self, estimator: Estimator, wait: Wait) -> None:
        self.name, self.calibration = estimator.name, estimator.calibration
        self._estimator, self._wait = estimator, wait

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
        self._wait(stop)
        return self._estimator.estimate(question, passages, stop)


@dataclass(frozen=True, slots=True)
class _Support:
    judged: SupportJudge
    wait: Wait

    @property
    def threshold(self) -> float:
        return self.judged.threshold

    def judge(self, claims: Sequence[Claim], stop: Event) -> list[Verdict]:
        self.wait(stop)
        return self.judged.judge(claims, stop)


@dataclass(frozen=True, slots=True)
class _Suitability:
    judged: SuitabilityJudge
    wait: Wait

    @property
    def threshold(self) -> float:
        return self.judged.threshold

    def clashes(self, facts: Sequence[str], texts: Sequence[str], stop: Event, question: str = "") -> list[list[float]]:
        self.wait(stop)
        return self.judged.clashes(facts, texts, stop, question)
