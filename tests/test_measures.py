import gzip
import json
from pathlib import Path

import pytest

from assistant.experiment.measures import exact_match, lost_vote, mean, paired_difference, token_f1, unknown_scores

SQUAD = Path(__file__).parents[2] / "shared" / "data" / "squad"


@pytest.mark.parametrize(
    ("answer", "golds", "em", "f1"),
    [
        ("The Eiffel Tower!", ["Eiffel tower"], 1, 1),
        ("Eiffel Tower in Paris", ["Eiffel Tower"], 0, 2 * 2 / (4 + 2)),
        ("May 18", ["18 May 2018", "May 18, 2018"], 0, 2 * 2 / (2 + 3)),
        ("the cat the cat", ["cat"], 0, 2 * 1 / (2 + 1)),
        ("Lyon", ["Paris"], 0, 0),
        ("", ["Paris"], 0, 0),
        ("The", ["a"], 1, 1),
        ("", ["interventionism", "."], 0, 0),
        ("Paris", [], 0, 0),
    ],
)
def test_em_and_f1_take_the_best_gold_answer(answer, golds, em, f1) -> None:
    assert exact_match(answer, golds) == em
    assert token_f1(answer, golds) == pytest.approx(f1)


def test_a_vote_is_lost_when_a_right_candidate_was_outvoted() -> None:
    assert lost_vote("Lyon", ["Lyon", "paris.", "Lyon"], ["Paris"])
    assert not lost_vote("Paris", ["Lyon", "Paris"], ["Paris"])
    assert not lost_vote("Lyon", ["Lyon", "Nice"], ["Paris"])
    assert not lost_vote("Lyon", [], ["Paris"])


def test_the_mean_lies_in_its_interval_and_the_seed_decides_the_ends() -> None:
    values = [1.0] * 30 + [0.0] * 70
    found = mean(values, seed=1)
    assert found["value"] == pytest.approx(0.3)
    # the normal approximation: 0.3 +- 1.96 * sqrt(0.3 * 0.7 / 100)
    assert (found["low"], found["high"]) == (pytest.approx(0.21, abs=0.02), pytest.approx(0.39, abs=0.02))
    assert mean(values, seed=1) == found
    uneven = [n**0.5 for n in range(50)]
    assert mean(uneven, seed=2) != mean(uneven, seed=1)


def test_one_value_has_an_interval_of_no_width_and_none_is_an_error() -> None:
    assert mean([0.5]) == paired_difference([0.75], [0.25])
    with pytest.raises(ValueError, match="no values"):
        mean([])


def test_pairing_narrows_the_interval() -> None:
    base = [float(n % 10) for n in range(100)]
    better = [value + 1 for value in base]
    assert paired_difference(better, base)["low"] == pytest.approx(1)
    assert paired_difference(better, base)["high"] == pytest.approx(1)


def test_precision_recall_and_f1_of_unknown() -> None:
    said = [True, True, True, False, False]
    unanswerable = [True, False, False, True, False]
    found = unknown_scores(said, unanswerable)
    assert found["precision"]["value"] == pytest.approx(1 / 3)
    assert found["recall"]["value"] == pytest.approx(1 / 2)
    assert found["f1"]["value"] == pytest.approx(2 * 1 / (3 + 2))
    assert unknown_scores([False], [True])["precision"]["value"] == 0


def test_two_sets_of_one_question_are_drawn_together() -> None:
    # of each question one set lacks its answer: however questions are drawn, half of what is said is right
    said, unanswerable = [True] * 20, [True, False] * 10
    apart = unknown_scores(said, unanswerable)["precision"]
    together = unknown_scores(said, unanswerable, questions=[n // 2 for n in range(20)])["precision"]
    assert apart["value"] == together["value"] == 0.5
    assert apart["low"] < together["low"] == together["high"] == 0.5


@pytest.mark.skipif(not SQUAD.exists(), reason="the development data is not here")
def test_a_published_system_gets_its_published_scores() -> None:
    """The logistic regression baseline: EM 40.0, F1 51.0 on the dev set (Rajpurkar et al., EMNLP 2016, table 5).

    The questions here are about half of the dev set, so the published numbers must lie in the intervals. A question
    that the system left out counts as wrong, as in the official script.
    """
    with gzip.open(SQUAD / "predictions_logistic_regression_v1.1.json.gz", "rt") as file:
        predictions = json.load(file)
    with gzip.open(SQUAD / "questions_v1.1.jsonl.gz", "rt") as file:
        questions = [json.loads(line) for line in file]
    em = mean([exact_match(predictions.get(q["id"], ""), q["answers"]) for q in questions])
    f1 = mean([token_f1(predictions.get(q["id"], ""), q["answers"]) for q in questions])
    assert len(questions) > 6000
    assert em["low"] <= 0.400 <= em["high"]
    assert f1["low"] <= 0.510 <= f1["high"]
