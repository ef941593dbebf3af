"""Measures judges of support on labelled pairs: do they tell "the passage says so" from "it sounds alike"?

One pair, a line of the file; a question, a title, `kind` and `split` may be missing:

    {"question": "Who won the 2022 World Cup?", "claim": "Qatar", "title": "Qatar", "evidence": "Qatar hosted ...",
     "label": "not_supported"}

`evidence` may be a list of sentences, and `label` is "supported", "partially_supported" or "not_supported". The names
of an older format are read as well: `sentence`, `passage`, and `supported`, which is true or false. In place of `title`
and `evidence` a pair may name a passage of a corpus by `source`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Event
from time import perf_counter
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from assistant.experiment.datasets import named_passage, named_passages, of_split, records, validated_record
from assistant.experiment.measures import classification_measures
from assistant.experiment.runs import Row
from assistant.experiment.task import Summary
from assistant.protocols import SupportJudge
from assistant.types import Claim, Passage

Label = Literal["supported", "partially_supported", "not_supported"]
# Gives each pair's support, in [0, 1].
Judge = Callable[[Sequence["Pair"]], list[float]]
# Pairs read at once, about as many as a long answer has sentences.
BATCH_SIZE = 16


def _joined(value: object) -> object:
    is_list = isinstance(value, list) and all(isinstance(sentence, str) for sentence in value)
    return " ".join(value) if isinstance(value, list) and is_list else value


def _label(value: object) -> object:
    return ("supported" if value else "not_supported") if isinstance(value, bool) else value


Text = Annotated[str, Field(pattern=r"\S")]


class Pair(BaseModel):
    """A claim, the evidence for it, and whether the evidence says all of it, a part, or not."""

    model_config = ConfigDict(frozen=True)

    claim: Text = Field(validation_alias=AliasChoices("claim", "sentence"))
    evidence: Annotated[Text, BeforeValidator(_joined)] = Field(validation_alias=AliasChoices("evidence", "passage"))
    label: Annotated[Label, BeforeValidator(_label)] = Field(validation_alias=AliasChoices("label", "supported"))
    question: str = ""
    title: str = ""
    kind: str = ""
    split: str = ""

    @property
    def supported(self) -> bool:
        """Whether the evidence says all of the claim."""
        return self.label == "supported"

    @property
    def passage(self) -> Passage:
        """The evidence as a passage."""
        return Passage("evidence", self.title, self.evidence)


def read_pairs(path: Path, split: str = "", corpora: Sequence[Path] = ()) -> list[Pair]:
    """The pairs of a JSONL file, those of one split if one is given; evidence that they name is taken from the corpora.

    Raises:
        DataError: the file, a corpus or a line can't be read, a passage isn't in the corpora, or there are no pairs.
    """
    rows = list(records(path))
    passages = named_passages((row for _, row in rows), corpora)
    pairs = [
        validated_record(location, _with_evidence(location, row, passages), Pair, "not a labelled pair")
        for location, row in rows
    ]
    return of_split(pairs, split, path, "pairs", "lines of {claim, evidence, label}")


def _with_evidence(location: str, row: dict[str, Any], passages: Mapping[str, Passage]) -> dict[str, Any]:
    if "source" not in row or "evidence" in row:
        return row
    passage = named_passage(location, row, passages)
    return {**row, "title": passage.title, "evidence": passage.text}


def by_judge(judge: SupportJudge) -> Judge:
    """The judge's probability that the whole evidence says the claim."""

    def judged(pairs: Sequence[Pair]) -> list[float]:
        claims = [Claim(pair.claim, (pair.passage,), pair.question) for pair in pairs]
        return [verdict.probability for verdict in judge.judge(claims, Event())]

    return judged


def measure(
    pairs: Sequence[Pair], judge: Judge, threshold: float, progress: Callable[[int], None]
) -> tuple[Summary, list[Row]]:
    """How well "supported" is separated from the rest, and the milliseconds that a pair took; and a row for each pair.

    `auc` and `balanced_accuracy` are None where all pairs have one label. `progress` gets the number of judged pairs.
    """
    judge(pairs[:1])  # what is only paid once is not the pairs'
    start_time, probabilities = perf_counter(), list[float]()
    for start in range(0, len(pairs), BATCH_SIZE):
        probabilities += judge(pairs[start : start + BATCH_SIZE])
        progress(len(probabilities))
    ms = 1000 * (perf_counter() - start_time) / len(pairs)
    separation = classification_measures([pair.supported for pair in pairs], probabilities, threshold)
    numbered_pairs = enumerate(zip(pairs, probabilities, strict=True), 1)
    rows = [{"id": str(n), **pair.model_dump(), "probability": score} for n, (pair, score) in numbered_pairs]
    summary = {
        "pairs": len(pairs),
        "threshold": threshold,
        "auc": separation["auc"],
        "balanced_accuracy": separation["balanced_accuracy"],
        "precision": separation["precision"] or 0.0,
        "recall": separation["recall"] or 0.0,
        "right": _right(pairs, [score >= threshold for score in probabilities]),
        "ms": ms,
    }
    return summary, rows


def _right(pairs: Sequence[Pair], verdicts: Sequence[bool]) -> dict[str, str]:
    """For each label and kind of pair: how many were judged rightly, of how many."""
    totals, right_counts = Counter[str](), Counter[str]()
    for pair, verdict in zip(pairs, verdicts, strict=True):
        name = pair.label.replace("_", " ") + (f": {pair.kind}" if pair.kind else "")
        totals[name] += 1
        right_counts[name] += verdict == pair.supported
    return {name: f"{right_counts[name]} of {totals[name]}" for name in sorted(totals)}
