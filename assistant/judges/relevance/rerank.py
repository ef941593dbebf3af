"""Ranks a turn's candidates by relevance: the best become its passages, the next its reserve."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from itertools import compress
from statistics import fmean
from threading import Event

from assistant.errors import SequiturError
from assistant.judges.relevance.estimate import PRIOR, above_relative_cutoff, estimates, reranked, set_confidence
from assistant.protocols import Estimator, Parts
from assistant.types import Confidence, Passage, Relevance, Turn

_LOG = logging.getLogger(__name__)


def with_relevance(turn: Turn, candidates: Sequence[Passage], parts: Parts, stop: Event) -> Turn:
    """The turn with k of the candidates as `passages`, each with its confidence, and the next ones as `reserve`.

    With reranking these are the best candidates, otherwise the first; for a chat reply some may be left out. If the
    estimator can't be used, or is stopped, the passages stay as they are.
    """
    if parts.estimator is None:
        return turn.with_event("relevance_failed", "no relevance estimator is set.")
    try:
        ranked_turn = _ranked(turn, candidates, parts.estimator(parts.llm), parts, stop)
    except SequiturError as error:
        return turn.with_event("relevance_failed", error)
    except Exception as error:  # noqa: BLE001 - a model may fail in any way, and an answer doesn't depend on this one
        _LOG.exception("the relevance estimator failed")
        return turn.with_event("relevance_failed", f"the relevance estimator failed ({error}).")
    return turn if stop.is_set() else ranked_turn


def _ranked(turn: Turn, candidates: Sequence[Passage], estimator: Estimator, parts: Parts, stop: Event) -> Turn:
    k, knobs = turn.choices.k, parts.settings.relevance
    questions = [turn.question, turn.contextual] if knobs.rerank and turn.used_facts else [turn.question]
    estimate_rows = [estimates(question, candidates, estimator, stop) for question in questions]
    relevance = [
        max(passage_estimates, key=lambda estimate: estimate.score)
        for passage_estimates in zip(*estimate_rows, strict=True)
    ]
    ranked = [
        replace(passage, confidence=estimate.confidence)
        for passage, estimate in zip(candidates, relevance, strict=True)
    ]
    if knobs.rerank:
        mean_relevance = [
            Relevance.of_score(fmean(estimate.score for estimate in passage_estimates))
            for passage_estimates in zip(*estimate_rows, strict=True)
        ]
        ranked = [passage for passage, _ in reranked(ranked, mean_relevance, max(k, knobs.rerank_top_k), PRIOR)]
    confidence = Confidence(set_confidence(relevance), knobs.threshold, estimator.name, estimator.calibration)
    min_share = knobs.min_relative_confidence if turn.choices.form == "chat" else 0.0
    above_cutoff = above_relative_cutoff([passage.confidence or 0.0 for passage in ranked], min_share, k)
    shown, reserve = (tuple(compress(ranked[part], above_cutoff[part])) for part in (slice(k), slice(k, None)))
    return replace(turn, passages=shown, reserve=reserve, confidence=confidence)
