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
from ptkb.extract import only_states_facts


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
    talk_indices = [
        n for n, intent in enumerate(predicted) if intent in TALK and not only_states_facts(rows[n].text, embedder)
    ]
    answered_flags = answered([rows[n].text for n in talk_indices]) if answered else []
    for n, is_answered in zip(talk_indices, answered_flags, strict=False):
        predicted[n] = "question" if is_answered else predicted[n]
    predicted_intents, true_intents = np.array(predicted), np.array([row.intent for row in rows])
    is_question, is_writing = true_intents == "question", true_intents == "writing"
    summary = {
        "messages": len(rows),
        "threshold": knobs.intent_threshold,
        "gate_accuracy": float(((predicted_intents == "question") == is_question).mean()),
        "accuracy": float((predicted_intents == true_intents).mean()),
        "questions": int(is_question.sum()),
        "questions_withheld": int((is_question & (predicted_intents != "question")).sum()),
        "writing": int(is_writing.sum()),
        "writing_found": int((is_writing & (predicted_intents == "writing")).sum()),
        **({"looked_up": len(answered_flags), "answered": sum(answered_flags)} if answered else {}),
        "writing_wrongly": int((~is_writing & (predicted_intents == "writing")).sum()),
    }
    numbered_rows = enumerate(zip(rows, predicted, strict=True), 1)
    return summary, [{"id": str(n), **row.model_dump(), "found": intent} for n, (row, intent) in numbered_rows]
