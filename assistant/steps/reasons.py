"""Which facts a reply depends on, so that only those are named as its reasons.

A reply depends on a fact if something was left out because of it. It also depends on a fact that the model was given if
the fact helps to explain the reply: a sentence of the reply is nearer to fact and question than to the question alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from threading import Event

import numpy as np
from numpy.typing import NDArray

from assistant.protocols import Embedder, Parts
from assistant.text.markers import extract_markers
from assistant.text.sentences import quote, sentences
from assistant.types import Turn

# How much nearer (in cosine) question and fact have to be than the question alone. Chosen for the best F1 on the train
# topics of TREC iKAT 2023, whose responses name the facts that they draw on; docs/results/because.md has the trials.
GAIN = 0.1


def run(turn: Turn, parts: Parts, stop: Event) -> Iterator[Turn]:
    """Sets `shows` of each fact that the model was given or because of which something was left out.

    A first message is compared as it was asked, not as it was rewritten with the facts. So what the rewritten question
    took from a fact counts as a dependence, too.
    """
    if turn.facts and turn.answer and not stop.is_set():
        question = turn.question if turn.history else turn.request
        excluding_facts = {left_out.fact for left_out in turn.left_out}
        fact_gains = gains(turn.told_facts, question, extract_markers(turn.answer.text).text, parts.embedder)
        shows = dict(zip(turn.told_facts, (fact_gains >= GAIN).tolist(), strict=True)) | dict.fromkeys(
            excluding_facts, True
        )
        turn = replace(turn, facts=tuple(replace(fact, shows=shows.get(fact.text)) for fact in turn.facts))
    yield turn


def gains(facts: Sequence[str], question: str, reply: str, embedder: Embedder) -> NDArray[np.float32]:
    """How much nearer each fact brings the question to the reply or one of its sentences; shape (len(facts),)."""
    if not facts:
        return np.zeros(0, np.float32)
    texts = [reply, *(quote(reply, span) for span in sentences(reply))]
    vectors = embedder.encode([*texts, question, *(f"{fact} {question}" for fact in facts)])
    reply_vectors, question_vector, fact_vectors = vectors[: len(texts)], vectors[len(texts)], vectors[len(texts) + 1 :]
    best_gains: NDArray[np.float32] = (fact_vectors @ reply_vectors.T - reply_vectors @ question_vector).max(axis=1)
    return best_gains
