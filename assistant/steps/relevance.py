"""Asks the relevance estimator how likely each passage answers the question (RE-RAG, section 2.2).

Where reranking is set, more candidates are searched for than are shown, and the estimator's best take the places. Where
facts are used, it is asked about the question alone and about the question with the facts, and the mean of the log-odds
counts: the question alone brings a vegan eggs, and the facts bring what says little about the question. A passage's
rank in the search counts as well. A chat reply leaves out what is far less likely to answer than the likeliest passage
(`relevance.min_relative_confidence`). Sources are on the page before this step runs. If the estimator fails, the turn
goes on with the passages as they were found, and an event says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from assistant.judges.relevance.rerank import with_relevance
from assistant.protocols import Parts
from assistant.retrieve.fusion import fuse
from assistant.types import Passage, Turn


def is_due(turn: Turn, parts: Parts) -> bool:  # noqa: ARG001 - asked as all steps are
    """Whether there is anybody to ask."""
    return parts.estimator is not None


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `confidence`, and where reranking is set, the best of all candidates as `passages`."""
    if parts.estimator is None or not turn.passages or stop.is_set():
        yield turn
    elif all(passage.confidence is not None for passage in turn.passages):
        yield turn  # the loop has asked, and searched for nothing more
    else:
        candidates = _candidates(turn, parts) if parts.settings.relevance.rerank else turn.passages
        yield with_relevance(turn, candidates, parts, stop)


def _candidates(turn: Turn, parts: Parts) -> list[Passage]:
    """What was found, and what the same queries find further down."""
    most = parts.settings.relevance.rerank_depth
    if not turn.queries or most <= len(turn.passages):
        return list(turn.passages)
    rankings = {query.name: parts.retriever.search(query.text, most) for query in turn.queries}
    known = {passage.id for passage in turn.passages}
    others = [one for one in fuse(rankings, most, parts.settings.retrieve.rrf_k) if one.id not in known]
    return [*turn.passages, *others][:most]
