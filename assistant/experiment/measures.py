"""Measures with their intervals: of short answers (SQuAD's and the post-fusion paper's), judgements and confidences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame
from scipy.stats import DegenerateDataWarning, binomtest, bootstrap

from assistant.text.sentences import normalise

RESAMPLES = 2000
# An AUC is computed draw by draw, which takes longer.
AUC_RESAMPLES = 500
Floats = NDArray[np.float64]
# A "value", and the ends "low" and "high" of its 95 % interval.
Estimate = dict[str, float]


def exact_match(answer: str, golds: Iterable[str]) -> float:
    """1.0 if the normalised answer equals one of the normalised gold answers, else 0.0 (SQuAD, section 6.1).

    No answer equals none, not even a gold "." or "the", of which nothing is left.
    """
    return float(bool(answer.strip()) and normalise(answer) in {normalise(gold) for gold in golds})


def token_f1(answer: str, golds: Iterable[str]) -> float:
    """The best harmonic mean of token precision and recall over the gold answers (SQuAD, section 6.1)."""
    words = normalise(answer).split()
    return max((_f1(words, normalise(gold).split()) for gold in golds if answer.strip()), default=0.0)


def answer_recall(text: str, golds: Iterable[str]) -> float:
    """1.0 if the normalised text holds one of the normalised gold answers, as whole words, else 0.0 (ITRG, table 4)."""
    padded = f" {normalise(text)} "
    return float(any(f" {normalise(gold)} " in padded for gold in golds if normalise(gold)))


def lost_vote(answer: str, pool: Iterable[str], golds: Sequence[str]) -> bool:
    """Whether a correct answer was in the pool but did not win (%NM; post-fusion, section 4)."""
    return not exact_match(answer, golds) and any(exact_match(candidate, golds) for candidate in pool)


def share_passed(passed: Sequence[bool]) -> Estimate:
    """The share that passed, with Wilson's interval, and the number of values as "n"."""
    interval = binomtest(sum(passed), len(passed)).proportion_ci(method="wilson")
    return {**_estimate(sum(passed) / len(passed), interval.low, interval.high), "n": len(passed)}


def means(by_measure: Mapping[str, Sequence[float]], seed: int = 0) -> dict[str, Estimate]:
    """The mean of each measure's values, with its interval; `by_measure` may be a DataFrame."""
    return {name: mean(values, seed) for name, values in by_measure.items()}


def differences(
    ours: Mapping[str, Sequence[float]], theirs: Mapping[str, Sequence[float]], seed: int = 0
) -> dict[str, Estimate]:
    """The mean paired difference of each measure, ours minus theirs, with its interval."""
    return {name: paired_difference(values, theirs[name], seed) for name, values in ours.items()}


def mean(values: Sequence[float], seed: int = 0) -> Estimate:
    """The mean with its bootstrap interval.

    Raises:
        ValueError: there are no values.
    """
    return _bootstrap(np.mean, np.asarray(values, dtype=float), seed=seed)


def paired_difference(ours: Sequence[float], theirs: Sequence[float], seed: int = 0) -> Estimate:
    """The mean of `ours - theirs`, question by question, with its bootstrap interval.

    Raises:
        ValueError: the two differ in length, or are empty.
    """
    return mean([our - their for our, their in zip(ours, theirs, strict=True)], seed)


def ratio(parts: Iterable[float], wholes: Iterable[float], seed: int = 0) -> Estimate:
    """The sum of `parts` by that of `wholes` (0 where that is 0), with its bootstrap interval over questions.

    Raises:
        ValueError: the two differ in length, or are empty.
    """
    columns = np.array(list(zip(parts, wholes, strict=True)), dtype=float).reshape(-1, 2).T
    return _bootstrap(_ratio, *columns, seed=seed)


def auc(scores: Floats, labels: NDArray[np.bool_], seed: int = 0) -> Estimate:
    """The area under the ROC curve with its bootstrap interval."""
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415 - takes a second to import

    def draw_auc(draw_scores: Floats, draw_labels: NDArray[np.bool_]) -> float:
        is_mixed = draw_labels.any() and not draw_labels.all()  # a draw of one label alone has no AUC
        return float(roc_auc_score(draw_labels, draw_scores)) if is_mixed else float("nan")

    with catch_warnings():
        simplefilter("ignore", DegenerateDataWarning)  # of such draws
        draws = bootstrap(
            (scores, labels), draw_auc, paired=True, vectorized=False, method="percentile", n_resamples=AUC_RESAMPLES,
            rng=np.random.default_rng(seed),
        ).bootstrap_distribution  # fmt: skip
    low, high = np.nanpercentile(draws, [2.5, 97.5])
    return _estimate(roc_auc_score(labels, scores), low, high)


