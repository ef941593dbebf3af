"""Measures the support check on labelled pairs: does it tell "the passage says so" from "it sounds alike"?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from sklearn.metrics import roc_auc_score

from assistant.citations import gather
from assistant.errors import DataError
from assistant.evaluation.data import records
from assistant.support import Claim, supports
from assistant.types import LLM, Embedder, Passage


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence, a passage, and whether the passage says what the sentence says."""

    id: str
    sentence: str
    passage: Passage
    supported: bool
    kind: str
    split: str


@dataclass(frozen=True, slots=True)
class Measures:
    """Precision, recall and F1 of "supported" at a threshold, accuracy, and AUC, which needs no threshold."""

    pairs: int
    threshold: float
    auc: float
    accuracy: float
    precision: float
    recall: float
    f1: float


def read_pairs(path: Path, split: str = "") -> list[Pair]:
    """The pairs of a JSONL file `{id, sentence, title, passage, supported, kind, split}`.

    Raises:
        DataError: the file or one of its lines can't be read; the line is named.
    """
    pairs = []
    for place, row in records(path):
        try:
            passage = Passage(row["id"], row["title"], row["passage"])
            pairs.append(Pair(row["id"], row["sentence"], passage, row["supported"], row["kind"], row["split"]))
        except KeyError as error:
            raise DataError(f"{place}, is not a labelled pair: it has no {error}.") from error
    return [pair for pair in pairs if not split or pair.split == split]


def scores(pairs: Sequence[Pair], llm: LLM, embedder: Embedder) -> list[float]:
    """The support of each pair, found as a turn finds it: the nearest sentences of the passage are the evidence."""
    return [_score(pair, llm, embedder) for pair in pairs]


def _score(pair: Pair, llm: LLM, embedder: Embedder) -> float:
    [[evidence]] = gather([pair.sentence], [pair.passage], [frozenset()], embedder)
    [score] = supports([Claim(pair.sentence, pair.passage.title, evidence.shown)], llm, Event())
    return score


def measure(labels: Sequence[bool], found: Sequence[float], threshold: float) -> Measures:
    """How well `found` scores tell the `labels` apart at `threshold`."""
    said = [score >= threshold for score in found]
    hits = sum(label and yes for label, yes in zip(labels, said, strict=True))
    precision, recall = hits / max(sum(said), 1), hits / max(sum(labels), 1)
    return Measures(
        pairs=len(labels),
        threshold=threshold,
        auc=float(roc_auc_score(labels, found)),
        accuracy=sum(label == yes for label, yes in zip(labels, said, strict=True)) / len(labels),
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / max(precision + recall, 1e-9),
    )


def best_threshold(labels: Sequence[bool], found: Sequence[float], steps: Iterable[float]) -> Measures:
    """The measures at the threshold with the highest F1."""
    return max((measure(labels, found, step) for step in steps), key=lambda one: one.f1)
