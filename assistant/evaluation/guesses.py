"""Measures what the model says by itself where the library has no answer: how much of it is told, and right.

One row: {"id", "question", "reply", "gold", "held": true, "guess": false}; `held` is whether the gold answer is in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from assistant.experiment.datasets import Question
from assistant.experiment.measures import answer_recall, counted
from assistant.experiment.runs import Row
from assistant.experiment.task import Rows, Summary, Task
from assistant.protocols import Parts
from assistant.steps import closed_book
from assistant.types import Answer, Turn


@dataclass(frozen=True)
class Guesses(Task[Question, Parts]):
    """The model's own answers to `items`, of the file `questions`; `threshold` is the setting `turn.guess_below`."""

    title = "Guesses"
    decides = ("questions", "model", "threshold")
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
        """The share that is told as a reply, and of replies and of guesses those that hold the gold answer."""
        of_all = [rows[one] for one in self.items]
        told, guessed = ([row["held"] for row in of_all if row["guess"] == guess] for guess in (False, True))
        shares = {"told": counted([not row["guess"] for row in of_all])}
        named = {"gold answer in what is told": told, "gold answer in a guess": guessed}
        return {
            "questions": len(of_all),
            "measures": shares | {name: counted(one) for name, one in named.items() if one},
        }
