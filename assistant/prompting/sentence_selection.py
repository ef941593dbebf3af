"""Cuts passages to the sentences that matter.

By Sentence-BERT, 512 characters of each passage (GRG, section 2.2.3), or by the estimator of relevance, so many
characters of all passages: it keeps the answer in less text, and reading is what an answer waits for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean
from threading import Event
from typing import Literal

from assistant.protocols import Embedder, Estimator
from assistant.text.sentences import quote, sentences
from assistant.types import Digest, Passage, Span

# As the passage has them, or the best first. Steps out of order ("Take the pan off the heat" before "Bring it to the
# boil") are misread by reader and model.
Order = Literal["passage", "score"]


def best_sentences(
    passages: Sequence[Passage], question: str, embedder: Embedder, chars: int, order: Order = "passage"
) -> tuple[Digest, ...]:
    """For each passage the sentences most similar to `question`, the best first, until `chars` characters are full.

    The best sentence is always kept, and a sentence is never cut in two. Those kept stand in the `order` asked for.
    """
    places = _places(passages)
    if not places:
        return tuple(Digest(passage.id, "") for passage in passages)
    vectors = embedder.encode([question, *(quote(passages[n].text, span) for n, span in places)])
    scored = list(zip((vectors[1:] @ vectors[0]).tolist(), places, strict=True))
    return tuple(
        _digest(passage, _first([one for one in scored if one[1][0] == n], chars), order)
        for n, passage in enumerate(passages)
    )


def likeliest_sentences(
    passages: Sequence[Passage],
    questions: Sequence[str],
    estimator: Estimator,
    chars: int,
    stop: Event,
    order: Order = "passage",
) -> tuple[Digest, ...]:
    """For each passage its sentence that most likely answers, and the likeliest of all others up to `chars` characters.

    The mean of the log-odds that the questions give counts. Each sentence is read behind its passage's title; those
    kept stand in the `order` asked for.

    Raises:
        SequiturError: the estimator can't be used; one that fails may raise anything.
    """
    places = _places(passages)
    texts = [
        replace(passages[n], id=f"{passages[n].id} {span.start}", text=quote(passages[n].text, span))
        for n, span in places
    ]
    estimates = [estimator.estimate(question, texts, stop) for question in questions]
    scored = [
        (fmean(one.score for one in of_one), place)
        for place, of_one in zip(places, zip(*estimates, strict=True), strict=True)
    ]
    kept = [best for n in range(len(passages)) for best in _first([one for one in scored if one[1][0] == n], room=0)]
    room = chars - sum(_length(one) for one in kept)
    kept += _first([one for one in scored if one not in kept], room, least=0)
    return tuple(_digest(passage, [one for one in kept if one[1][0] == n], order) for n, passage in enumerate(passages))


# A sentence: the place of its passage, and where it stands there.
_Place = tuple[int, Span]
_Scored = tuple[float, _Place]


def _places(passages: Sequence[Passage]) -> list[_Place]:
    return [(n, span) for n, passage in enumerate(passages) for span in sentences(passage.text)]


def _first(scored: Sequence[_Scored], room: int, least: int = 1) -> list[_Scored]:
    """The best that there is room for, up to the first that doesn't fit; `least` of them all the same."""
    kept: list[_Scored] = []
    for one in sorted(scored, key=lambda one: (-one[0], one[1][0], one[1][1].start)):
        if len(kept) >= least and _length(one) - 1 > room:
            break
        kept.append(one)
        room -= _length(one)
    return kept


def _length(scored: _Scored) -> int:
    """Characters of a sentence and of the space behind it."""
    span = scored[1][1]
    return span.end - span.start + 1


def _digest(passage: Passage, kept: Sequence[_Scored], order: Order) -> Digest:
    """The sentences that are `kept`, which come best first."""
    spans = [span for _, (_, span) in kept]
    if order == "passage":
        spans.sort(key=lambda span: span.start)
    return Digest(passage.id, " ".join(quote(passage.text, span) for span in spans), tuple(spans))
