"""Asks the relevance estimator how likely each passage answers the question (RE-RAG, section 2.2).

Where reranking is set, more candidates are searched for than are shown, and the estimator's best take the places. Where
facts are used it is asked about the question with them, too, and the mean of its log-odds counts: the question alone
brings a vegan eggs, the facts beside it what says little on the question. The place in the search counts as well. A
chat reply leaves out what is far less likely to answer than the likeliest passage (`relevance.least`). It runs when
sources are on the page already. If it fails, the turn goes on as it was found, and says so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import compress
from statistics import fmean
from threading import Event

from assistant.errors import SequiturError
from assistant.judges.relevance.estimate import PRIOR, likely, reranked, set_confidence
from assistant.protocols import Estimator, Parts
from assistant.retrieve.fusion import fuse
from assistant.types import (
    Confidence,
    Passage,
    Relevance,
    Turn,
)

_LOG = logging.getLogger(__name__)
NOT_JUDGED = "The passages were used as they were found: "


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `confidence`, and where reranking is set, the best of all candidates as `passages`."""
    if parts.estimator is None or not turn.passages or stop.is_set():
        yield turn
    elif all(passage.confidence is not None for passage in turn.passages):
        yield turn  # the loop has asked, and searched for nothing more
    else:
        candidates = _candidates(turn, parts) if parts.settings.relevance.rerank else turn.passages
        yield estimated(turn, candidates, parts, stop)


def estimated(turn: Turn, candidates: Sequence[Passage], parts: Parts, stop: Event) -> Turn:
    """The turn with k of the candidates as `passages`, each with its confidence, and the next ones as `reserve`.

    They are the best where reranking is set, and otherwise the first; fewer where a chat reply leaves some out.
    If the estimator can't be used, or is stopped, the passages stay as they are.
    """
    if parts.estimator is None:
        return turn.told(f"{NOT_JUDGED}no relevance estimator is set.")
    try:
        judged = _ranked(turn, candidates, parts.estimator(parts.llm), parts, stop)
    except SequiturError as error:
        return turn.told(f"{NOT_JUDGED}{error}")
    except Exception as error:  # noqa: BLE001 - a model may fail in any way, and an answer doesn't depend on this one
        _LOG.exception("the relevance estimator failed")
        return turn.told(f"{NOT_JUDGED}the relevance estimator failed ({error}).")
    return turn if stop.is_set() else judged


def _ranked(turn: Turn, candidates: Sequence[Passage], estimator: Estimator, parts: Parts, stop: Event) -> Turn:
    k, knobs = turn.choices.k, parts.settings.relevance
    asked = [turn.question, turn.contextual] if knobs.rerank and turn.used_facts else [turn.question]
    estimates = [estimator.estimate(question, candidates, stop) for question in asked]
    relevance = [max(of_one, key=lambda one: one.score) for of_one in zip(*estimates, strict=True)]
    judged = [replace(one, confidence=known.confidence) for one, known in zip(candidates, relevance, strict=True)]
    if knobs.rerank:
        fits = [Relevance.of_score(fmean(one.score for one in of_one)) for of_one in zip(*estimates, strict=True)]
        judged = [passage for passage, _ in reranked(judged, fits, max(k, knobs.keep), PRIOR)]
    confidence = Confidence(set_confidence(relevance), knobs.threshold, estimator.name, estimator.calibration)
    least = knobs.least if turn.choices.form == "chat" else 0.0
    kept = likely([passage.confidence or 0.0 for passage in judged], least, k)
    shown, reserve = (tuple(compress(judged[part], kept[part])) for part in (slice(k), slice(k, None)))
    return replace(turn, passages=shown, reserve=reserve, confidence=confidence)


def _candidates(turn: Turn, parts: Parts) -> list[Passage]:
    """What was found, and what the same queries find further down."""
    most = parts.settings.relevance.candidates
    if not turn.queries or most <= len(turn.passages):
        return list(turn.passages)
    rankings = {query.name: parts.retriever.search(query.text, most) for query in turn.queries}
    known = {passage.id for passage in turn.passages}
    others = [one for one in fuse(rankings, most, parts.settings.retrieve.rrf) if one.id not in known]
    return [*turn.passages, *others][:most]
