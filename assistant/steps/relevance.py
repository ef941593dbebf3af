"""Asks the relevance estimator how likely each passage answers the question (RE-RAG, section 2.2).

Where reranking is set, more candidates are searched for than are shown, and the estimator's best take the places. It
runs when sources are on the page already. If the estimator fails, the turn goes on as it was found, and says so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from threading import Event

from assistant.errors import SequiturError
from assistant.relevance.estimate import reranked, set_confidence
from assistant.retrieve.fusion import fuse
from assistant.types import Confidence, Estimator, Parts, Passage, Relevance, Turn

_LOG = logging.getLogger(__name__)
NOT_JUDGED = "The passages were used as they were found: "


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `confidence` and, where reranking is set, `reserve`; `passages` are then the best of all candidates."""
    found = _candidates(turn, parts) if parts.settings.relevance.rerank else list(turn.passages)
    yield estimated(turn, found, parts, stop) if parts.estimator and found and not stop.is_set() else turn


def estimated(turn: Turn, candidates: Sequence[Passage], parts: Parts, stop: Event) -> Turn:
    """The turn with k of the candidates as `passages`, each with its confidence, and the next ones as `reserve`.

    They are the best where reranking is set, and otherwise the first.
    If the estimator can't be used, or is stopped, the passages stay as they are.
    """
    if parts.estimator is None:
        return turn.grow(events=(*turn.events, f"{NOT_JUDGED}no relevance estimator is set."))
    try:
        estimator = parts.estimator(parts.llm)
        relevance = estimator.estimate(turn.question, candidates, stop)
    except SequiturError as error:
        return turn.grow(events=(*turn.events, f"{NOT_JUDGED}{error}"))
    except Exception as error:  # noqa: BLE001 - a model may fail in any way, and an answer doesn't depend on this one
        _LOG.exception("the relevance estimator failed")
        return turn.grow(events=(*turn.events, f"{NOT_JUDGED}the relevance estimator failed ({error})."))
    return turn if stop.is_set() else _ranked(turn, candidates, relevance, estimator, parts)


def _ranked(
    turn: Turn, candidates: Sequence[Passage], relevance: Sequence[Relevance], estimator: Estimator, parts: Parts
) -> Turn:
    k, knobs = turn.choices.k, parts.settings.relevance
    judged = list(zip(candidates, relevance, strict=True))
    order = reranked(candidates, relevance, max(k, knobs.keep)) if knobs.rerank else judged
    best = [replace(passage, confidence=one.confidence) for passage, one in order]
    confidence = Confidence(set_confidence(relevance), knobs.threshold, estimator.name, estimator.calibration)
    return turn.grow(passages=tuple(best[:k]), reserve=tuple(best[k:]), confidence=confidence)


def _candidates(turn: Turn, parts: Parts) -> list[Passage]:
    """What was found, and what the same queries find further down."""
    most = parts.settings.relevance.candidates
    if not turn.queries or most <= len(turn.passages):
        return list(turn.passages)
    rankings = {query.name: parts.retriever.search(query.text, most) for query in turn.queries}
    known = {passage.id for passage in turn.passages}
    others = [one for one in fuse(rankings, most, parts.settings.retrieve.rrf) if one.id not in known]
    return [*turn.passages, *others][:most]
