"""The language model as the judge of support: what it is asked, and what is known without asking."""

from collections.abc import Sequence
from threading import Event

import pytest

from assistant.judges.support.llm import ByLLM
from assistant.types import Claim, Passage, Verdict
from tests.scripted import WORDS, ScriptedLLM

LENTILS = Passage("p", "Lentils", "Lentils are cheap. They cook in 20 minutes. A cup of lentils holds much protein.")
SWISS = Passage(
    "s",
    "",
    "The languages spoken in Switzerland are German (official) 62.1%, French (official) 22.8%, Italian (official) 8%, "
    "English 5.7%, Portuguese 3.5% (2019 estimate).",
)


def judged(sentence: str, *evidence: Passage, yes: Sequence[float] = (), shorter: bool = True) -> tuple[Verdict, str]:
    """The verdict, and what the model was asked last."""
    llm = ScriptedLLM(choices=[{"yes": p, "no": 1 - p} for p in yes])
    judge = ByLLM(llm, 0.5, WORDS if shorter else None)
    [verdict] = judge.judge([Claim(sentence, evidence)], Event())
    assert (len(llm.asked), llm.choices) == (len(yes), [])
    return verdict, llm.asked[-1][-1].content if llm.asked else ""


@pytest.mark.parametrize(("yes", "state"), [(0.9, "supported"), (0.5, "supported"), (0.4, "not")])
def test_its_yes_is_support(yes: float, state: str) -> None:
    assert judged("A cup holds protein.", LENTILS, yes=[yes])[0] == Verdict(yes, state)


def test_it_reads_the_nearest_sentences_or_all() -> None:
    said = "A cup of lentils holds protein."
    assert "Lentils: Lentils are cheap. A cup of lentils holds much protein." in judged(said, LENTILS, yes=[0.9])[1]
    assert "They cook in 20 minutes." in judged(said, LENTILS, yes=[0.9], shorter=False)[1]


def test_two_passages_are_shown_together() -> None:
    oats = Passage("o", "Oats", "Oats hold fibre.")
    asked = judged("Lentils hold protein, oats fibre.", LENTILS, oats, yes=[0.9])[1]
    assert "protein. Oats: Oats hold fibre." in asked


def test_a_number_that_the_passage_lacks_needs_no_model() -> None:
    assert judged("They cook in 45 minutes.", LENTILS)[0] == Verdict(0.0, "not", "number 45")


def test_a_long_quotation_needs_no_model() -> None:
    quoted = "German (official) 62.1%, French (official) 22.8%, Italian (official) 8%, English 5.7%, Portuguese …"
    assert judged(quoted, SWISS)[0] == Verdict(1.0, "supported")
    assert judged(quoted.replace("22.8", "28.2"), SWISS)[0].state == "not"


def test_what_a_stop_left_unread_is_not_supported() -> None:
    stop = Event()
    stop.set()
    quoted = "German (official) 62.1%, French (official) 22.8%, Italian (official) 8%, English 5.7%, Portuguese …"
    claims = [Claim("A cup holds protein.", (LENTILS,)), Claim(quoted, (SWISS,))]
    judge = ByLLM(ScriptedLLM(choices=[{"yes": 0.5, "no": 0.5}]), 0.5, WORDS)
    assert judge.judge(claims, stop) == [Verdict(0.0, "not"), Verdict(1.0, "supported")]


def test_a_short_quotation_may_have_lost_its_not() -> None:
    coffee = Passage("c", "", "No study shows that coffee prevents diabetes.")
    assert judged("coffee prevents diabetes.", coffee, yes=[0.2])[0].state == "not"


@pytest.mark.parametrize(("sentence", "evidence"), [("", LENTILS), (" ", LENTILS), ("Yes.", Passage("e", "E", " "))])
def test_nothing_is_supported_by_nothing(sentence: str, evidence: Passage) -> None:
    assert judged(sentence, evidence)[0] == Verdict(0.0, "not")
    assert ByLLM(ScriptedLLM(), 0.5).judge([], Event()) == []
