"""Teaches the judge of multi-hop questions: a logistic regression, whose threshold is chosen on questions held out.

By a hash of their words a fifth of the questions is kept for development and another for testing; all the others are
learned from. So it stays known which questions a judge has never seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from assistant.errors import DataError
from assistant.judges.multi_hop import Curve, plain
from assistant.types import Embedder

Part = Literal["train", "dev", "test"]
_FIFTHS: tuple[Part, ...] = ("test", "dev", "train", "train", "train")
# The share of a set's single questions that may be taken for multi-hop ones in development.
FALSE_ALARMS = 0.01
# Of a set no more are taken, so that a large one doesn't decide alone.
MOST = 1500
_C = 5.0


@dataclass(frozen=True, slots=True)
class Source:
    """The questions of one set, all multi-hop or all single."""

    name: str
    questions: tuple[str, ...]
    several: bool


def part_of(question: str) -> Part:
    """Which part a question belongs to, the same in every run."""
    return _FIFTHS[int(sha256(plain(question).encode()).hexdigest(), 16) % len(_FIFTHS)]


def train(folder: Path, embedder: Embedder, sources: Sequence[Source]) -> dict[str, Any]:
    """Teach the judge, and write it into the folder; what it came to on the questions kept for testing.

    Returns:
        {"threshold": t, "auc": a, "precision": p, "test": {name: {"questions": n, "several": bool, "found": share}}}

    Raises:
        DataError: a part lacks questions of one kind.
    """
    parts: Mapping[Part, list[tuple[str, str, bool]]] = {"train": [], "dev": [], "test": []}
    for source in sources:
        for question in sorted(source.questions, key=lambda one: sha256(one.encode()).hexdigest())[:MOST]:
            parts[part_of(question)].append((source.name, plain(question), source.several))
    for name, rows in parts.items():
        if {several for _, _, several in rows} != {True, False}:
            raise DataError(f"There are too few questions: the {name} part lacks multi-hop or single ones; give more.")
    vectors = {name: embedder.encode([text for _, text, _ in rows]) for name, rows in parts.items()}
    model = LogisticRegression(C=_C, max_iter=2000, class_weight="balanced")
    model.fit(vectors["train"], [several for _, _, several in parts["train"]])
    weights = tuple(round(float(one), 4) for one in (*model.coef_[0], model.intercept_[0]))
    about = f"questions held out: at most {FALSE_ALARMS:.0%} of each set's single ones are taken for multi-hop"
    curve = Curve(weights, embedder.name, 1.0, about)
    threshold = _threshold(parts["dev"], curve.odds(vectors["dev"]))
    Curve(weights, embedder.name, threshold, about).save(folder)
    return {"threshold": threshold, **_measured(parts["test"], curve.odds(vectors["test"]), threshold)}


def _threshold(rows: Sequence[tuple[str, str, bool]], odds: Sequence[float]) -> float:
    """The lowest, from even odds on, at which no set of single questions has too many false alarms."""
    single: dict[str, list[float]] = {}
    for (name, _, several), one in zip(rows, odds, strict=True):
        if not several:
            single.setdefault(name, []).append(one)
    return round(max(0.5, *(float(np.quantile(some, 1 - FALSE_ALARMS)) for some in single.values())), 4)


def _measured(rows: Sequence[tuple[str, str, bool]], odds: Sequence[float], threshold: float) -> dict[str, Any]:
    found = [one >= threshold for one in odds]
    several = [row[2] for row in rows]
    names = dict.fromkeys(row[0] for row in rows)
    return {
        "auc": float(roc_auc_score(several, odds)),
        "precision": sum(s and f for s, f in zip(several, found, strict=True)) / max(sum(found), 1),
        "test": {name: _share(rows, found, name) for name in names},
    }


def _share(rows: Sequence[tuple[str, str, bool]], found: Sequence[bool], name: str) -> dict[str, Any]:
    of = [(row[2], one) for row, one in zip(rows, found, strict=True) if row[0] == name]
    return {"questions": len(of), "several": of[0][0], "found": sum(one for _, one in of) / len(of)}
