"""Weighs answers by the relevance of the passages that they came from (RE-RAG, equations 5 and 6).

Everything is in natural logarithms, so that an answer that the generator finds almost impossible doesn't give 0 / 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

# By rounding, the log-likelihood of a certain text, a sum of floats, may be a little over 0.
ROUNDING = 1e-3


def log_weights(scores: Sequence[float]) -> NDArray[np.float64]:
    """Log P_RE(c_j|q), the log-softmax of the scores s_j (equation 5). Shape (passages,); empty for no passages.

    Raises:
        ValueError: a score is not finite.
    """
    values = np.asarray(scores, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError("scores have to be finite")
    return values - np.logaddexp.reduce(values) if len(values) else values


def weights(scores: Sequence[float]) -> list[float]:
    """P_RE(c_j|q), the softmax of the scores; they sum to 1, unless there are no passages."""
    return [float(weight) for weight in np.exp(log_weights(scores))]


def marginal(scores: Sequence[float], log_likelihoods: Sequence[Sequence[float]]) -> list[float]:
    """Log P(a|q) of each answer: log sum_j P_RE(c_j|q) P_G(a|q,c_j) (equation 6).

    Args:
        scores: s_j of each passage.
        log_likelihoods: log P_G(a|q,c_j), with a row for each answer and a column for each passage; at most 0, -inf is
            allowed.

    Returns:
        One log-probability for each answer; -inf if no passage gives the answer any chance, or there are no passages.

    Raises:
        ValueError: a row doesn't have one value for each passage, or a value isn't a log-probability.
    """
    log_priors = log_weights(scores)
    log_marginals = []
    for row in log_likelihoods:
        values = np.asarray(row, dtype=np.float64)
        if values.shape != log_priors.shape:
            raise ValueError(f"there are {len(values)} likelihoods for {len(log_priors)} passages")
        if not (values <= ROUNDING).all():
            raise ValueError("a log-likelihood has to be 0 or less")
        log_marginals.append(float(np.logaddexp.reduce(log_priors + values)) if len(values) else -inf)
    return log_marginals


def best(log_probabilities: Sequence[float]) -> int | None:
    """The index of the likeliest answer, the first of equals; None if none has any chance."""
    likeliest = max(range(len(log_probabilities)), key=lambda n: log_probabilities[n], default=None)
    return None if likeliest is None or log_probabilities[likeliest] == -inf else likeliest
