"""Cuts passages down to their most useful sentences.

Either Sentence-BERT selects 512 characters of each passage (GRG, section 2.2.3), or the relevance estimator selects so
many characters of all passages together. The estimator keeps the answer in less text, which the model reads sooner.
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

# The order of the selected sentences: as in the passage, or best first. Steps out of order ("Take the pan off the heat"
# before "Bring it to the boil") are misread by people and models.
Order = Literal["passage", "score"]


def best_sentences(
    passages: Sequence[Passage], question: str, embedder: Embedder, chars: int, order: Order = "passage"
) -> tuple[Digest, ...]:
    """For each passage the sentences most similar to `question`, up to `chars` characters.

    The best sentence is always kept, and no sentence is cut. The sentences stand in the given `order`.
    """
    places = _places(passages)
    if not places:
        return tuple(Digest(passage.id, "") for passage in passages)
    vectors = embedder.encode([question, *(quote(passages[n].text, span) for n, span in places)])
    scored = list(zip((vectors[1:] @ vectors[0]).tolist(), places, strict=True))
    return tuple(
        _digest(passage, _best([one for one in scored if one[1][0] == n], chars), order)
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
    """The sentence of each passage that most likely answers, and the likeliest of all others up to `chars` characters.

    A sentence is scored by the mean of its log-odds over the questions, and read behind its passage's title. The
    sentences stand in the given `order`.

    Raises:
        SequiturError: the estimator can't be used; one that fails may raise any error.
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
    kept = [best for n in range(len(passages)) for best in _best([one for one in scored if one[1][0] == n], chars=0)]
    chars -= sum(_length(one) for one in kept)
    kept += _best([one for one in scored if one not in kept], chars, at_least=0)
    return tuple(_digest(passage, [one for one in kept if one[1][0] == n], order) for n, passage in enumerate(passages))


# A sentence: the number of its passage, and its span there.
_Place = tuple[int, Span]
_Scored = tuple[float, _Place]


def _places(passages: Sequence[Passage]) -> list[_Place]:
    return [(n, span) for n, passage in enumerate(passages) for span in sentences(passage.text)]


def _best(scored: Sequence[_Scored], chars: int, at_least: int = 1) -> list[_Scored]:
    """The best sentences up to the first that doesn't fit into `chars` characters, but always `at_least` so many."""
    kept: list[_Scored] = []
    for one in sorted(scored, key=lambda one: (-one[0], one[1][0], one[1][1].start)):
        if len(kept) >= at_least and _length(one) - 1 > chars:
            break
        kept.append(one)
        chars -= _length(one)
    return kept


def _length(scored: _Scored) -> int:
    """The characters of a sentence and of the space behind it."""
    span = scored[1][1]
    return span.end - span.start + 1


def _digest(passage: Passage, kept: Sequence[_Scored], order: Order) -> Digest:
    """The digest of a passage from the sentences that are `kept`, given best first."""
    spans = [span for _, (_, span) in kept]
    if order == "passage":
        spans.sort(key=lambda span: span.start)
    return Digest(passage.id, " ".join(quote(passage.text, span) for span in spans), tuple(spans))
