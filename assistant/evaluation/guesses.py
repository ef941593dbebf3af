"""Measures the model's own answers where the library has none: how many are given as the reply, and are right.

One row: {"id", "question", "reply", "gold", "held": true, "guess": false}; `held` is whether the gold answer is in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from assistant.experiment.datasets import Question
from assistant.experiment.measures import answer_recall, share_passed
from assistant.experiment.runs import Row
from assistant.experiment.task import Rows, Summary, Task
from assistant.protocols import Parts
from assistant.steps import closed_book
from assistant.types import Answer, Turn


@dataclass(frozen=True)
class Guesses(Task[Question, Parts]):
    """The model's own answers to `items`, of the file `questions`; `threshold` is the setting `turn.guess_below`."""

    title = "Guesses"
    claim_fields = ("questions", "model", "threshold")
    questions: Path
    items: Mapping[str, Question]
    model: str
    threshold: float

    def row(self, item: Question, parts: Parts) -> Row:
        """See `Task`."""
        *_, turn = closed_book.run(Turn(item.text, question=item.text), parts, Event())
        reply = turn.own_answer or (turn.answer or Answer("")).text
        return {
            "id": item.id,
            "question": item.text,
            "reply": reply,
            "gold": list(item.answers),
            "held": bool(answer_recall(reply, item.answers)),
            "guess": bool(turn.own_answer),
        }

    def summarise(self, rows: Rows) -> Summary:
        """The share that is given as the reply, and of replies and of guesses those that hold the gold answer."""
        item_rows = [rows[question_id] for question_id in self.items]
        flags_by_name = {
            "told": [not row["guess"] for row in item_rows],
            "gold answer in what is told": [row["held"] for row in item_rows if not row["guess"]],
            "gold answer in a guess": [row["held"] for row in item_rows if row["guess"]],
        }
        shares = {name: share_passed(flags) for name, flags in flags_by_name.items() if flags}
        return {"questions": len(item_rows), "measures": shares}