def classification_measures(
    labels: Sequence[bool], scores: Sequence[float], threshold: float
) -> dict[str, float | None]:
    """AUC, and what a `threshold` on the scores gives: a measure is None where its denominator is 0.

    `false_alarms` is the share of the negatives whose score reaches the threshold.
    """
    from sklearn.metrics import confusion_matrix, roc_auc_score  # noqa: PLC0415 - takes a second to import

    predictions = [score >= threshold for score in scores]
    [[true_negatives, false_positives], [false_negatives, true_positives]] = confusion_matrix(
        labels, predictions, labels=[False, True]
    ).tolist()

    def share(hits: int, misses: int) -> float | None:
        return hits / (hits + misses) if hits + misses else None

    auc = balanced_accuracy = None
    recall, false_alarms = share(true_positives, false_negatives), share(false_positives, true_negatives)
    if recall is not None and false_alarms is not None:
        auc, balanced_accuracy = float(roc_auc_score(labels, scores)), (recall + 1 - false_alarms) / 2
    measures = {"auc": auc, "balanced_accuracy": balanced_accuracy, "precision": share(true_positives, false_positives)}
    return {**measures, "recall": recall, "false_alarms": false_alarms}


def reliability(confidences: Sequence[float], relevant: Sequence[bool], bins: int = 10) -> DataFrame:
    """The reliability table: a line for each bin of equal width over [0, 1] that has any confidences, lowest first.

    It has the bin's ends `low` and `high`, the `count` of confidences in [low, high), their mean `confidence`, and the
    share of them that is `relevant`.
    """
    pairs = DataFrame({"confidence": confidences, "relevant": relevant})
    numbers = (pairs["confidence"] * bins).astype(int).clip(upper=bins - 1)
    table = pairs.groupby(numbers.rename("bin")).agg(
        count=("relevant", "size"), confidence=("confidence", "mean"), relevant=("relevant", "mean")
    )
    table["low"], table["high"] = table.index / bins, (table.index + 1) / bins
    return table[["low", "high", "count", "confidence", "relevant"]]


def calibration_error(bins: DataFrame) -> float:
    """The mean distance of confidence and share of relevant over bins, by their counts (Guo et al., section 2)."""
    distances = (bins["confidence"] - bins["relevant"]).abs()
    return float((bins["count"] * distances).sum() / bins["count"].sum())


def unknown_scores(
    said_unknown: Sequence[bool],
    unanswerable: Sequence[bool],
    seed: int = 0,
    questions: Sequence[int] | None = None,
    weights: Sequence[float] | None = None,
) -> dict[str, Estimate]:
    """Precision, recall and F1 of saying "unknown", where it should be said exactly for the unanswerable questions.

    If several items are of one question, `questions` gives each item's question number, from 0: intervals are over
    questions. `weights` says how much each item counts.

    Raises:
        ValueError: they differ in length, or are empty.
    """
    numbers = range(len(said_unknown)) if questions is None else questions
    # columns: hits (said and right), predicted (said), expected (should have been said)
    counts = np.zeros((max(numbers, default=-1) + 1, 3))
    for n, s, u, weight in zip(numbers, said_unknown, unanswerable, weights or [1.0] * len(said_unknown), strict=True):
        counts[n] += (weight * (s and u), weight * s, weight * u)
    hits, predicted, expected = counts.T
    return {
        "precision": ratio(hits, predicted, seed),
        "recall": ratio(hits, expected, seed),
        "f1": ratio(2 * hits, predicted + expected, seed),
    }


def _f1(answer: list[str], gold: list[str]) -> float:
    # "a", "the" and punctuation alone normalise to nothing: right only where the gold is nothing, too
    if not answer or not gold:
        return float(answer == gold)
    overlap = (Counter(answer) & Counter(gold)).total()
    return 2 * overlap / (len(answer) + len(gold))


def _bootstrap(statistic: Callable[..., Floats], *columns: Floats, seed: int) -> Estimate:
    """The percentile bootstrap of a statistic over columns with one number for each question, resampled together."""
    if not len(columns[0]):
        raise ValueError("there are no values to take a mean of")
    value = float(statistic(*columns, axis=0))
    if len(columns[0]) == 1:
        return _estimate(value, value, value)
    interval = bootstrap(
        columns, statistic, paired=True, vectorized=True, method="percentile", n_resamples=RESAMPLES,
        rng=np.random.default_rng(seed), batch=100,
    ).confidence_interval  # fmt: skip
    return _estimate(value, interval.low, interval.high)


def _estimate(value: float, low: float, high: float) -> Estimate:
    return {"value": float(value), "low": float(low), "high": float(high)}


def _ratio(parts: Floats, wholes: Floats, axis: int) -> Floats:
    part, whole = parts.sum(axis=axis), wholes.sum(axis=axis)
    return np.asarray(np.divide(part, whole, out=np.zeros_like(whole), where=whole != 0))
