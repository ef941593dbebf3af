"""Where in the passages a sentence may have its support: the places nearest to it, in meaning and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from assistant.protocols import Embedder
from assistant.text.markers import Marked
from assistant.text.overlap import coverage
from assistant.text.sentences import quote, sentences
from assistant.types import Passage, Span

# Passages that the judge reads beside one sentence, the nearest. Of a long reply it reads fewer beside each sentence,
# one at least, and about so many in all.
READ, _ALL = 3, 60


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage that may support a sentence, and the span in it that is nearest to the sentence.

    `nearness` is the cosine of that span, in [-1, 1], plus the share of the sentence's words that the passage has.
    """

    passage: Passage
    span: Span
    nearness: float


def nearest_evidence(
    texts: Sequence[str], passages: Sequence[Passage], hinted: Sequence[frozenset[str]], embedder: Embedder
) -> list[list[Evidence]]:
    """For each text, the few passages most likely to support it, best first; none for an empty text.

    A passage is as near as its nearest sentence is in meaning and the whole of it in words, since of two that speak of
    the same matter the one with the sentence's own words was read. One that the model pointed at comes first.
    """
    places = [(passage, span) for passage in passages for span in sentences(passage.text)]
    if not places or not any(texts):
        return [[] for _ in texts]
    vectors = embedder.encode([*texts, *(f"{p.full_title}: {quote(p.text, span)}" for p, span in places)])
    similarity = vectors[: len(texts)] @ vectors[len(texts) :].T
    most = max(1, min(READ, _ALL // sum(map(bool, texts))))
    return [
        _nearest(text, row, places, hints)[:most] if text else []
        for text, row, hints in zip(texts, similarity, hinted, strict=True)
    ]


def _nearest(
    text: str, row: NDArray[np.float32], places: list[tuple[Passage, Span]], hints: frozenset[str]
) -> list[Evidence]:
    best: dict[str, Evidence] = {}
    for score, (passage, span) in zip(row.tolist(), places, strict=True):
        if passage.id not in best or score > best[passage.id].nearness:
            best[passage.id] = Evidence(passage, span, score)
    found = [replace(one, nearness=one.nearness + coverage(text, one.passage.titled)) for one in best.values()]
    return sorted(found, key=lambda one: (one.passage.id not in hints, -one.nearness))


def hinted(marked: Marked, span: Span, passages: Sequence[Passage]) -> frozenset[str]:
    """The passages that the markers in or right behind a sentence point at; a number out of range points nowhere."""
    numbers = [n for place, listed in marked.hints if span.start < place <= span.end + 1 for n in listed]
    return frozenset(passages[n - 1].id for n in numbers if 1 <= n <= len(passages))
