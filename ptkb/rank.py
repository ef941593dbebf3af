"""Which facts matter for an utterance: Sentence-BERT relevance, in the context of the conversation.

Follows Generate-Retrieve-Generate (iKAT 2023), section 2.2.1. What is compared, and the constants below, were chosen on
the train topics of TREC iKAT 2023 and the organisers' labels; docs/results/ptkb.md has the trials.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from assistant.protocols import Embedder
from assistant.types import Exchange, Fact, RankedFact

Vectors = NDArray[np.float32]

# How much an utterance counts that was said n turns ago (its square for n = 2, and so on), and the last reply.
DECAY = 0.5
LAST_REPLY = 0.7
# An exchange less similar to the utterance than this was about something else, and is no context of it.
SAME_TOPIC = 0.1
EXCHANGES = 3
# "What about iron?" is the utterance before once more, of something else.
SAME_AGAIN = re.compile(r"^(?:(?:and|but|or|so|ok|okay),? )?(?:what|how) about\b", re.IGNORECASE)
# A reply's beginning says what it is about; the rest only costs time.
REPLY_CHARS = 400
CACHED = 5_000


def rank(
    facts: Sequence[Fact],
    utterance: str,
    history: tuple[Exchange, ...],
    embedder: Embedder,
    threshold: float,
    most: int,
    few: int = 0,
) -> tuple[RankedFact, ...]:
    """The facts that are on, most relevant first; at most `most` are used, those with `threshold` or more.

    All are told to the model where their texts together have at most `few` characters.

    The relevance of a fact is its cosine to the utterance or, weighed down, to what was said just before, whichever is
    greatest. So a follow-up ("Is the second one better?") keeps the facts of its topic.
    """
    on = [fact for fact in facts if fact.on]
    if not on:
        return ()
    scores = relevance([fact.text for fact in on], utterance, history, embedder)
    ranked = ranked_by(scores, on, threshold, most)
    told = sum(len(fact.text) for fact in on) <= few
    return tuple(replace(fact, told=told) for fact in ranked)


def ranked_by(
    scores: NDArray[np.float32], facts: Sequence[Fact], threshold: float, most: int
) -> tuple[RankedFact, ...]:
    """The facts by their scores, the greatest first; at most `most` are used, those with `threshold` or more."""
    order = np.argsort(-scores, kind="stable")
    return tuple(
        RankedFact(facts[at].id, facts[at].text, float(scores[at]), used=bool(place < most and scores[at] >= threshold))
        for place, at in enumerate(order)
    )


def relevance(
    texts: Sequence[str], utterance: str, history: tuple[Exchange, ...], embedder: Embedder
) -> NDArray[np.float32]:
    """The relevance of each text, shape (len(texts),), in [-1, 1]."""
    recent = history[: -EXCHANGES - 1 : -1]
    replies_said = ((one.reply or one.utterance)[:REPLY_CHARS] for one in recent)
    said = [utterance, *(one.utterance for one in recent), *replies_said]
    vectors = _CACHE.encode([*texts, *said], embedder)
    facts, said_now, before = vectors[: len(texts)], vectors[len(texts)], vectors[len(texts) + 1 :]
    utterances, replies = before[: len(recent)], before[len(recent) :]
    again = bool(SAME_AGAIN.match(utterance))
    parts = [facts @ said_now]
    for turns_ago, (asked, replied) in enumerate(zip(utterances, replies, strict=True), start=1):
        last = turns_ago == 1
        if (again and last) or max(asked @ said_now, replied @ said_now) >= SAME_TOPIC:
            parts.append(DECAY ** (turns_ago - again) * (facts @ asked))
            if last:
                parts.append(LAST_REPLY * (facts @ replied))
    best: NDArray[np.float32] = np.max(parts, axis=0)
    return best


class VectorCache:
    """Embeddings of the texts used last, at most `most` of them. Safe to use from several threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[str, str], Vectors] = OrderedDict()
        self._lock = Lock()

    def encode(self, texts: Sequence[str], embedder: Embedder) -> Vectors:
        """As `embedder.encode`, shape (len(texts), dimension), with one call for the texts that are new."""
        keys = {text: (embedder.name, text) for text in texts}
        with self._lock:
            known = {text: self._kept[key] for text, key in keys.items() if key in self._kept}
        new = [text for text in keys if text not in known]
        if new:
            known.update(zip(new, embedder.encode(new), strict=True))
        with self._lock:
            for text, key in keys.items():
                self._kept[key] = known[text]
                self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return np.stack([known[text] for text in texts])


# Facts hardly change from turn to turn, and encoding fifty of them takes longer than all the rest of the ranking.
_CACHE = VectorCache(CACHED)
