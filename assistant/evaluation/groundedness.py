"""Measures whether answers follow from their passages, by asking the language model, yes or no.

A turn reads the passages nearest to a sentence, by the judge that its settings name. Here all that the turn found may
support a sentence: so support that the turn overlooked is found, and citations are not checked by the judge that gave
them. One row, where "asked" holds the support in [0, 1] by passage:

    {"id": "q1", "question": "...", "answer": "... [1]", "unknown": false, "seconds": 9.1,
     "claims": [{"text": "...", "cited": ["p7"], "asked": {"p7": 0.93}}],
     "passages": {"p7": {"title": "...", "text": "..."}}, "digests": {"p7": "..."}}
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event
from typing import Any

from sklearn.metrics import cohen_kappa_score

from assistant import turn as flow
from assistant.errors import DataError, SequiturError
from assistant.experiment.datasets import Question, fingerprint, records, sample
from assistant.experiment.measures import mean, ratio
from assistant.experiment.runs import Row, Run
from assistant.grounding.claims import is_claim
from assistant.ikat.play import searching
from assistant.judges.support.llm import ByLLM
from assistant.protocols import Parts, Progress, SupportJudge
from assistant.types import Choices, Claim, Passage, Turn

# "This passage is about ...", "The text explains ...", "According to the article, ...": talk about the text itself.
_META = re.compile(
    r"\b(?:this|the|that|these|above|following|given|provided) (?:\w+ )?(?:passages?|texts?|articles?|paragraphs?|"
    r"summar(?:y|ies)|documents?|excerpts?|authors?)\b|\bhere (?:is|are) (?:a|the) (?:\w+ )?(?:summary|sentences?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked, of which library or corpus, and how it is answered."""

    questions: Path
    searched: str
    choices: Choices
    digest: str
    threshold: float


@dataclass(frozen=True, slots=True)
class Label:
    """A sentence as a person read it; `supporting` are the passages that say it, of those cited or else shown."""

    id: str
    sentence: str
    supporting: frozenset[str]


def open_run(folder: Path, plan: Plan, model: str) -> Run[str]:
    """The folder of this run.

    Raises:
        DataError: the folder holds a run on other questions, or one that was answered otherwise.
    """
    asked = {
        "questions": fingerprint(plan.questions),
        "searched": plan.searched,
        "model": model,
        "digest": plan.digest,
        "threshold": plan.threshold,
        **{name: getattr(plan.choices, name) for name in ("loop", "loops", "strategy", "k", "retriever")},
    }
    return Run(folder, asked, lambda row: str(row["id"]))


def measure(questions: Sequence[Question], plan: Plan, run: Run[str], parts: Parts, progress: Progress) -> None:
    """Answer and check what the run's rows lack.

    Raises:
        DataError: a question could not be answered; the message names it, and the next run goes on with it.
    """
    parts = searching(parts)
    jobs = [(one.id, lambda one=one: _row(one, plan, parts)) for one in questions]
    run.fill(jobs, len(jobs), progress)


def summarise(questions: Sequence[Question], plan: Plan, run: Run[str], seed: int) -> dict[str, Any]:
    """The measures with 95 % bootstrap intervals over questions.

    answered: questions that got an answer; all else is counted over these.
    supported: sentences that a passage supports, of those that claim something.
    citation precision: citations whose passage supports the sentence.
    citation recall: supported sentences that cite a passage.
    meta talk: summaries of passages that talk about the passage; only where passages are summarised.
    """
    rows = [run.rows[one.id] for one in questions]
    answered = [row for row in rows if not row["unknown"]]
    if not answered:
        raise DataError(
            "None of the questions was answered, so there is nothing to measure; ask what the library holds."
        )
    counts = [_counts(row, plan.threshold) for row in answered]
    measures = {
        "answered": mean([float(not row["unknown"]) for row in rows], seed),
        **{name: ratio([c[part] for c in counts], [c[whole] for c in counts], seed) for name, part, whole in _SHARES},
    }
    if plan.digest not in {"relevant", "extractive"}:
        digests = [[is_meta_talk(text) for text in row["digests"].values()] for row in rows]
        measures["meta talk"] = ratio([sum(one) for one in digests], [len(one) for one in digests], seed)
    totals = {name: sum(c[name] for c in counts) for name in ("claims", "citations")}
    return {
        "questions": len(rows),
        **totals,
        "threshold": plan.threshold,
        "measures": {name: asdict(value) for name, value in measures.items()},
        "seconds": sum(row["seconds"] for row in rows) / len(rows),
    }


_SHARES = (
    ("supported", "supported", "claims"),
    ("citation precision", "right", "citations"),
    ("citation recall", "supported and cited", "supported"),
)


def is_meta_talk(text: str) -> bool:
    """Whether a summary talks about the text that it sums up, instead of the matter (GRG, section 2.2.5)."""
    return _META.search(text) is not None


def to_read(questions: Sequence[Question], run: Run[str], most: int, seed: int) -> list[Row]:
    """A sample of sentences with the passages that they were shown, for a person; what the check said is not told."""
    found = [row for one in questions for row in _sentences(run.rows[one.id])]
    return sample(found, most, seed)


