"""Asks the relevance estimator how likely each passage answers the question (RE-RAG, section 2.2).

With reranking, more candidates are searched for than are shown, and those that the estimator finds best are kept. If
facts are used, the estimator is asked about the question alone and about the question with the facts, and the mean of
the two log-odds gives the order: the question alone would find eggs for a vegan, and the facts alone passages that say
little about the question. A passage's rank in the search counts as well. For a chat reply, passages that are far less
likely to answer than the best one are left out (`relevance.min_relative_confidence`). The page shows sources before
this step runs. If the estimator fails, the turn goes on with the passages as they were found, and an event says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from assistant.judges.relevance.rerank import with_relevance
from assistant.protocols import Parts
from assistant.retrieve.fusion import fuse
from assistant.types import Passage, Turn


def is_due(turn: Turn, parts: Parts) -> bool:  # noqa: ARG001 - called like all conditions
    """Whether there is an estimator."""
    return parts.estimator is not None


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Adds `confidence` and, with reranking, the best of all candidates as `passages`."""
    if parts.estimator is None or not turn.passages or stop.is_set():
        yield turn
    elif all(passage.confidence is not None for passage in turn.passages):
        yield turn  # the loop has done this already, and not searched since
    else:
        candidates = _candidates(turn, parts) if parts.settings.relevance.rerank else turn.passages
        yield with_relevance(turn, candidates, parts, stop)


def _candidates(turn: Turn, parts: Parts) -> list[Passage]:
    """The turn's passages, and then what its queries find further down in their rankings."""
    depth = parts.settings.relevance.rerank_depth
    if not turn.queries or depth <= len(turn.passages):
        return list(turn.passages)
    rankings = {query.name: parts.retriever.search(query.text, depth) for query in turn.queries}
    present_ids = {passage.id for passage in turn.passages}
    fused = fuse(rankings, depth, parts.settings.retrieve.rrf_k)
    return [*turn.passages, *(passage for passage in fused if passage.id not in present_ids)][:depth]
