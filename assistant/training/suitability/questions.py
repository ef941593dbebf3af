"""Lends pairs without a question one that fits: what was asked where a text most like theirs is told.

So the reader meets what it knows of things in replies, too. Only questions are lent of which some reply clashes with a
fact: they ask for something to have or do, so that what a text offers stays an offer. What offers nothing by itself
gets none, since there it may.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np

from assistant.protocols import Embedder
from assistant.training.suitability.written import TELLING, Written

# The share of the pairs that are lent one; the others are learned as they are.
SHARE = 0.5
# Pairs whose questions are looked for together.
_TOGETHER = 512


def lend(pairs: Sequence[Written], replies: Sequence[Written], embedder: Embedder, random: Random) -> list[Written]:
    """The pairs in their order, some of them, drawn at random, with a question of the `replies`."""
    asking = {one.question for one in replies if one.clash}
    offering = [one for one in replies if one.question in asking]
    told = embedder.encode([one.text for one in offering])
    lent = list(pairs)
    drawn = [n for n, one in enumerate(pairs) if one.kind != TELLING and random.random() < SHARE]
    for start in range(0, len(drawn), _TOGETHER):
        some = drawn[start : start + _TOGETHER]
        nearest = np.argmax(embedder.encode([pairs[n].text for n in some]) @ told.T, axis=1)
        for n, place in zip(some, nearest, strict=True):
            lent[n] = replace(pairs[n], question=offering[place].question)
    return lent