def read_labels(path: Path) -> list[Label]:
    """What a person found, a line a sentence: {id, sentence, supporting: [passage id]}.

    Raises:
        DataError: a line is broken or lacks a field; or there are none.
    """
    labels = []
    for place, record in records(path):
        try:
            labels.append(_label(record))
        except (KeyError, TypeError) as error:
            raise DataError(f"{place}, is no label of {{id, sentence, supporting: [passage id]}}: {error}.") from error
    if not labels:
        raise DataError(f"There are no labels in {path}; give a line for each sentence that was read.")
    return labels


def _label(record: Mapping[str, Any]) -> Label:
    identity, sentence, supporting = record["id"], record["sentence"], record["supporting"]
    if not isinstance(supporting, list) or not all(isinstance(one, str) for one in (identity, sentence, *supporting)):
        raise TypeError("a field holds something else")
    return Label(identity, sentence, frozenset(supporting))


def agreement(labels: Sequence[Label], run: Run[str], threshold: float) -> dict[str, Any]:
    """How far the check agrees with a person: on whether a sentence has support, and on each citation.

    Raises:
        DataError: a label is of a sentence that the run does not have.
    """
    claims = {one["id"]: one for row in run.rows.values() for one in _claims(row)}
    said, read, cited_said, cited_read = [], [], [], []
    for label in labels:
        claim = claims.get(label.id)
        if claim is None or claim["text"] != label.sentence:
            raise DataError(
                f"The label '{label.id}' is of a sentence that this run does not have; label this run's own."
            )
        said.append(_is_supported(claim, threshold))
        read.append(bool(label.supporting))
        cited_said += [claim["asked"][one] >= threshold for one in claim["cited"]]
        cited_read += [one in label.supporting for one in claim["cited"]]
    return {"sentences": _compared(said, read), "citations": _compared(cited_said, cited_read)}


def _compared(said: Sequence[bool], read: Sequence[bool]) -> dict[str, Any]:
    pairs = list(zip(said, read, strict=True))
    kappa = float(cohen_kappa_score(said, read)) if len({*said, *read}) > 1 else None
    return {
        "read": len(pairs),
        "supported by reading": sum(read),
        "supported by the check": sum(said),
        "agree": sum(one == other for one, other in pairs),
        "supported by the check alone": sum(one and not other for one, other in pairs),
        "supported by reading alone": sum(other and not one for one, other in pairs),
        "kappa": kappa,
    }


def _row(question: Question, plan: Plan, parts: Parts) -> Row:
    turn = Turn(question.text, choices=plan.choices, id=question.id)
    try:
        *_, turn = flow.run(turn, parts, Event())
    except SequiturError as error:
        raise DataError(f"Question {question.id}: {error}") from error
    if turn.status == "failed":
        raise DataError(f"Question {question.id}: {turn.error}")
    return {
        "id": question.id,
        "question": question.text,
        "answer": turn.answer.text if turn.answer else "",
        "unknown": turn.answer is None or turn.answer.unknown or turn.answer.origin == "model",
        "seconds": round(turn.seconds, 3),
        "claims": _checked(turn, parts, plan.threshold),
        "passages": {one.id: {"title": one.title, "text": one.text} for one in turn.passages},
        "digests": {one.passage_id: one.text for one in turn.digests},
    }


def _checked(turn: Turn, parts: Parts, threshold: float) -> list[Row]:
    """The sentences that claim something.

    Each is asked about the passages that it cites, then about the others until one supports it.
    """
    numbers = {citation.n: citation.passage_id for citation in turn.citations}
    claims = [
        {"text": one.text, "cited": [numbers[n] for n in one.citations], "asked": {}}
        for one in turn.sentences
        if is_claim(one.text)
    ]
    judge = ByLLM(parts.llm, threshold)
    for passage in turn.passages:
        _ask([one for one in claims if passage.id in one["cited"]], passage, turn, judge)
    for passage in turn.passages:
        still = [one for one in claims if passage.id not in one["asked"] and not _is_supported(one, threshold)]
        _ask(still, passage, turn, judge)
    return claims


def _ask(claims: Sequence[Row], passage: Passage, turn: Turn, judge: SupportJudge) -> None:
    asked = [Claim(one["text"], (passage,), turn.question, " ".join(turn.used_facts)) for one in claims]
    for claim, verdict in zip(claims, judge.judge(asked, Event()), strict=True):
        claim["asked"][passage.id] = round(verdict.probability, 4)


def _is_supported(claim: Mapping[str, Any], threshold: float) -> bool:
    return any(support >= threshold for support in claim["asked"].values())


def _counts(row: Row, threshold: float) -> dict[str, int]:
    claims = row["claims"]
    supported = [one for one in claims if _is_supported(one, threshold)]
    cited = [one["asked"][passage] for one in claims for passage in one["cited"]]
    return {
        "claims": len(claims),
        "supported": len(supported),
        "supported and cited": sum(bool(one["cited"]) for one in supported),
        "citations": len(cited),
        "right": sum(support >= threshold for support in cited),
    }


def _claims(row: Row) -> Iterator[Row]:
    for n, claim in enumerate(row["claims"]):
        yield {"id": f"{row['id']}/{n}", **claim}


def _sentences(row: Row) -> Iterator[Row]:
    for claim in _claims(row):
        passages = [{"id": one, **passage} for one, passage in row["passages"].items()]
        yield {
            "id": claim["id"],
            "question": row["question"],
            "sentence": claim["text"],
            "cited": claim["cited"],
            "passages": passages,
            "supporting": None,
        }
