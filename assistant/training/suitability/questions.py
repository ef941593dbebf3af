"""Lends pairs without a question one that fits: that of the reply whose text is most like theirs.

So the reader meets what it knows of things in replies, too. Only questions are lent of which some reply clashes with a
fact: they ask for something to have or do, so that what a text offers stays an offer. A text that offers nothing
by itself gets none, since as a reply to such a question it may offer something.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np

from assistant.protocols import Embedder
from assistant.training.suitability.written import TELLING, WrittenPair

# The share of the pairs that are lent one; the others are learned as they are.
LENT_SHARE = 0.5
# Pairs whose questions are looked for together.
_BATCH = 512


def lend_questions(
    pairs: Sequence[WrittenPair], replies: Sequence[WrittenPair], embedder: Embedder, random: Random
) -> list[WrittenPair]:
    """The pairs in their order, some of them, drawn at random, with a question of the `replies`."""
    clash_questions = {reply.question for reply in replies if reply.clash}
    offering_replies = [reply for reply in replies if reply.question in clash_questions]
    reply_vectors = embedder.encode([reply.text for reply in offering_replies])
    lent_pairs = list(pairs)
    drawn_positions = [n for n, pair in enumerate(pairs) if pair.kind != TELLING and random.random() < LENT_SHARE]
    for start in range(0, len(drawn_positions), _BATCH):
        positions = drawn_positions[start : start + _BATCH]
        nearest_replies = np.argmax(embedder.encode([pairs[n].text for n in positions]) @ reply_vectors.T, axis=1)
        for n, reply_position in zip(positions, nearest_replies, strict=True):
            lent_pairs[n] = replace(pairs[n], question=offering_replies[reply_position].question)
    return lent_pairs
