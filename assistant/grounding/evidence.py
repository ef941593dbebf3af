"""Finds the passages that may support a sentence: those nearest to it, in meaning and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from assistant.protocols import Embedder
from assistant.text.markers import UnmarkedText
from assistant.text.overlap import coverage
from assistant.text.sentences import quote, sentences
from assistant.types import Passage, Span

# How many of the nearest passages the judge reads beside one sentence. For a long reply there are fewer, but at least
# one for each sentence, so that the whole reply needs about `_MAX_PAIRS`.
READ, _MAX_PAIRS = 3, 60


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage that may support a sentence, and the span in it that is nearest to the sentence.

    `nearness` is the cosine of that span, in [-1, 1], plus the share of the sentence's words that the passage has.
    """

    passage: Passage
    span: Span
    nearness: float


def nearest_evidence(
    texts: Sequence[str], passages: Sequence[Passage], hints: Sequence[frozenset[str]], embedder: Embedder
) -> list[list[Evidence]]:
    """For each text, the few passages most likely to support it, best first; none for an empty text.

    Nearness is the similarity of the passage's nearest sentence plus the word overlap with the whole passage: if two
    passages are about the same thing, the model most likely took its words from the one that has them. A passage that
    the model's markers point at comes first.
    """
    candidates = [(passage, span) for passage in passages for span in sentences(passage.text)]
    if not candidates or not any(texts):
        return [[] for _ in texts]
    vectors = embedder.encode(
        [*texts, *(f"{passage.full_title}: {quote(passage.text, span)}" for passage, span in candidates)]
    )
    similarity = vectors[: len(texts)] @ vectors[len(texts) :].T
    count = max(1, min(READ, _MAX_PAIRS // sum(map(bool, texts))))
    return [
        _nearest(text, row, candidates, text_hints)[:count] if text else []
        for text, row, text_hints in zip(texts, similarity, hints, strict=True)
    ]


def _nearest(
    text: str, row: NDArray[np.float32], candidates: list[tuple[Passage, Span]], hints: frozenset[str]
) -> list[Evidence]:
    best: dict[str, Evidence] = {}
    for score, (passage, span) in zip(row.tolist(), candidates, strict=True):
        if passage.id not in best or score > best[passage.id].nearness:
            best[passage.id] = Evidence(passage, span, score)
    scored = [
        replace(evidence, nearness=evidence.nearness + coverage(text, evidence.passage.titled))
        for evidence in best.values()
    ]
    return sorted(scored, key=lambda evidence: (evidence.passage.id not in hints, -evidence.nearness))


def hinted(marked: UnmarkedText, span: Span, passages: Sequence[Passage]) -> frozenset[str]:
    """The ids of the passages that markers in or right behind a sentence point at; numbers out of range are ignored."""
    numbers = [
        n for offset, marker_numbers in marked.hints if span.start < offset <= span.end + 1 for n in marker_numbers
    ]
    return frozenset(passages[n - 1].id for n in numbers if 1 <= n <= len(passages))
