"""The support judge as it ships, its veto, and what it says to bad input and broken files."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from threading import Event
from time import process_time

import pytest

from assistant.errors import ModelError
from assistant.evaluation.support import by_judge, measure, read_pairs
from assistant.judges.packed import WEIGHTS
from assistant.judges.pair_model import CURVE
from assistant.judges.support.trained import SHIPPED, Claim, Support, Verdict, claimed
from assistant.types import Passage

HAND = Path(__file__).parent / "data" / "support.jsonl"
NEVER = Event()
HERON = Passage(
    "p",
    "Project Heron",
    "The launch moves from 3 June to 24 June, since the payment provider needs two more weeks. Jonas writes the press "
    "release by 30 May. Li Wei fixes the login error before Friday.",
)


@pytest.fixture(scope="module")
def judge() -> Support:
    return Support()


def verdict(judge: Support, sentence: str, question: str = "", *evidence: Passage) -> Verdict:
    return judge.judge([Claim(sentence, evidence or (HERON,), question)], NEVER)[0]


# --- what it says ------------------------------------------------------------------------------------------------


@pytest.mark.model
def test_it_is_of_use_on_pairs_written_by_hand(judge: Support) -> None:
    found, _ = measure(read_pairs(HAND), by_judge(judge), judge.threshold, lambda n: None)
    assert found["auc"] > AUC


# well under what docs/results/support.md reports, since another processor rounds otherwise
AUC = 0.6


@pytest.mark.model
def test_what_a_passage_says_is_likelier_than_what_it_does_not(judge: Support) -> None:
    said = verdict(judge, "Jonas writes the press release.", "Who writes the press release?")
    other = verdict(judge, "Jonas designs the logo.", "Who designs the logo?")
    assert said.probability > other.probability


# --- the veto ----------------------------------------------------------------------------------------------------


@pytest.mark.model
@pytest.mark.parametrize(
    ("sentence", "veto"),
    [("The launch of Heron is on 17 June.", "number 17"), ("The launch was agreed by Amara.", "name Amara")],
)
def test_numbers_and_names_that_the_evidence_lacks_are_a_veto(judge: Support, sentence: str, veto: str) -> None:
    found = verdict(judge, sentence)
    assert found.veto == veto
    assert found.state != "supported"
    assert found.probability < judge.threshold


@pytest.mark.model
def test_what_was_given_besides_is_no_veto_and_no_support(judge: Support) -> None:
    [found] = judge.judge([Claim("Amara, Jonas writes it.", (HERON,), given="My name is Amara.")], NEVER)
    assert found.veto == ""


@pytest.mark.model
def test_two_passages_are_read_together(judge: Support) -> None:
    other = Passage("q", "Project Crane", "The launch of Crane is on 17 July.")
    assert verdict(judge, "Heron is launched on 24 June and Crane on 17 July.").veto == "number 17"
    assert verdict(judge, "Heron is launched on 24 June and Crane on 17 July.", "", HERON, other).veto == ""


# --- sentences of all sorts --------------------------------------------------------------------------------------


@pytest.mark.model
@pytest.mark.parametrize(
    "sentence",
    [
        "Jonas schreibt die Mitteilung bis zum 30. Mai.",
        "発売は6月24日です。",
        "<b>24 June</b>",
        "| a | b |",
        "\ud800",
        "a" * 5000,
    ],
)
def test_odd_sentences_give_a_probability(judge: Support, sentence: str) -> None:
    assert 0 <= verdict(judge, sentence).probability <= 1


@pytest.mark.model
def test_nothing_is_supported_by_nothing(judge: Support) -> None:
    claims = [
        Claim("", (HERON,)),
        Claim(" \n", (HERON,)),
        Claim("Jonas writes.", ()),
        Claim("It is.", (Passage("e", "E", ""),)),
    ]
    assert [(one.probability, one.state) for one in judge.judge(claims, NEVER)] == [(0.0, "not")] * 4
    assert judge.judge([], NEVER) == []


@pytest.mark.model
def test_two_hundred_sentences_threads_and_a_stop(judge: Support) -> None:
    claims = [Claim(f"Jonas writes release number {n % 9}.", (HERON,), "Who writes?") for n in range(200)]
    found = judge.judge(claims, NEVER)
    assert len(found) == 200
    assert found[0] == found[9]
    with ThreadPoolExecutor(4) as pool:
        for other in pool.map(lambda _: judge.judge(claims[:9], NEVER), range(4)):
            assert [one.state for one in other] == [one.state for one in found[:9]]
    stop = Event()
    stop.set()
    assert judge.judge(claims[:1], stop)[0].state == "not"


@pytest.mark.model
def test_it_takes_milliseconds_a_pair(judge: Support) -> None:
    claims = [Claim(f"Jonas writes {n} releases.", (HERON,), "Who writes?") for n in range(16)]
    judge.judge(claims, NEVER)
    times = []
    for _ in range(5):
        start = process_time()
        judge.judge(claims, NEVER)
        times.append(process_time() - start)
    assert median(times) / len(claims) < 0.15  # processor time on any machine; docs/results/support.md has the figure


# --- its files ---------------------------------------------------------------------------------------------------


def test_a_missing_judge_is_told(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"The support judge can't be used: .* holds no model"):
        Support(tmp_path)


@pytest.mark.parametrize("file", [WEIGHTS, CURVE, "config.json"])
def test_a_judge_that_is_cut_short_is_told(tmp_path: Path, file: str) -> None:
    shutil.copytree(SHIPPED, tmp_path / "judge")
    whole = (tmp_path / "judge" / file).read_bytes()
    (tmp_path / "judge" / file).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelError, match=r"The support judge can't be used: .*(get|give|train)"):
        Support(tmp_path / "judge")


def test_it_is_small_and_says_where_it_comes_from() -> None:
    assert sum(file.stat().st_size for file in SHIPPED.iterdir()) < 25e6
    card = (SHIPPED / "README.md").read_text(encoding="utf-8")
    for word in ("Base", "Data", "Licence", "seed", "not"):
        assert word in card


def test_a_sentence_is_read_behind_its_question() -> None:
    assert claimed("Qatar", "Who hosted it ?") == "Who hosted it ? Qatar"
    assert claimed("Qatar", "Who hosted it??") == claimed("Qatar", "Who hosted it")
    assert claimed(" Qatar hosted it. ") == "Qatar hosted it."
