"""Which facts a reply depends on: only those are named as its reason.

It depends on a fact for which something was left out. It also depends on a fact that the model was told and that helps
to explain the reply: a sentence of the reply is nearer to the question with the fact than to the question alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from threading import Event

import numpy as np
from numpy.typing import NDArray

from assistant.protocols import Embedder, Parts
from assistant.text.markers import read
from assistant.text.sentences import quote, sentences
from assistant.types import Turn

# How much nearer (cosine) the question with the fact has to be, chosen for the best F1 on the train topics of TREC iKAT
# 2023, whose responses name the facts that they draw on; docs/results/because.md has the trials.
GAIN = 0.1


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Marks in `facts` whether the answer depends on each, of those that were used or that something was left out for.

    What the question took from a fact counts as well: a first message is compared as it was put, not as it was
    written anew with the facts.
    """
    if turn.facts and turn.answer and not stop.is_set():
        asked = turn.question if turn.history else turn.utterance
        ruled = {one.fact for one in turn.left_out}
        gained = gains(turn.told_facts, asked, read(turn.answer.text).text, parts.embedder)
        shows = dict(zip(turn.told_facts, (gained >= GAIN).tolist(), strict=True)) | dict.fromkeys(ruled, True)
        turn = replace(turn, facts=tuple(replace(fact, shows=shows.get(fact.text)) for fact in turn.facts))
    yield turn


def gains(facts: Sequence[str], question: str, reply: str, embedder: Embedder) -> NDArray[np.float32]:
    """By how much each fact brings the question nearer to the reply, or to a sentence of it; shape (len(facts),)."""
    if not facts:
        return np.zeros(0, np.float32)
    said = [reply, *(quote(reply, span) for span in sentences(reply))]
    vectors = embedder.encode([*said, question, *(f"{fact} {question}" for fact in facts)])
    replies, alone, with_fact = vectors[: len(said)], vectors[len(said)], vectors[len(said) + 1 :]
    best: NDArray[np.float32] = (with_fact @ replies.T - replies @ alone).max(axis=1)
    return best
