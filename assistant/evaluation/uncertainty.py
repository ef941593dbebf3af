"""Measures how well each way of `assistant.judges.uncertainty` tells right answers from wrong ones.

Every question is answered once from its passages, greedily, by the prompt of concatenation; each way then gives its
confidence. One row: `{"id", "question", "answer", "gold", "right", "unanswerable", "confidence": {"word": 1.0, ...}}`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assistant.errors import DataError
from assistant.evaluation.answers import Experiment, Material, PassageProvider, claim
from assistant.experiment.datasets import Question
from assistant.experiment.measures import Floats, auc, exact_match
from assistant.experiment.runs import Row
from assistant.experiment.task import Rows, Summary, Task
from assistant.judges.relevance.rerank import with_relevance
from assistant.judges.uncertainty import WAYS, PromptedAnswer, confidences
from assistant.prompting.budget import fit
from assistant.protocols import Parts
from assistant.strategies.shared.reading import FACTOID_MAX_TOKENS
from assistant.types import Choices, Options, Passage, Turn

Flags = NDArray[np.bool_]


class UncertaintyTests(Task[Question, Parts]):
    """Every question of `material` answered from the passages of the first setting."""

    title = "Answers"

    def __init__(self, experiment: Experiment, material: Material, model: str) -> None:
        self._experiment, self._material, self._model = experiment, material, model
        self.items = {question.id: question for question in material.questions}

    def claim(self) -> Row:
        """See `Task`."""
        return {**claim(self._experiment, self._model), "setting": str(self._experiment.settings[0])}

    def row(self, item: Question, parts: Parts) -> Row:
        """See `Task`."""
        provider = PassageProvider(self._experiment, self._material.corpus, parts)
        passages = provider.passages(self._experiment.settings[0], item)
        values = {"facts": (), "question": item.text, "examples": parts.settings.turn.answer_examples}
        messages, _ = fit("factoid/concat", parts.llm, FACTOID_MAX_TOKENS, passages=passages, **values)
        [completion] = parts.llm.complete([messages], Options(max_tokens=FACTOID_MAX_TOKENS), Event())
        prompted = [PromptedAnswer(messages, completion, _estimated(item, passages, parts), item.text)]
        return {
            "id": item.id,
            "question": item.text,
            "answer": completion.text.strip(),
            "gold": list(item.answers),
            "right": bool(exact_match(completion.text, item.answers)),
            "unanswerable": item.unanswerable,
            "confidence": {test: confidences(prompted, test, parts, Event())[0] for test in WAYS},
        }

    def summarise(self, rows: Rows) -> Summary:
        """For each way its AUC, and the thresholds that are best for F1 of "unknown" and for Youden's J.

        An answer should be unknown where it is wrong. J (recall of the wrong minus share of the right that is lost)
        does not reward calling everything unknown, as F1 does where most answers are wrong.

        Raises:
            DataError: all answers are right, or all are wrong, so that nothing can be told apart.
        """
        item_rows = [rows[question_id] for question_id in self.items]
        right = np.array([row["right"] for row in item_rows], dtype=bool)
        if right.all() or not right.any():
            verdict = "right" if right.all() else "wrong"
            raise DataError(f"All {len(item_rows)} answers are {verdict}; take more questions.")
        # a run that goes on may be older than one of the tests
        tests = [test for test in WAYS if all(test in row["confidence"] for row in item_rows)]
        confidences_by_test = {test: np.array([row["confidence"][test] for row in item_rows]) for test in tests}
        seed = self._experiment.seed
        ways = {test: _test_summary(values, right, seed) for test, values in confidences_by_test.items()}
        counts = {"questions": len(item_rows), "right": float(right.mean())}
        return {**counts, "ways": ways, "left_out": self._material.left_out}


def at_threshold(confidence: Floats, right: Flags, threshold: float) -> dict[str, float]:
    """What calling answers below `threshold` unknown does.

    Precision, recall and F1 over the wrong answers, Youden's J, the share called unknown, and the share of right ones
    among the others.
    """
    called_unknown, wrong = (confidence < threshold) | (confidence == 0), ~right
    hits = float((called_unknown & wrong).sum())
    recall = hits / max(wrong.sum(), 1)
    return {
        "threshold": threshold,
        "precision": hits / max(called_unknown.sum(), 1),
        "recall": recall,
        "f1": 2 * hits / max(called_unknown.sum() + wrong.sum(), 1),
        "j": recall - float((called_unknown & right).sum()) / max(right.sum(), 1),
        "unknown": float(called_unknown.mean()),
        "right_of_known": float((~called_unknown & right).sum()) / max((~called_unknown).sum(), 1),
    }


def _estimated(question: Question, passages: Sequence[Passage], parts: Parts) -> tuple[Passage, ...]:
    """The passages, as they stand in the prompt, with the relevance estimator's confidence, where there is one."""
    choices = Choices(k=max(len(passages), 1), form="factoid")
    turn = Turn(question.text, question=question.text, passages=tuple(passages), choices=choices)
    if not parts.estimator:
        return turn.passages
    ranked_passages = with_relevance(turn, passages, parts, Event()).passages
    confidences_by_id = {passage.id: passage.confidence for passage in ranked_passages}
    return tuple(replace(passage, confidence=confidences_by_id[passage.id]) for passage in passages)


def _test_summary(confidence: Floats, right: Flags, seed: int) -> dict[str, Any]:
    # halfway between neighbours, so that a threshold does not sit on an answer's own value
    values = np.unique(confidence)
    thresholds = [0.0, *((values[1:] + values[:-1]) / 2).tolist(), 1.01]
    candidates = [at_threshold(confidence, right, threshold) for threshold in thresholds]
    return {
        "auc": auc(confidence, right, seed),
        "best_f1": max(candidates, key=lambda scores: scores["f1"]),
        "best_j": max(candidates, key=lambda scores: scores["j"]),
    }
