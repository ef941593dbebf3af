"""Estimates of relevance and what follows from them: an order, and a confidence in the set (RE-RAG, 2.2 and 5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log
from threading import Event

from assistant.protocols import Estimator
from assistant.text.sentences import quote, sentences
from assistant.types import Passage, Relevance

# How many of a person's own passages, in the order of the search, are also read sentence by sentence.
READ_CLOSELY = 8
# The weight that a turn gives to the order of its search: docs/results/relevance.md.
PRIOR = 1.0


def estimates(question: str, passages: Sequence[Passage], estimator: Estimator, stop: Event) -> list[Relevance]:
    """One estimate for each passage, in order; a person's own passage is as relevant as its most relevant sentence.

    A lease or a manual says much in few words. The estimator was trained on passages about one topic each, and would
    overlook the one sentence that answers (docs/results/documents.md).
    """
    own_passages = [passage for passage in passages if passage.own][:READ_CLOSELY]
    own_sentences = [
        (passage.id, replace(passage, id=f"{passage.id} {n}", text=quote(passage.text, span)))
        for passage in own_passages
        for n, span in enumerate(sentences(passage.text))
    ]
    if not passages:
        return []
    relevances = estimator.estimate(question, [*passages, *(sentence for _, sentence in own_sentences)], stop)
    best_by_id = dict(zip((passage.id for passage in passages), relevances[: len(passages)], strict=True))
    for (passage_id, _), estimate in zip(own_sentences, relevances[len(passages) :], strict=True):
        best_by_id[passage_id] = max(best_by_id[passage_id], estimate, key=lambda relevance: relevance.score)
    return [best_by_id[passage.id] for passage in passages]


def reranked(
    passages: Sequence[Passage], relevance: Sequence[Relevance], k: int, prior: float = 0.0
) -> list[tuple[Passage, Relevance]]:
    """The `k` most relevant passages, best first; equal ones stay in their given order.

    `prior` is the weight of that order: the log-odds are lowered by `prior` times the logarithm of the rank. At 1 the
    prior odds are 1, 1/2, 1/3, ..., as relevant passages are spread over the ranks of a search.
    """
    pairs = list(zip(passages, relevance, strict=True))
    order = sorted(range(len(pairs)), key=lambda n: prior * log(n + 1) - pairs[n][1].score)
    return [pairs[n] for n in order[:k]]


def above_relative_cutoff(confidences: Sequence[float], share: float, k: int) -> list[bool]:
    """Which confidences reach `share` of the highest of the first `k`; at least one of the first `k` does."""
    best = max(confidences[:k], default=0.0)
    return [confidence >= share * best for confidence in confidences]


def set_confidence(relevance: Sequence[Relevance]) -> float:
    """The confidence that a set of passages holds the answer: max_j r_j (RE-RAG, section 5.1); 0 for an empty set."""
    return max((estimate.confidence for estimate in relevance), default=0.0)
