"""The losses that train a relevance estimator from question-answer pairs alone (RE-RAG, section 2.3).

Shapes: `scores` (s_j) and `log_likelihoods` (F_j = log P_G(a|q,c_j), equation 8) are (questions, contexts). `present`,
of the same shape and bool, is False where a question has fewer contexts than others. Gradients flow into both, so
that a generator can be trained jointly; detach F_j for one that is frozen.
"""

from __future__ import annotations

import torch
from torch import Tensor

# An F_j below this is as good as impossible. It stands for -inf, which would make KL infinite and its gradient NaN.
MIN_LOG_LIKELIHOOD = -100.0


def log_relevance(scores: Tensor, present: Tensor) -> Tensor:
    """Log P_RE(c_j|q) (equation 5): log-softmax over the contexts that are present; elsewhere the log is very low."""
    return _masked(scores, present).log_softmax(-1)


def generation_loss(scores: Tensor, log_likelihoods: Tensor, present: Tensor) -> Tensor:
    """L_gen = -log sum_j P_RE(c_j|q) P_G(a|q,c_j) (equation 7), the mean over questions, a scalar in nats."""
    joint = log_relevance(scores, present) + log_likelihoods.clamp(min=MIN_LOG_LIKELIHOOD)
    return -_masked(joint, present).logsumexp(-1).mean()


def relevance_loss(scores: Tensor, log_likelihoods: Tensor, present: Tensor) -> Tensor:
    """L_re = KL(P_RE || Q) with Q = softmax_j(F_j) (equations 9 and 10), the mean over questions, a scalar in nats."""
    log_p = log_relevance(scores, present)
    log_q = _masked(log_likelihoods.clamp(min=MIN_LOG_LIKELIHOOD), present).log_softmax(-1)
    terms = torch.where(present, log_p.exp() * (log_p - log_q), torch.zeros_like(log_p))
    return terms.sum(-1).mean()


def token_loss(logits: Tensor, words: tuple[int, int], present: Tensor) -> Tensor:
    """L_tok: what P_RE-model gives to first tokens other than "true" and "false" (equation 11), a scalar in [0, 1].

    Args:
        logits: of the first token that a seq2seq estimator writes, (questions, contexts, vocabulary).
        words: the tokens of "true" and "false".
        present: (questions, contexts).

    Returns:
        The mean over contexts, so that their number does not weigh; the paper leaves open how they are put together.
    """
    other_mass = 1 - logits.softmax(-1)[..., list(words)].sum(-1)
    return other_mass[present].mean()


def loss(scores: Tensor, log_likelihoods: Tensor, present: Tensor, weight: float = 1.0) -> Tensor:
    """L_gen + a1 L_re (equation 12) of an estimator with a single logit, which has no tokens for an L_tok."""
    parts = generation_loss(scores, log_likelihoods, present), relevance_loss(scores, log_likelihoods, present)
    return parts[0] + weight * parts[1]


def _masked(values: Tensor, present: Tensor) -> Tensor:
    # the lowest finite number: -inf would turn into NaN where a row has nothing present
    return values.masked_fill(~present, torch.finfo(values.dtype).min)
