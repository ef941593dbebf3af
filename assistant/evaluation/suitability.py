"""How well a judge tells what clashes with what a person said of themselves, on labelled pairs.

One record: {"fact": "I can't swim.", "text": "Snorkelling off the beach", "clash": 1, "kind": "item"}; `kind` may be
missing. In place of `text` a record may point into a passage of a corpus by `source`, `start` and `end`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from threading import Event
from time import perf_counter
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from assistant.errors import DataError
from assistant.experiment.datasets import parsed, read_corpus, records
from assistant.experiment.grid import number
from assistant.experiment.grid import table as table_of
from assistant.prompting.render import render
from assistant.protocols import LLM, SuitabilityJudge
from assistant.types import Passage

# One probability a pair of fact and text.
Judge = Callable[[str, str], float]


Text = Annotated[str, Field(pattern=r"\S")]


@dataclass(frozen=True)
class Pair:
    """A fact, a text, and whether the text offers what clashes with the fact."""

    fact: Text
    text: Text
    clash: Literal[0, 1]
    kind: str = ""


def read_pairs(path: Path, corpora: Sequence[Path] = ()) -> list[Pair]:
    """The pairs of a file; texts that records point to are looked up in the corpora.

    Raises:
        DataError: a line is broken or lacks a field, a passage isn't in the corpora, or there are no pairs.
    """
    rows = list(records(path))
    wanted = {str(row["source"]) for _, row in rows if "text" not in row and "source" in row}
    passages = {key: one for corpus in corpora for key, one in read_corpus(corpus, wanted).wanted.items()}
    found = [
        parsed(place, {"text": _quoted(place, row, passages), **row}, Pair, "no pair of fact and text")
        for place, row in rows
    ]
    if not found:
        raise DataError(f"There are no pairs in {path}; give a file of {{fact, text, clash}} lines.")
    return found


def by_judge(judge: SuitabilityJudge) -> Judge:
    """The trained judge's probability."""
    return lambda fact, text: judge.clashes([fact], [text], Event())[0][0]


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
    labels, said = [bool(pair.clash) for pair in pairs], [one >= threshold for one in found]
    kinds = dict.fromkeys(pair.kind for pair in pairs if pair.kind)
    return {
        "auc": float(roc_auc_score(labels, found)) if len(set(labels)) > 1 else None,
        **_at(labels, said),
        "ms": median(times),
        "threshold": threshold,
        "kinds": {
            kind: _at(
                *zip(*((bool(p.clash), yes) for p, yes in zip(pairs, said, strict=True) if p.kind == kind), strict=True)
            )
            for kind in kinds
        },
    }


def table(summary: Mapping[str, Any]) -> str:
    """The summary in Markdown."""
    shares = ("precision", "recall", "false_alarms")
    rows = [
        {**row, "pairs": f"{name} ({row['pairs']})", **{one: number(row[one]) for one in shares}}
        for name, row in {"all": summary, **summary["kinds"]}.items()
    ]
    heads = {"pairs": "{pairs}", "of them clashing": "{clashing}"}
    columns = {**heads, **{one.replace("_", " "): f"{{{one}}}" for one in shares}}
    auc = number(summary["auc"]) or "unknown"
    told = "{ms:.1f} ms a pair, at the threshold {threshold:g}.".format(**summary)
    return f"{table_of(rows, columns)}\n\nAUC {auc}, {told}"


def _at(labels: Sequence[bool], said: Sequence[bool]) -> dict[str, Any]:
    from sklearn.metrics import confusion_matrix  # noqa: PLC0415 - as above

    [[_, alarms], [_, hits]] = confusion_matrix(labels, said, labels=[False, True]).tolist()
    clashing, others = sum(labels), len(labels) - sum(labels)
    return {
        "precision": hits / sum(said) if any(said) else None,
        "recall": hits / clashing if clashing else None,
        "false_alarms": alarms / others if others else None,
        "pairs": len(labels),
        "clashing": clashing,
    }


def _quoted(place: str, row: dict[str, Any], passages: dict[str, Passage]) -> str | None:
    if "source" not in row or "text" in row:
        return None
    passage = passages.get(str(row["source"]))
    if passage is None:
        raise DataError(f"{place}, points to '{row['source']}', which is in no corpus given; add it with --corpus.")
    start, end = row.get("start"), row.get("end")
    if not isinstance(start, int) or not isinstance(end, int):
        raise DataError(f"{place}, lacks 'start' or 'end' of its text in the passage; mend or remove the line.")
    return passage.text[start:end]
