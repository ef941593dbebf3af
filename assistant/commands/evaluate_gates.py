"""`evaluate support` and `evaluate intents`: the checks that decide what is cited and what needs no library."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.progress import track

from assistant.commands.common import Backend, DataDir, Model, SettingsFile, out, settings_of, talk
from assistant.errors import DataError
from assistant.evaluation.data import records
from assistant.parts import load_embedder, load_llm
from assistant.steps.intent import intent_of
from assistant.types import silent

if TYPE_CHECKING:
    from assistant.evaluation.support import Pair

Split = Annotated[str, typer.Option(help="dev, test, or empty for both.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the measures as JSON.")]
STEPS = tuple(n / 20 for n in range(1, 20))
T = TypeVar("T")


def support(
    pairs: Annotated[Path, typer.Option(help="JSONL of {id, sentence, title, passage, supported, kind, split}.")],
    split: Split = "test",
    model: Model = None,
    backend: Backend = None,
    as_json: AsJson = False,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Does the support check tell what a passage says from what sounds alike? AUC, precision, recall by threshold."""
    from assistant.evaluation import support as measured  # noqa: PLC0415 - scikit-learn

    knobs = settings_of(settings, data_dir, model=model, backend=backend)
    rows = _some(measured.read_pairs(pairs, split), pairs, split)
    embedder, llm = load_embedder(knobs, silent), load_llm(knobs, silent)
    shown = track(rows, "Pairs", console=talk, transient=True)
    found = [score for pair in shown for score in measured.scores([pair], llm, embedder)]
    labels = [pair.supported for pair in rows]
    at = measured.measure(labels, found, knobs.turn.support_threshold)
    best = measured.best_threshold(labels, found, STEPS)
    kinds = _right_by_kind(rows, found, at.threshold)
    _tell(
        {"model": llm.name, "split": split, "at_setting": asdict(at), "best_f1": asdict(best), "right": kinds}, as_json
    )


def intents(
    messages: Annotated[Path, typer.Option(help="JSONL of {text, intent, split}.")],
    split: Split = "test",
    as_json: AsJson = False,
    settings: SettingsFile = None,
    data_dir: DataDir = None,
) -> None:
    """Are questions told from small talk, talk about the conversation and writing? Accuracy, and questions withheld."""
    knobs = settings_of(settings, data_dir)
    rows = _some(_labelled(messages, split), messages, split)
    embedder = load_embedder(knobs, silent)
    found = [intent_of(row["text"], embedder, knobs.turn) for row in rows]
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
            "writing_wrongly": sum(got == "writing" != meant for got, meant in writing),
        },
        as_json,
    )


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


def _right_by_kind(rows: Sequence[Pair], found: Sequence[float], threshold: float) -> dict[str, str]:
    """For each kind of pair: how many were judged rightly, of how many."""
    label = {True: "supported", False: "not supported"}
    all_, right = Counter[str](), Counter[str]()
    for pair, score in zip(rows, found, strict=True):
        kind = f"{label[pair.supported]}: {pair.kind}"
        all_[kind] += 1
        right[kind] += (score >= threshold) == pair.supported
    return {kind: f"{right[kind]} of {all_[kind]}" for kind in sorted(all_)}


def _tell(measures: dict[str, Any], as_json: bool) -> None:
    if as_json:
        out.print_json(json.dumps(measures))
    else:
        out.print(measures)
