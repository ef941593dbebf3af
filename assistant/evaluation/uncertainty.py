"""Measures how well each way of `assistant.judges.uncertainty` tells right answers from wrong ones.

Every question is answered once from its passages, greedily, by the prompt of concatenation; each way then gives its
confidence. One row: `{"id", "question", "answer", "gold", "right", "unanswerable", "confidence": {"word": 1.0, ...}}`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from assistant.errors import DataError
from assistant.evaluation.answers import Experiment, Material, Passages, claim
from assistant.experiment.datasets import Question
from assistant.experiment.measures import Estimate, Floats, exact_match
from assistant.experiment.runs import Row, Run
from assistant.judges.relevance.ranked import estimated
from assistant.judges.uncertainty import WAYS, Asked, confidences
from assistant.prompting.budget import fit
from assistant.protocols import Parts, Progress
from assistant.strategies.shared.reading import FACTOID_ROOM
from assistant.types import (
    Choices,
    Options,
    Passage,
    Turn,
)

RESAMPLES = 500
Flags = NDArray[np.bool_]


def open_run(folder: Path, experiment: Experiment, model: str) -> Run[str]:
    """The folder of this experiment, with its first setting.

    Raises:
        DataError: the folder holds a run on other data or with another model, seed or setting.
    """
    asked = {**claim(experiment, model), "setting": str(experiment.settings[0])}
    return Run(folder, asked, lambda row: str(row["id"]))


def measure(experiment: Experiment, material: Material, run: Run[str], parts: Parts, progress: Progress) -> None:
    """Answer the questions that the run's rows lack, and ask every way how sure it is."""
    passages = Passages(experiment, material.corpus, parts)

    def row(question: Question) -> Row:
        return _row(question, passages.of(experiment.settings[0], question), parts)

    jobs = [(question.id, lambda question=question: row(question)) for question in material.questions]
    run.fill(jobs, len(jobs), progress)


def summarise(material: Material, run: Run[str], seed: int) -> dict[str, Any]:
    """For each way its AUC, and the thresholds that are best for F1 of "unknown" and for Youden's J.

    An answer should be unknown where it is wrong. J (recall of the wrong minus share of the right that is lost) does
    not reward calling everything unknown, as F1 does where most answers are wrong.

    Raises:
        DataError: all answers are right, or all are wrong, so that nothing can be told apart.
    """
    rows = [run.rows[question.id] for question in material.questions]
    right = np.array([row["right"] for row in rows], dtype=bool)
    if right.all() or not right.any():
        raise DataError(f"All {len(rows)} answers are {'right' if right.all() else 'wrong'}; take more questions.")
    return {
        "questions": len(rows),
        "right": float(right.mean()),
        "ways": {way: _way(np.array([row["confidence"][way] for row in rows]), right, seed) for way in _ways(rows)},
    }


def _ways(rows: Sequence[Row]) -> list[str]:
    """The ways that were asked of every row; a run that goes on may be older than one of them."""
    return [way for way in WAYS if all(way in row["confidence"] for row in rows)]


def at_threshold(confidence: Floats, right: Flags, threshold: float) -> dict[str, float]:
    """What calling answers below `threshold` unknown does.

    Precision, recall and F1 over the wrong answers, Youden's J, the share called unknown, and the share of right ones
    among the others.
    """
    said, wrong = (confidence < threshold) | (confidence == 0), ~right
    hits = float((said & wrong).sum())
    recall = hits / max(wrong.sum(), 1)
    return {
        "threshold": threshold,
        "precision": hits / max(said.sum(), 1),
        "recall": recall,
        "f1": 2 * hits / max(said.sum() + wrong.sum(), 1),
        "j": recall - float((said & right).sum()) / max(right.sum(), 1),
        "unknown": float(said.mean()),
        "right_of_known": float((~said & right).sum()) / max((~said).sum(), 1),
    }


def _row(question: Question, passages: Sequence[Passage], parts: Parts) -> Row:
    values = {"passages": passages, "facts": (), "question": question.text}
    messages, _ = fit("factoid/concat", parts.llm, FACTOID_ROOM, **values)
    [completion] = parts.llm.complete([messages], Options(max_tokens=FACTOID_ROOM), Event())
    asked = [Asked(messages, completion, _estimated(question, passages, parts))]
    return {
        "id": question.id,
        "question": question.text,
        "answer": completion.text.strip(),
        "gold": list(question.answers),
        "right": bool(exact_match(completion.text, question.answers)),
        "unanswerable": question.unanswerable,
        "confidence": {way: confidences(asked, way, parts.llm, Event())[0] for way in WAYS},
    }


def _estimated(question: Question, passages: Sequence[Passage], parts: Parts) -> tuple[Passage, ...]:
    """The passages with the relevance estimator's confidence, where there is one."""
    choices = Choices(k=max(len(passages), 1))
    turn = Turn(question.text, question=question.text, passages=tuple(passages), choices=choices)
    return estimated(turn, passages, parts, Event()).passages if parts.estimator else turn.passages


def _way(confidence: Floats, right: Flags, seed: int) -> dict[str, Any]:
    # halfway between neighbours, so that a threshold does not sit on an answer's own value
    values = np.unique(confidence)
    between = [0.0, *((values[1:] + values[:-1]) / 2).tolist(), 1.01]
    found = [at_threshold(confidence, right, threshold) for threshold in between]
    return {
        "auc": asdict(_auc(confidence, right, seed)),
        "best_f1": max(found, key=lambda one: one["f1"]),
        "best_j": max(found, key=lambda one: one["j"]),
    }


def _auc(confidence: Floats, right: Flags, seed: int) -> Estimate:
    draws = np.random.default_rng(seed).integers(0, len(right), (RESAMPLES, len(right)))
    # a draw of only right or only wrong answers has no AUC
    aucs = [roc_auc_score(right[draw], confidence[draw]) for draw in draws if 0 < right[draw].sum() < len(right)]
    low, high = np.percentile(aucs, [2.5, 97.5])
    return Estimate(float(roc_auc_score(right, confidence)), float(low), float(high))
