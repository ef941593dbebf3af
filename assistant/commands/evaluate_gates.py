"""`evaluate intents`: the check that decides what needs no library."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Event
from typing import Annotated, Any, TypeVar

import typer

from assistant.commands.common import DataDir, SettingsFile, load_llm, out, settings_of
from assistant.errors import DataError
from assistant.experiment.datasets import records
from assistant.parts import load_embedder
from assistant.protocols import silent
from assistant.settings import Settings
from assistant.steps.intent import TALK, intent_of, library_answers
from ptkb.extract import only_tells

Split = Annotated[str, typer.Option(help="dev, test, or empty for both.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the measures as JSON.")]
T = TypeVar("T")


def intents(
    messages: Annotated[Path, typer.Option(help="JSONL of {text, intent, split}.")],
    split: Split = "test",
    library: Annotated[
        str | None, typer.Option(help="Look up in this library what seems talk, as a turn does; without it, no search.")
    ] = None,
    as_json: AsJson = False,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Are questions told from small talk, talk about the conversation and writing? Accuracy, and questions withheld."""
    knobs = settings_of(settings, data_dir)
    rows = _some(_labelled(messages, split), messages, split)
    embedder = load_embedder(knobs, silent)
    found = [intent_of(row["text"], embedder, knobs.turn) for row in rows]
    talk = [n for n, got in enumerate(found) if got in TALK and not only_tells(rows[n]["text"], embedder)]
    asks = _answered([rows[n]["text"] for n in talk], library, knobs) if library else []
    for n, answered in zip(talk, asks, strict=False):
        found[n] = "question" if answered else found[n]
    gate = [(got == "question") == (row["intent"] == "question") for got, row in zip(found, rows, strict=True)]
    withheld = sum(g != "question" and row["intent"] == "question" for g, row in zip(found, rows, strict=True))
    right = sum(got == row["intent"] for got, row in zip(found, rows, strict=True)) / len(rows)
    writing = [(got, row["intent"]) for got, row in zip(found, rows, strict=True)]
    _tell(
        {
            "split": split,
            "messages": len(rows),
            "threshold": knobs.turn.intent_threshold,
            "gate_accuracy": sum(gate) / len(rows),
            "accuracy": right,
            "questions": sum(row["intent"] == "question" for row in rows),
            "questions_withheld": withheld,
            "writing": sum(meant == "writing" for _, meant in writing),
            "writing_found": writing.count(("writing", "writing")),
            **({"looked_up": len(asks), "answered": sum(asks)} if library else {}),
            "writing_wrongly": sum(got == "writing" != meant for got, meant in writing),
        },
        as_json,
    )


def _answered(texts: list[str], library: str, knobs: Settings) -> list[bool]:
    from assistant.judges.relevance.load import load_calibrated  # noqa: PLC0415
    from assistant.library.shelves import open_library  # noqa: PLC0415 - Java

    estimator = load_calibrated("shipped", None, lambda: load_llm(knobs, silent), knobs, silent)
    retriever = open_library(library, knobs)
    return [library_answers(text, retriever, estimator, knobs.relevance, Event()) for text in texts]


def _labelled(messages: Path, split: str) -> list[dict[str, str]]:
    rows = []
    for place, row in records(messages):
        try:
            rows.append({key: row[key] for key in ("text", "intent", "split")})
        except KeyError as error:
            raise DataError(f"{place}, is not a labelled message: it has no {error}.") from error
    return [row for row in rows if not split or row["split"] == split]


def _some(rows: list[T], path: Path, split: str) -> list[T]:
    if not rows:
        raise DataError(f"There are no lines of the split '{split}' in {path}; give dev, test, or empty for both.")
    return rows


def _tell(measures: dict[str, Any], as_json: bool) -> None:
    if as_json:
        out.print_json(json.dumps(measures))
    else:
        out.print(measures)
