"""Ranks facts by their relevance to an utterance, by Sentence-BERT and in the context of the conversation.

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
LAST_REPLY_WEIGHT = 0.7
# An exchange less similar to the utterance than this was about something else, and is no context of it.
MIN_TOPIC_SIMILARITY = 0.1
MAX_EXCHANGES = 3
# "What about iron?" repeats the last utterance about something else.
ELLIPTICAL_QUESTION = re.compile(r"^(?:(?:and|but|or|so|ok|okay),? )?(?:what|how) about\b", re.IGNORECASE)
# The beginning of a reply says what it is about; the rest would only cost time.
REPLY_CHARS = 400
CACHE_SIZE = 5_000


def rank(
    facts: Sequence[Fact],
    utterance: str,
    history: tuple[Exchange, ...],
    embedder: Embedder,
    threshold: float,
    max_facts: int,
    max_chars_to_tell_all: int = 0,
) -> tuple[RankedFact, ...]:
    """The facts that are on, most relevant first; at most `max_facts` with a relevance of `threshold` or more are used.

    If their texts together have at most `max_chars_to_tell_all` characters, the model is given all of them.

    The relevance of a fact is its highest cosine to the utterance or, with less weight, to what was said just before.
    So a follow-up ("Is the second one better?") keeps the facts of its topic.
    """
    active_facts = [fact for fact in facts if fact.on]
    if not active_facts:
        return ()
    scores = relevance([fact.in_english for fact in active_facts], utterance, history, embedder)
    ranked = ranked_by(scores, active_facts, threshold, max_facts)
    tell_all = sum(len(fact.in_english) for fact in active_facts) <= max_chars_to_tell_all
    return tuple(replace(fact, told=tell_all) for fact in ranked)


def ranked_by(
    scores: NDArray[np.float32], facts: Sequence[Fact], threshold: float, max_facts: int
) -> tuple[RankedFact, ...]:
    """The facts by their scores, the highest first; at most `max_facts` with scores of `threshold` or more are used."""
    order = np.argsort(-scores, kind="stable")
    used = (scores >= threshold) & np.isin(np.arange(len(scores)), order[:max_facts])
    return tuple(RankedFact(facts[n].id, facts[n].in_english, float(scores[n]), used=bool(used[n])) for n in order)


def relevance(
    texts: Sequence[str], utterance: str, history: tuple[Exchange, ...], embedder: Embedder
) -> NDArray[np.float32]:
    """The relevance of each text, shape (len(texts),), in [-1, 1]."""
    recent = history[: -MAX_EXCHANGES - 1 : -1]
    earlier = [exchange.utterance for exchange in recent]
    earlier += [(exchange.reply or exchange.utterance)[:REPLY_CHARS] for exchange in recent]
    vectors = _CACHE.encode([*texts, utterance, *earlier], embedder)
    facts, current, context = vectors[: len(texts)], vectors[len(texts)], vectors[len(texts) + 1 :]
    utterances, replies = context[: len(recent)], context[len(recent) :]
    repeats = bool(ELLIPTICAL_QUESTION.match(utterance))
    similarities = [facts @ current]
    for turns_ago, (utterance_vector, reply_vector) in enumerate(zip(utterances, replies, strict=True), start=1):
        last = turns_ago == 1
        if (repeats and last) or max(utterance_vector @ current, reply_vector @ current) >= MIN_TOPIC_SIMILARITY:
            similarities.append(DECAY ** (turns_ago - repeats) * (facts @ utterance_vector))
            if last:
                similarities.append(LAST_REPLY_WEIGHT * (facts @ reply_vector))
    relevances: NDArray[np.float32] = np.max(similarities, axis=0)
    return relevances


class VectorCache:
    """Embeddings of the texts used last, at most `max_texts` of them. Safe to use from several threads."""

    def __init__(self, max_texts: int) -> None:
        self._max_texts = max_texts
        self._vectors: OrderedDict[tuple[str, str], Vectors] = OrderedDict()
        self._lock = Lock()

    def encode(self, texts: Sequence[str], embedder: Embedder) -> Vectors:
        """As `embedder.encode`, shape (len(texts), dimension), with one call for the texts that are new."""
        keys = {text: (embedder.name, text) for text in texts}
        with self._lock:
            known_vectors = {text: self._vectors[key] for text, key in keys.items() if key in self._vectors}
        new_texts = [text for text in keys if text not in known_vectors]
        if new_texts:
            known_vectors.update(zip(new_texts, embedder.encode(new_texts), strict=True))
        with self._lock:
            for text, key in keys.items():
                self._vectors[key] = known_vectors[text]
                self._vectors.move_to_end(key)
            while len(self._vectors) > self._max_texts:
                self._vectors.popitem(last=False)
        return np.stack([known_vectors[text] for text in texts])


# Facts hardly change from turn to turn, and encoding fifty of them takes longer than all the rest of the ranking.
_CACHE = VectorCache(CACHE_SIZE)
