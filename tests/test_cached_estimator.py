"""What an estimator said is kept for a while, and what was stopped isn't."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

from assistant.judges.relevance import cached_estimator
from assistant.judges.relevance.cached_estimator import CachedEstimator
from assistant.types import Passage, Relevance

LENTILS, MILK, OATS = (Passage(name, name, f"{name} hold iron.") for name in ("Lentils", "Milk", "Oats"))


class Length:
    """Finds long questions and titles relevant; keeps which passages it was asked about."""

    name, calibration = "length", "none"

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
        self.asked.append([passage.id for passage in passages])
        return [Relevance.of_score(len(question) + len(passage.title)) for passage in passages]


def scores(estimator: CachedEstimator, question: str, *passages: Passage, stop: bool = False) -> list[float]:
    event = Event()
    if stop:
        event.set()
    return [one.score for one in estimator.estimate(question, passages, event)]


def test_only_what_is_new_is_asked_about() -> None:
    behind = Length()
    estimator = CachedEstimator(behind)
    assert (estimator.name, estimator.calibration) == ("length", "none")
    assert scores(estimator, "iron", LENTILS, MILK) == [11, 8]
    assert scores(estimator, "iron", OATS, MILK, OATS, LENTILS) == [8, 8, 8, 11]
    assert scores(estimator, "fibre", MILK) == [9]
    assert scores(estimator, "iron", MILK, LENTILS) == [8, 11]
    assert behind.asked == [["Lentils", "Milk"], ["Oats"], ["Milk"]]
    assert scores(estimator, "iron") == []


def test_what_was_stopped_is_asked_again() -> None:
    behind = Length()
    estimator = CachedEstimator(behind)
    scores(estimator, "iron", MILK, stop=True)
    scores(estimator, "iron", MILK)
    assert behind.asked == [["Milk"], ["Milk"]]


def test_the_oldest_go_first(monkeypatch) -> None:
    monkeypatch.setattr(cached_estimator, "MOST", 2)
    behind = Length()
    estimator = CachedEstimator(behind)
    for passage in (LENTILS, MILK, LENTILS, OATS, LENTILS, MILK):
        scores(estimator, "iron", passage)
    assert behind.asked == [["Lentils"], ["Milk"], ["Oats"], ["Milk"]]
