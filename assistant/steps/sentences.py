"""Cuts each passage to the sentences that matter: ranked by Sentence-BERT, 512 characters (GRG, section 2.2.3)."""

from __future__ import annotations

from collections.abc import Sequence

from assistant.text import quote, sentences
from assistant.types import Digest, Embedder, Passage, Span


def best_sentences(passages: Sequence[Passage], question: str, embedder: Embedder, chars: int) -> tuple[Digest, ...]:
    """For each passage the sentences most similar to `question`, the best first, until `chars` characters are full.

    The best sentence is always kept, and a sentence is never cut in two. Those kept stand in the passage's own order:
    steps out of order ("Take the pan off the heat" before "Bring it to the boil") are misread by reader and model.
    """
    spans = [sentences(passage.text) for passage in passages]
    texts = [quote(p.text, span) for p, found in zip(passages, spans, strict=True) for span in found]
    if not texts:
        return tuple(Digest(passage.id, "") for passage in passages)
    vectors = embedder.encode([question, *texts])
    scores = iter((vectors[1:] @ vectors[0]).tolist())
    return tuple(
        _digest(passage, [(next(scores), span) for span in found], chars)
        for passage, found in zip(passages, spans, strict=True)
    )


def _digest(passage: Passage, scored: list[tuple[float, Span]], chars: int) -> Digest:
    kept: list[Span] = []
    room = chars
    for _, span in sorted(scored, key=lambda one: (-one[0], one[1].start)):
        length = span.end - span.start
        if kept and length > room:
            break
        kept.append(span)
        room -= length + 1
    kept.sort(key=lambda span: span.start)
    return Digest(passage.id, " ".join(quote(passage.text, span) for span in kept), tuple(kept))
