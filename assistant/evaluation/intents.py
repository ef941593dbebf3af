"""Measures the classification of messages into questions, small talk, conversation and writing, on labelled messages.

One record: {"text": "What is the capital of Norway?", "intent": "question", "split": "test"}.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from assistant.experiment.datasets import Record
from assistant.experiment.runs import Row
from assistant.experiment.task import Summary
from assistant.protocols import Embedder
from assistant.settings import TurnSettings
from assistant.steps.intent import TALK, intent_of
from ptkb.extract import only_tells


class Message(Record):
    """A message, its intent, and its split of the file."""

    text: str
    intent: str
    split: str
    no_such, what, give = "not a labelled message", "lines", "dev, test, or empty for both"


def measure(
    rows: Sequence[Message],
    embedder: Embedder,
    knobs: TurnSettings,
    answered: Callable[[Sequence[str]], list[bool]] | None,
) -> tuple[Summary, list[Row]]:
    """Accuracy, withheld questions and recognised writing, and a row for each message; `answered` looks up talk."""
    predicted = [intent_of(row.text, embedder, knobs) for row in rows]
    talk = [n for n, got in enumerate(predicted) if got in TALK and not only_tells(rows[n].text, embedder)]
    asks = answered([rows[n].text for n in talk]) if answered else []
    for n, is_answered in zip(talk, asks, strict=False):
        predicted[n] = "question" if is_answered else predicted[n]
    got, meant = np.array(predicted), np.array([row.intent for row in rows])
    is_question, written = meant == "question", meant == "writing"
    summary = {
        "messages": len(rows),
        "threshold": knobs.intent_threshold,
        "gate_accuracy": float(((got == "question") == is_question).mean()),
        "accuracy": float((got == meant).mean()),
        "questions": int(is_question.sum()),
        "questions_withheld": int((is_question & (got != "question")).sum()),
        "writing": int(written.sum()),
        "writing_found": int((written & (got == "writing")).sum()),
        **({"looked_up": len(asks), "answered": sum(asks)} if answered else {}),
        "writing_wrongly": int((~written & (got == "writing")).sum()),
    }
    pairs = enumerate(zip(rows, predicted, strict=True), 1)
    return summary, [{"id": str(n), **row.model_dump(), "found": intent} for n, (row, intent) in pairs]
