"""Measures single sentences: quoting the one that answers, and rating a person's own passages by their sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from statistics import median
from threading import Event
from typing import Any

import numpy as np

from assistant.errors import DataError
from assistant.evaluation.scenarios import Scenario
from assistant.experiment.datasets import Question
from assistant.experiment.measures import answer_recall, auc, share_passed
from assistant.experiment.runs import Row
from assistant.experiment.task import Summary
from assistant.judges.relevance.estimate import READ_CLOSELY, estimates, set_confidence
from assistant.protocols import Estimator, SupportJudge
from assistant.steps.quote import best_quotable
from assistant.text.chunks import Block, chunk
from assistant.types import Claim, Passage

# The estimates by which a sentence may count as an answer, and their names in the summary.
ESTIMATE_NAMES = {
    "relevance": "the estimator",
    "support": "the judge, the sentence alone",
    "likely": "as a turn decides",
    "passage": "the judge, the whole passage",
}


def quote_rows(
    questions: Sequence[Question], passages: Mapping[str, Passage], estimator: Estimator, judge: SupportJudge,
    progress: Callable[[int], None],
) -> list[Row]:  # fmt: skip
    """For each question the sentence of its gold passages that would be quoted, its estimates, and whether it answers.

    `right` is None if the passages answer but the sentence lacks the gold answer: it may say it in other words.
    `sentence` is the passage's id and the sentence's number in it, from 0.
    """
    rows = []
    for n, question in enumerate(questions, 1):
        gold = [passages[passage_id] for passage_id in question.gold if passage_id in passages]
        # one sentence alone, since none is so likely that it would get a second one
        best = best_quotable(question.text, gold, estimator, judge, Event(), threshold=1.0)
        if best is not None:
            source_passage = next(passage for passage in gold if best.sentences[0].id.startswith(f"{passage.id} "))
            [verdict] = judge.judge([Claim(best.text, (source_passage,), question.text)], Event())
            has_answer = bool(answer_recall(best.text, question.answers)) if question.answers else False
            rows.append({
                "id": question.id, "sentence": best.sentences[0].id, "answerable": bool(question.answers),
                "right": has_answer if has_answer or not question.answers else None,
                "relevance": best.relevance, "support": best.support, "likely": best.likely,
                "passage": verdict.probability,
            })  # fmt: skip
        progress(n)
    return rows


def quote_summary(rows: Sequence[Row], threshold: float, seed: int) -> Summary:
    """The AUC of each estimate, and the shares of right and wrong sentences that pass the threshold.

    Raises:
        DataError: all questions can be answered, or none.
    """
    decided = [row for row in rows if row["right"] is not None]
    right = np.array([row["right"] for row in decided], dtype=bool)
    if not right.any() or right.all():
        raise DataError("Quoting is measured on questions that their passages answer, and on others beside them.")
    answerable = [row for row in rows if row["answerable"]]
    passing = [row["likely"] >= threshold for row in decided]
    return {
        "questions": len(rows),
        "the sentence has the answer, of questions that are answered": share_passed(
            [row["right"] is True for row in answerable]
        ),
        "auc": {
            name: auc(np.array([row[key] for row in decided]), right, seed) for key, name in ESTIMATE_NAMES.items()
        },
        "threshold": threshold,
        "right that pass": share_passed([passes for passes, is_right in zip(passing, right, strict=True) if is_right]),
        "wrong that pass": share_passed(
            [passes for passes, is_right in zip(passing, right, strict=True) if not is_right]
        ),
    }


def own_passage_rows(scenarios: Sequence[Scenario], others: Mapping[str, str], estimator: Estimator) -> list[Row]:
    """The confidence in each scenario's documents for its question, and in all documents for the `others`.

    `whole` reads passages as a whole, `closely` also sentence by sentence, as turns read a person's own passages.
    """
    documents = {
        document.name: list(_passages(document.name, document.text))
        for scenario in scenarios
        for document in scenario.documents
    }
    cases: list[tuple[str, str, str, list[Passage]]] = [
        (
            scenario.id,
            scenario.ask,
            scenario.expect,
            [passage for document in scenario.documents for passage in documents[document.name]],
        )
        for scenario in scenarios
        if scenario.documents
    ]
    all_passages = [passage for passages in documents.values() for passage in passages]
    cases += [(name, text, "unrelated", all_passages) for name, text in others.items()]
    return [
        {"id": name, "expect": expect, "whole": _confidence(text, passages, estimator, own=False),
         "closely": _confidence(text, passages, estimator, own=True)}
        for name, text, expect, passages in cases
    ]  # fmt: skip


def own_passage_summary(rows: Sequence[Row], threshold: float, small_talk: float, seed: int) -> Summary:
    """How well both ways of reading separate documents that answer from others, by the thresholds of `relevance`.

    Raises:
        DataError: no document answers, or there are no unrelated questions.
    """
    summary: dict[str, Any] = {}
    for reading in ("whole", "closely"):
        scores = {
            kind: [row[reading] for row in rows if row["expect"] == kind]
            for kind in ("answer", "no_answer", "unrelated")
        }
        if not scores["answer"] or not scores["unrelated"]:
            raise DataError("Give scenarios with documents that answer, and questions on other things beside them.")
        summary[reading] = {
            "answered": len(scores["answer"]), "unrelated": len(scores["unrelated"]),
            "median, answered": median(scores["answer"]), "median, unrelated": median(scores["unrelated"]),
            "highest, unrelated": max(scores["unrelated"]),
            "answered under relevance.threshold": sum(score < threshold for score in scores["answer"]),
            "answered from relevance.small_talk_threshold on": sum(score >= small_talk for score in scores["answer"]),
            "auc, answered against unrelated": _auc(scores["answer"], scores["unrelated"], seed),
            **({"auc, answered against those that look so": _auc(scores["answer"], scores["no_answer"], seed)}
               if scores["no_answer"] else {}),
        }  # fmt: skip
    return summary


def _auc(right: Sequence[float], wrong: Sequence[float], seed: int) -> dict[str, float]:
    labels = np.array([True] * len(right) + [False] * len(wrong))
    return auc(np.array([*right, *wrong]), labels, seed)


def _confidence(question: str, passages: Sequence[Passage], estimator: Estimator, *, own: bool) -> float:
    all_passages = [replace(passage, own=own) for passage in passages]
    batches = (all_passages[start : start + READ_CLOSELY] for start in range(0, len(all_passages), READ_CLOSELY))
    return max(set_confidence(estimates(question, batch, estimator, Event())) for batch in batches)


def _passages(name: str, text: str) -> Iterator[Passage]:
    title = PurePath(name).stem
    for n, block in enumerate(chunk([Block(text, title)])):
        yield Passage(f"{name}-{n}", title, block.text)
