"""Measures whole chat turns on questions whose answers are known: the form that people get, on a library of its own.

A short answer can be compared with the gold answer; a chat reply is looked through for it. What counts beside that is
what a reply rests on: cited passages, or the model's own knowledge. One row:

    {"id": "q1", "question": "...", "reply": "It lies in ... [1]", "gold": ["..."], "unanswerable": false,
     "gold_found": true, "confidence": 0.83, "held": true, "cited": true, "right_source": true, "own": false,
     "looked_again": true, "set_aside": false, "fallback": false, "quoted": false,
     "prompt_tokens": 790, "completion_tokens": 61, "seconds": 8.2}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from threading import Event
from typing import Any

from assistant import turn as flow
from assistant.errors import DataError, SequiturError
from assistant.experiment.datasets import Question, fingerprint
from assistant.experiment.grid import grid
from assistant.experiment.measures import answer_recall, paired_difference, share
from assistant.experiment.runs import Row, Run
from assistant.ikat.play import searching
from assistant.protocols import Parts, Progress
from assistant.settings import Settings
from assistant.text.markers import read
from assistant.types import Choices, Turn

# The settings that decide a reply; the others say where things lie and how the page looks.
_DECIDING = {"turn", "relevance", "retrieve", "facts"}


@dataclass(frozen=True, slots=True)
class Measure:
    """A share of some rows: of which, and whether a row counts."""

    name: str
    of: Callable[[Row], bool]
    counts: Callable[[Row], bool]


def _answerable(row: Row) -> bool:
    return not row["unanswerable"]


def _unanswerable(row: Row) -> bool:
    return bool(row["unanswerable"])


MEASURES = (
    Measure("gold answer in the reply", _answerable, lambda row: row["held"]),
    Measure("gold answer in a reply that is cited", _answerable, lambda row: row["held"] and row["cited"]),
    Measure("cited, without the gold answer", _answerable, lambda row: row["cited"] and not row["held"]),
    Measure("from the model's own knowledge", _answerable, lambda row: row["own"]),
    Measure("no answer", _answerable, lambda row: not row["cited"] and not row["own"]),
    Measure("gold passage cited, of what is cited", lambda row: _answerable(row) and row["cited"],
            lambda row: row["right_source"]),
    Measure("the fallback was tried", _answerable, lambda row: row["fallback"]),
    Measure("gold answer in the reply, where it was tried", lambda row: _answerable(row) and row["fallback"],
            lambda row: row["held"] and row["cited"]),
    Measure("a reply was set aside", _answerable, lambda row: row["set_aside"]),
    Measure("a sentence was quoted", _answerable, lambda row: row["quoted"]),
    Measure("unanswerable: cited all the same", _unanswerable, lambda row: row["cited"]),
)  # fmt: skip


def open_run(folder: Path, corpus: Path, questions: Path, choices: Choices, knobs: Settings, model: str) -> Run[str]:
    """The folder of this run.

    Raises:
        DataError: the folder holds a run on other questions, or one that was answered otherwise.
    """
    asked = {
        "corpus": corpus.name,
        "questions": fingerprint(questions),
        "model": model,
        "settings": knobs.model_dump(mode="json", include=_DECIDING),
        **{name: getattr(choices, name) for name in ("loop", "strategy", "k", "retriever")},
    }
    return Run(folder, asked, lambda row: str(row["id"]))


def measure(questions: Sequence[Question], choices: Choices, run: Run[str], parts: Parts, progress: Progress) -> None:
    """Ask what the run's rows lack.

    Raises:
        DataError: a question could not be answered; the message names it, and the next run goes on with it.
    """
    parts = searching(parts)
    jobs = [(one.id, lambda one=one: _row(one, choices, parts)) for one in questions]
    run.fill(jobs, len(jobs), progress)


def _row(question: Question, choices: Choices, parts: Parts) -> Row:
    turn = Turn(question.text, choices=choices, id=question.id)
    try:
        *_, turn = flow.run(turn, parts, Event())
    except SequiturError as error:
        raise DataError(f"Question {question.id}: {error}") from error
    if turn.status == "failed":
        raise DataError(f"Question {question.id}: {turn.error}")
    return row_of(question, turn)


def row_of(question: Question, turn: Turn) -> Row:
    """What is counted of one turn at its end."""
    reply = turn.answer.text if turn.answer else ""
    own = turn.answer is not None and turn.answer.origin == "model" and not turn.answer.unknown
    return {
        "id": question.id,
        "question": question.text,
        "reply": reply,
        "gold": list(question.answers),
        "unanswerable": question.unanswerable,
        "gold_found": any(passage.id in question.gold for passage in turn.passages),
        "confidence": turn.confidence.value if turn.confidence else None,
        "held": bool(answer_recall(read(reply, most=len(turn.passages)).text, question.answers)),
        "cited": bool(turn.citations),
        "right_source": any(citation.passage_id in question.gold for citation in turn.citations),
        "own": own,
        "looked_again": "addresses" in turn.timings,
        "set_aside": turn.has_event("set_aside"),
        "fallback": "fallback" in turn.timings,
        "quoted": turn.has_event("quoted"),
        "prompt_tokens": turn.tokens.prompt,
        "completion_tokens": turn.tokens.completion,
        "seconds": round(turn.seconds, 3),
    }


def summarise(
    questions: Sequence[Question], rows: Mapping[str, Row], beside: Mapping[str, Row] | None = None, seed: int = 0
) -> dict[str, Any]:
    """Each measure as a share with its 95 % interval (Wilson's), the seconds and the tokens.

    Where the rows of another run are given, each measure also has the paired difference to it, over the questions that
    count for it in both, with its 95 % bootstrap interval.

    Raises:
        DataError: the other run lacks a question.
    """
    mine = [rows[one.id] for one in questions]
    if beside is not None and (lacking := [one.id for one in questions if one.id not in beside]):
        raise DataError(f"The other run has no question '{lacking[0]}'; compare runs on the same sample.")
    theirs = [beside[one.id] for one in questions] if beside is not None else []
    return {
        "questions": len(mine),
        "measures": {one.name: _shared(one, mine, theirs, seed) for one in MEASURES if any(map(one.of, mine))},
        "seconds": median(row["seconds"] for row in mine),
        "prompt_tokens": median(row["prompt_tokens"] for row in mine),
        "completion_tokens": median(row["completion_tokens"] for row in mine),
    }


def _shared(measure: Measure, mine: Sequence[Row], theirs: Sequence[Row], seed: int) -> dict[str, Any]:
    counted = [bool(measure.counts(row)) for row in mine if measure.of(row)]
    found = {**asdict(share(counted)), "n": len(counted)}
    both = [(a, b) for a, b in zip(mine, theirs, strict=False) if measure.of(a) and measure.of(b)]
    if both:
        ours, others = ([float(measure.counts(row)) for row in side] for side in zip(*both, strict=True))
        found["difference"] = asdict(paired_difference(ours, others, seed))
    return found


def table(summary: Mapping[str, Any]) -> str:
    """The summary as a Markdown table."""
    compared = any("difference" in one for one in summary["measures"].values())
    head = ["measure", "share", "95 % interval", "questions", *(["beside the other run"] if compared else [])]
    cells = [_cells(name, one, compared) for name, one in summary["measures"].items()]
    told = (
        f"Medians: {summary['seconds']:.1f} s a turn, {summary['prompt_tokens']:.0f} tokens read, "
        f"{summary['completion_tokens']:.0f} written."
    )
    return f"{grid(head, cells)}\n\n{told}"


def _cells(name: str, one: Mapping[str, Any], compared: bool) -> list[str]:
    cells = [name, f"{one['value']:.0%}", f"{one['low']:.0%} to {one['high']:.0%}", str(one["n"])]
    if compared:
        change = one.get("difference")
        cells.append(f"{change['value']:+.1%} ({change['low']:+.1%} to {change['high']:+.1%})" if change else "")
    return cells
