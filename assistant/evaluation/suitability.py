"""Measures judges of suitability on labelled pairs of a fact and a text.

One record: {"fact": "I can't swim.", "text": "Snorkelling off the beach", "clash": 1, "kind": "item", "question":
"What can I do by the sea?"}; `kind` and `question` may be missing. In place of `text` a record may point into a passage
of a corpus by `source`, `start` and `end`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from threading import Event
from time import perf_counter
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from assistant.errors import DataError
from assistant.experiment.datasets import named_passage, named_passages, records, validated_record
from assistant.experiment.measures import classification_measures
from assistant.experiment.runs import Row
from assistant.experiment.task import Summary
from assistant.prompting.render import render
from assistant.protocols import LLM, SuitabilityJudge
from assistant.types import Passage

# Gives the probability that a fact and a text clash.
Judge = Callable[["Pair"], float]
Text = Annotated[str, Field(pattern=r"\S")]
_SHARES = ("precision", "recall", "false_alarms")


@dataclass(frozen=True)
class Pair:
    """A fact, a text, and whether the text offers what clashes with the fact; as a reply, where there is a question."""

    fact: Text
    text: Text
    clash: Literal[0, 1]
    kind: str = ""
    question: str = ""


def read_pairs(path: Path, corpora: Sequence[Path] = ()) -> list[Pair]:
    """The pairs of a file; texts that records point to are looked up in the corpora.

    Raises:
        DataError: a line is broken or lacks a field, a passage isn't in the corpora, or there are no pairs.
    """
    rows = list(records(path))
    passages = named_passages((row for _, row in rows if "text" not in row), corpora)
    pairs = [
        validated_record(location, {"text": _quoted(location, row, passages), **row}, Pair, "no pair of fact and text")
        for location, row in rows
    ]
    if not pairs:
        raise DataError(f"There are no pairs in {path}; give a file of {{fact, text, clash}} lines.")
    return pairs


def by_judge(judge: SuitabilityJudge) -> Judge:
    """The probability by a trained judge."""
    return lambda pair: judge.clashes([pair.fact], [pair.text], Event(), pair.question)[0][0]


def by_llm(llm: LLM) -> Judge:
    """The language model's probability of yes, with which the trained judge is compared; it isn't told questions."""

    def judge(pair: Pair) -> float:
        prompt = render("suitability", fact=pair.fact, text=pair.text)
        return llm.choose([prompt], ("yes", "no"), Event())[0].probabilities["yes"]

    return judge


def measure(pairs: Sequence[Pair], judge: Judge, threshold: float) -> tuple[Summary, list[Row]]:
    """AUC, precision and recall of "clash" at the threshold, false alarms among the others, and milliseconds a pair.

    Besides the summary, a row for each pair.

    `auc`, `precision` and `recall` are None where the pairs don't allow them: all clash, none does, none is said to.
    """
    judge(pairs[0])  # what is read first is slow
    probabilities, times = [], []
    for pair in pairs:
        start = perf_counter()
        probabilities.append(judge(pair))
        times.append((perf_counter() - start) * 1000)

    def separation(indices: Sequence[int], *names: str) -> Summary:
        labels = [bool(pairs[n].clash) for n in indices]
        measures = classification_measures(labels, [probabilities[n] for n in indices], threshold)
        return {**{name: measures[name] for name in names}, "pairs": len(indices), "clashing": sum(labels)}

    kinds = dict.fromkeys(pair.kind for pair in pairs if pair.kind)
    indices_by_kind = {kind: [n for n, pair in enumerate(pairs) if pair.kind == kind] for kind in kinds}
    summary = {
        **separation(range(len(pairs)), "auc", *_SHARES),
        "ms": median(times),
        "threshold": threshold,
        "kinds": {kind: separation(indices, *_SHARES) for kind, indices in indices_by_kind.items()},
    }
    numbered_pairs = enumerate(zip(pairs, probabilities, strict=True), 1)
    return summary, [{"id": str(n), **asdict(pair), "probability": score} for n, (pair, score) in numbered_pairs]


def _quoted(location: str, row: Mapping[str, Any], passages: Mapping[str, Passage]) -> str | None:
    if "source" not in row or "text" in row:
        return None
    passage = named_passage(location, row, passages)
    start, end = row.get("start"), row.get("end")
    if not isinstance(start, int) or not isinstance(end, int):
        raise DataError(f"{location}, lacks 'start' or 'end' of its text in the passage; mend or remove the line.")
    return passage.text[start:end]
