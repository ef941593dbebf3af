"""Measures of short answers, as SQuAD's scoring scripts and the post-fusion paper define them, with their intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from assistant.text.sentences import normalise

RESAMPLES = 2000
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def exact_match(answer: str, golds: Iterable[str]) -> float:
    """1.0 if the normalised answer equals one of the normalised gold answers, else 0.0 (SQuAD, section 6.1)."""
    return float(normalise(answer) in {normalise(gold) for gold in golds})


def token_f1(answer: str, golds: Iterable[str]) -> float:
    """The best harmonic mean of token precision and recall over the gold answers (SQuAD, section 6.1)."""
    return max((_f1(normalise(answer).split(), normalise(gold).split()) for gold in golds), default=0.0)


def answer_recall(text: str, golds: Iterable[str]) -> float:
    """1.0 if the normalised text holds one of the normalised gold answers, as whole words, else 0.0 (ITRG, table 4)."""
    padded = f" {normalise(text)} "
    return float(any(f" {normalise(gold)} " in padded for gold in golds if normalise(gold)))


def lost_vote(answer: str, pool: Iterable[str], golds: Sequence[str]) -> bool:
    """Whether a correct answer was in the pool and the answer is another (%NM; post-fusion, section 4)."""
    return not exact_match(answer, golds) and any(exact_match(candidate, golds) for candidate in pool)


def share(passed: Sequence[bool]) -> Estimate:
    """The share that passed, with Wilson's interval."""
    found = binomtest(sum(passed), len(passed)).proportion_ci(method="wilson")
    return Estimate(sum(passed) / len(passed), float(found.low), float(found.high))


def mean(values: Sequence[float], seed: int = 0) -> Estimate:
    """The mean with its bootstrap interval.

    Raises:
        ValueError: there are no values.
    """
    return _bootstrap(np.asarray(values, dtype=float)[:, None], lambda sums, n: sums[..., 0] / n, seed)


def paired_difference(ours: Sequence[float], theirs: Sequence[float], seed: int = 0) -> Estimate:
    """The mean of `ours - theirs`, question by question, with its bootstrap interval.

    Raises:
        ValueError: the two differ in length, or are empty.
    """
    return mean([our - their for our, their in zip(ours, theirs, strict=True)], seed)


def ratio(parts: Sequence[float], wholes: Sequence[float], seed: int = 0) -> Estimate:
    """The sum of `parts` by that of `wholes` (0 where that is 0), with its bootstrap interval over questions.

    Raises:
        ValueError: the two differ in length, or are empty.
    """
    columns = np.array(list(zip(parts, wholes, strict=True)), dtype=float)
    return _bootstrap(columns, lambda sums, _: _ratio(sums[..., 0], sums[..., 1]), seed)


def unknown_scores(
    said: Sequence[bool],
    unanswerable: Sequence[bool],
    seed: int = 0,
    questions: Sequence[int] | None = None,
    weights: Sequence[float] | None = None,
) -> dict[str, Estimate]:
    """Precision, recall and F1 of saying "unknown", where the unanswerable questions are those it should be said to.

    Where several are of one question, `questions` numbers it for each, from 0: intervals are over questions. `weights`
    is how much each counts.

    Raises:
        ValueError: they differ in length, or are empty.
    """
    numbers = range(len(said)) if questions is None else questions
    # columns: said and right, said, should have been said
    counts = np.zeros((max(numbers, default=-1) + 1, 3))
    for n, s, u, weight in zip(numbers, said, unanswerable, weights or [1.0] * len(said), strict=True):
        counts[n] += (weight * (s and u), weight * s, weight * u)
    return {
        "precision": _bootstrap(counts, lambda sums, _: _ratio(sums[..., 0], sums[..., 1]), seed),
        "recall": _bootstrap(counts, lambda sums, _: _ratio(sums[..., 0], sums[..., 2]), seed),
        "f1": _bootstrap(counts, lambda sums, _: _ratio(2 * sums[..., 0], sums[..., 1] + sums[..., 2]), seed),
    }


def _f1(answer: list[str], gold: list[str]) -> float:
    # "a", "the" and punctuation alone normalise to nothing: right only where the gold is nothing, too
    if not answer or not gold:
        return float(answer == gold)
    same = (Counter(answer) & Counter(gold)).total()
    return 2 * same / (len(answer) + len(gold))


def _bootstrap(columns: Floats, statistic: Callable[[Floats, int], Floats], seed: int) -> Estimate:
    """The percentile bootstrap of a statistic of column sums; `columns` has one row a question."""
    n = len(columns)
    if not n:
        raise ValueError("there are no values to take a mean of")
    # how often each question is drawn: resampling without copying the data
    drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=RESAMPLES)
    low, high = np.percentile(statistic(drawn @ columns, n), [2.5, 97.5])
    return Estimate(float(statistic(columns.sum(axis=0), n)), float(low), float(high))


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.zeros_like(whole), where=whole != 0)
