"""How well a judge tells what clashes with what a person said of themselves, on labelled pairs.

One record: {"fact": "I can't swim.", "text": "Snorkelling off the beach", "clash": 1, "kind": "item"}; `kind` may be
missing. In place of `text` a record may point into a passage of a corpus by `source`, `start` and `end`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from threading import Event
from time import perf_counter
from typing import Any

from assistant.errors import DataError
from assistant.experiment.datasets import read_corpus, records
from assistant.prompting.render import render
from assistant.protocols import LLM
from assistant.types import Passage

# One probability a pair of fact and text.
Judge = Callable[[str, str], float]


@dataclass(frozen=True, slots=True)
class Pair:
    """A fact, a text, and whether the text offers what clashes with the fact."""

    fact: str
    text: str
    clash: bool
    kind: str = ""


def read_pairs(path: Path, corpora: Sequence[Path] = ()) -> list[Pair]:
    """The pairs of a file; texts that records point to are looked up in the corpora.

    Raises:
        DataError: a line is broken or lacks a field, a passage isn't in the corpora, or there are no pairs.
    """
    rows = list(records(path))
    wanted = {str(row["source"]) for _, row in rows if "text" not in row and "source" in row}
    passages = {key: one for corpus in corpora for key, one in read_corpus(corpus, wanted).wanted.items()}
    found = [_pair(place, row, passages) for place, row in rows]
    if not found:
        raise DataError(f"There are no pairs in {path}; give a file of {{fact, text, clash}} lines.")
    return found


def by_llm(llm: LLM) -> Judge:
    """The language model's own yes or no, by probability: what the trained judge is measured against."""

    def judge(fact: str, text: str) -> float:
        prompt = render("suitability", fact=fact, text=text)
        return llm.choose([prompt], ("yes", "no"), Event())[0].probabilities["yes"]

    return judge


def measure(pairs: Sequence[Pair], judge: Judge, threshold: float) -> dict[str, Any]:
    """AUC, precision and recall of "clash" at the threshold, false alarms among the others, and milliseconds a pair.

    `auc`, `precision` and `recall` are None where the pairs don't allow them: all clash, none does, none is said to.
    """
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415 - takes a second to import

    judge(pairs[0].fact, pairs[0].text)  # what is read first is slow
    found, times = [], []
    for pair in pairs:
        start = perf_counter()
        found.append(judge(pair.fact, pair.text))
        times.append((perf_counter() - start) * 1000)
    labels = [pair.clash for pair in pairs]
    kinds = dict.fromkeys(pair.kind for pair in pairs if pair.kind)
    return {
        "auc": float(roc_auc_score(labels, found)) if any(labels) and not all(labels) else None,
        **_at(labels, found, threshold),
        "ms": median(times),
        "threshold": threshold,
        "kinds": {kind: _share(pairs, found, kind, threshold) for kind in kinds},
    }


def _at(labels: Sequence[bool], found: Sequence[float], threshold: float) -> dict[str, Any]:
    said = [one >= threshold for one in found]
    hits = sum(s and label for s, label in zip(said, labels, strict=True))
    clashing = sum(labels)
    return {
        "precision": hits / sum(said) if any(said) else None,
        "recall": hits / clashing if clashing else None,
        "false_alarms": (sum(said) - hits) / (len(labels) - clashing) if clashing < len(labels) else None,
        "pairs": len(labels),
        "clashing": clashing,
    }


def _share(pairs: Sequence[Pair], found: Sequence[float], kind: str, threshold: float) -> dict[str, Any]:
    some = [(pair.clash, one) for pair, one in zip(pairs, found, strict=True) if pair.kind == kind]
    return _at([label for label, _ in some], [one for _, one in some], threshold)


def _pair(place: str, row: dict[str, Any], passages: dict[str, Passage]) -> Pair:
    fact, text, clash = row.get("fact"), row.get("text"), row.get("clash")
    if text is None:
        text = _quoted(place, row, passages)
    if not isinstance(fact, str) or not isinstance(text, str) or not fact.strip() or not text.strip():
        raise DataError(f"{place}, lacks a fact or a text; every line needs both.")
    if clash not in (0, 1):
        raise DataError(f"{place}, says neither 0 nor 1 for 'clash'; mend or remove the line.")
    return Pair(fact, text, bool(clash), str(row.get("kind", "")))


def _quoted(place: str, row: dict[str, Any], passages: dict[str, Passage]) -> str | None:
    if "source" not in row:
        return None
    passage = passages.get(str(row["source"]))
    if passage is None:
        raise DataError(f"{place}, points to '{row['source']}', which is in no corpus given; add it with --corpus.")
    start, end = row.get("start"), row.get("end")
    if not isinstance(start, int) or not isinstance(end, int):
        raise DataError(f"{place}, lacks 'start' or 'end' of its text in the passage; mend or remove the line.")
    return passage.text[start:end]
