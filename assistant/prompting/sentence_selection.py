"""Cuts passages down to their most useful sentences.

Either Sentence-BERT selects 512 characters of each passage (GRG, section 2.2.3), or the relevance estimator selects so
many characters of all passages together. The estimator keeps the answer in less text, which the model reads sooner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
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
    candidates = _sentences(passages)
    if not candidates:
        return tuple(Digest(passage.id, "") for passage in passages)
    vectors = embedder.encode([question, *(sentence.text for sentence in candidates)])
    scored = _scored(candidates, (vectors[1:] @ vectors[0]).tolist())
    return tuple(_digest(passage, _best(_in_passage(n, scored), chars), order) for n, passage in enumerate(passages))


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
    candidates = _sentences(passages)
    texts = [
        replace(
            passages[sentence.passage], id=f"{passages[sentence.passage].id} {sentence.span.start}", text=sentence.text
        )
        for sentence in candidates
    ]
    estimates = [estimator.estimate(question, texts, stop) for question in questions]
    scored = _scored(
        candidates,
        [
            fmean(estimate.score for estimate in sentence_estimates)
            for sentence_estimates in zip(*estimates, strict=True)
        ],
    )
    selected = [sentence for n in range(len(passages)) for sentence in _best(_in_passage(n, scored), chars=0)]
    chars -= sum(sentence.length for sentence in selected)
    selected += _best([sentence for sentence in scored if sentence not in selected], chars, at_least=0)
    return tuple(_digest(passage, _in_passage(n, selected), order) for n, passage in enumerate(passages))


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence: the number of its passage, its span there, its text and its score."""

    passage: int
    span: Span
    text: str
    score: float = 0.0

    @property
    def length(self) -> int:
        """Its characters, with the space behind it."""
        return len(self.text) + 1


def _sentences(passages: Sequence[Passage]) -> list[_Sentence]:
    return [
        _Sentence(n, span, quote(passage.text, span))
        for n, passage in enumerate(passages)
        for span in sentences(passage.text)
    ]


def _scored(candidates: Sequence[_Sentence], scores: Sequence[float]) -> list[_Sentence]:
    return [replace(sentence, score=score) for sentence, score in zip(candidates, scores, strict=True)]


def _in_passage(passage_index: int, scored: Sequence[_Sentence]) -> list[_Sentence]:
    """The sentences of one passage."""
    return [sentence for sentence in scored if sentence.passage == passage_index]


def _best(scored: Sequence[_Sentence], chars: int, at_least: int = 1) -> list[_Sentence]:
    """The best sentences up to the first that doesn't fit into `chars` characters, but always `at_least` so many."""
    selected: list[_Sentence] = []
    for sentence in sorted(scored, key=lambda sentence: (-sentence.score, sentence.passage, sentence.span.start)):
        if len(selected) >= at_least and sentence.length - 1 > chars:
            break
        selected.append(sentence)
        chars -= sentence.length
    return selected


def _digest(passage: Passage, selected: Sequence[_Sentence], order: Order) -> Digest:
    """The digest of a passage from the sentences `selected`, given best first."""
    ordered = sorted(selected, key=lambda sentence: sentence.span.start) if order == "passage" else selected
    text = ordered[0].text if ordered else ""
    for sentence, next_sentence in pairwise(ordered):
        text += _glue(passage.text, sentence.span, next_sentence.span) + next_sentence.text
    return Digest(passage.id, text, tuple(sentence.span for sentence in ordered))


def _glue(text: str, span: Span, next_span: Span) -> str:
    """What stands between two sentences of a text in a digest: a line break if they are of different lines."""
    first, last = sorted((span, next_span), key=attrgetter("start"))
    return "\n" if "\n" in text[first.end : last.start] else " "
