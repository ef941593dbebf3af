"""Measures whole chat turns on questions whose answers are known: the form that people get, on a library of its own.

A short answer can be compared with the gold answer; a chat reply is looked through for it. What counts beside that is
what a reply rests on: cited passages, or the model's own knowledge. One row:

    {"id": "q1", "question": "...", "reply": "It lies in ... [1]", "gold": ["..."], "unanswerable": false,
     "gold_found": true, "confidence": 0.83, "held": true, "cited": true, "right_source": true, "own": false,
     "citations": [{"n": 1, "passage_id": "...", "sentence": "It lies in ...", "quote": "..."}],
     "looked_again": true, "set_aside": false, "fallback": false, "quoted": false,
     "prompt_tokens": 790, "completion_tokens": 61, "seconds": 8.2}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pandas import DataFrame

from assistant.errors import DataError
from assistant.experiment.conditions import model_of
from assistant.experiment.datasets import Question
from assistant.experiment.measures import answer_recall, paired_difference, share_passed
from assistant.experiment.runs import Row
from assistant.experiment.task import Rows, Summary, Task, claim_of_fields
from assistant.ikat.play import finish_turn, without_small_talk
from assistant.protocols import Parts
from assistant.settings import Settings
from assistant.text.markers import extract_markers
from assistant.types import Choices, Turn

# The settings that decide a reply; the others say where things lie and how the page looks.
_DECIDING_SETTINGS = {"turn", "relevance", "retrieve", "facts"}


# Shares by name: the rows that it is of, and those among them that count, as pandas' expressions.
MEASURES = {
    "gold answer in the reply": ("not unanswerable", "held"),
    "gold answer in a reply that is cited": ("not unanswerable", "held and cited"),
    "cited, without the gold answer": ("not unanswerable", "cited and not held"),
    "from the model's own knowledge": ("not unanswerable", "own"),
    "no answer": ("not unanswerable", "not cited and not own"),
    "gold passage cited, of what is cited": ("not unanswerable and cited", "right_source"),
    "the fallback was tried": ("not unanswerable", "fallback"),
    "gold answer in the reply, where it was tried": ("not unanswerable and fallback", "held and cited"),
    "a reply was set aside": ("not unanswerable", "set_aside"),
    "a sentence was quoted": ("not unanswerable", "quoted"),
    "unanswerable: cited all the same": ("unanswerable", "cited"),
}


@dataclass(frozen=True)
class Chat(Task[Question, Parts]):
    """Whole turns on `items`, which are of the file `questions`; `other_rows` are the rows of another run."""

    corpus: Path
    questions: Path
    items: Mapping[str, Question]
    choices: Choices
    settings: Settings
    seed: int = 0
    other_rows: Rows | None = None

    def claim(self) -> Row:
        """See `Task`."""
        settings = self.settings.model_dump(mode="json", include=_DECIDING_SETTINGS)
        decided = claim_of_fields(self, "corpus", "questions")
        decided |= claim_of_fields(self.choices, "loop", "strategy", "k", "retriever")
        return {**decided, "model": model_of(self.settings), "settings": settings}

    def row(self, item: Question, parts: Parts) -> Row:
        """See `Task`.

        Raises:
            DataError: the question could not be answered; the next run goes on with it.
        """
        turn = Turn(item.text, choices=self.choices, id=item.id)
        return row_of(item, finish_turn(turn, without_small_talk(parts), f"Question {item.id}"))

    def summarise(self, rows: Rows) -> Summary:
        """Each measure as a share with its 95 % interval (Wilson's), the seconds and the tokens.

        Beside another run each measure also has the paired difference to it, over the questions that count for it in
        both, with its 95 % bootstrap interval.

        Raises:
            DataError: the other run lacks a question.
        """
        other_ids = self.items if self.other_rows is None else self.other_rows
        if missing_ids := [question_id for question_id in self.items if question_id not in other_ids]:
            raise DataError(f"The other run has no question '{missing_ids[0]}'; compare runs on the same sample.")
        mine, theirs = (
            DataFrame([run_rows[question_id] for question_id in self.items])
            for run_rows in (rows, self.other_rows or rows)
        )
        shares = {
            name: self._share(mine.query(condition), theirs.query(condition), criterion)
            for name, (condition, criterion) in MEASURES.items()
            if len(mine.query(condition))
        }
        costs = {name: median(mine[name].tolist()) for name in ("seconds", "prompt_tokens", "completion_tokens")}
        return {"questions": len(mine), "measures": shares, **costs}

    def _share(self, mine: DataFrame, theirs: DataFrame, criterion: str) -> Summary:
        share: Summary = share_passed(mine.eval(criterion).tolist())
        common_index = mine.index.intersection(theirs.index)
        if self.other_rows is not None and len(common_index):
            ours, theirs_counted = (table.loc[common_index].eval(criterion).astype(float) for table in (mine, theirs))
            share["difference"] = paired_difference(list(ours), list(theirs_counted), self.seed)
        return share


def row_of(question: Question, turn: Turn) -> Row:
    """What is counted of one turn at its end."""
    reply = turn.answer.text if turn.answer else ""
    from_model = turn.answer is not None and turn.answer.origin == "model" and not turn.answer.unknown
    return {
        "id": question.id,
        "question": question.text,
        "reply": reply,
        "gold": list(question.answers),
        "unanswerable": question.unanswerable,
        "gold_found": any(passage.id in question.gold for passage in turn.passages),
        "confidence": turn.confidence.value if turn.confidence else None,
        "held": bool(answer_recall(extract_markers(reply, max_number=len(turn.passages)).text, question.answers)),
        "cited": bool(turn.citations),
        "right_source": any(citation.passage_id in question.gold for citation in turn.citations),
        "own": from_model,
        "citations": [
            {"n": c.n, "passage_id": c.passage_id, "sentence": c.sentence, "quote": c.quote} for c in turn.citations
        ],
        "looked_again": "addresses" in turn.timings,
        "set_aside": turn.has_event("set_aside"),
        "fallback": "fallback" in turn.timings,
        "quoted": turn.has_event("quoted"),
        "prompt_tokens": turn.tokens.prompt,
        "completion_tokens": turn.tokens.completion,
        "seconds": round(turn.seconds, 3),
    }
