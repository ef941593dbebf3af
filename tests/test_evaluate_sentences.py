"""`evaluate quoting` and `evaluate own-passages`: their measures on scores that can be checked by hand."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

import pytest

from assistant.errors import DataError
from assistant.evaluation.scenarios import Scenario
from assistant.evaluation.sentences import own_passage_rows, own_passage_summary, quote_rows, quote_summary
from assistant.experiment.datasets import Question
from assistant.types import Claim, Passage, Relevance, Verdict

LEASE = Passage("lease", "Lease", "The rent is 900 euros. Dogs are allowed. Quiet hours are from ten.")


class Shared:
    """As sure as the share of a text's words that the question has."""

    name, calibration = "shared", ""

    def estimate(self, question: str, passages: Sequence[Passage], stop: Event) -> list[Relevance]:
        asked = set(question.lower().rstrip("?").split())
        read = [set(one.text.lower().rstrip(".").split()) for one in passages]
        return [Relevance.of_confidence(len(asked & words) / len(words)) for words in read]


class Reads:
    """Finds a claim likely beside its own sentence, and unlikely beside more."""

    threshold = 0.5

    def judge(self, claims: Sequence[Claim], stop: Event) -> list[Verdict]:
        return [Verdict(0.8 if one.evidence[0].text == one.sentence else 0.1, "supported") for one in claims]


def test_the_sentence_that_would_be_quoted_is_measured_with_all_that_tells_of_it() -> None:
    questions = [
        Question("a", "Are dogs allowed?", ("Dogs",), ("lease",)),
        Question("b", "Are cats allowed?", (), ("lease",), unanswerable=True),
        Question("c", "Is the rent 900 dollars?", ("1,000 euros",), ("lease",)),
        Question("d", "What is nowhere?", ("Oslo",), ("gone",)),
    ]
    told: list[int] = []
    rows = quote_rows(questions, {"lease": LEASE}, Shared(), Reads(), told.append)
    assert told == [1, 2, 3, 4]
    assert [(row["id"], row["right"], row["passage"]) for row in rows] == [
        ("a", True, 0.1),
        ("b", False, 0.1),
        ("c", None, 0.1),
    ]
    assert rows[0]["sentence"].startswith("lease ")
    assert rows[0]["relevance"] > rows[1]["relevance"]
    assert rows[0]["support"] == 0.8
    found = quote_summary(rows, 0.8, seed=0)
    assert found["questions"] == 3
    assert found["the sentence has the answer, of questions that are answered"]["value"] == 0.5
    assert found["auc"]["as a turn decides"]["value"] == 1
    assert found["auc"]["the judge, the whole passage"]["value"] == 0.5
    assert (found["right that pass"]["value"], found["wrong that pass"]["value"]) == (1, 0)


def test_quoting_needs_questions_of_both_kinds() -> None:
    rows = quote_rows(
        [Question("a", "Are dogs allowed?", ("Dogs",), ("lease",))], {"lease": LEASE}, Shared(), Reads(), print
    )
    with pytest.raises(DataError, match="and on others beside them"):
        quote_summary(rows, 0.5, 0)


def test_own_passages_are_read_as_a_whole_and_by_their_sentences() -> None:
    lease = {"name": "lease.md", "text": LEASE.text}
    asked = {"documents": [lease], "expect": "answer"}
    scenarios = [
        Scenario.model_validate({"id": "1", "kind": "document", "ask": "Dogs are welcome?", **asked}),
        Scenario.model_validate({"id": "2", "kind": "talk", "ask": "Hello", "expect": "uncited"}),
    ]
    rows = own_passage_rows(scenarios, {"q": "Which rivers flow north?"}, Shared())
    assert [(row["id"], row["expect"]) for row in rows] == [("1", "answer"), ("q", "unrelated")]
    assert rows[0]["closely"] == pytest.approx(2 / 3)
    assert rows[0]["whole"] < 0.3
    assert rows[1]["closely"] == rows[1]["whole"]
    found = own_passage_summary(rows, 0.1, 0.6, 0)
    assert found["whole"]["answered from relevance.small_talk_threshold on"] == 0
    assert found["closely"]["answered from relevance.small_talk_threshold on"] == 1
    assert found["closely"]["auc, answered against unrelated"]["value"] == 1
    assert "auc, answered against those that look so" not in found["closely"]
    with pytest.raises(DataError, match="questions on other things"):
        own_passage_summary(rows[:1], 0.1, 0.6, 0)
