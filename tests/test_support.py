"""What two texts share in numbers and names."""

import pytest

from assistant.text.overlap import contradiction, disagree, echoes, repeats


@pytest.mark.parametrize(
    ("sentence", "evidence", "missing"),
    [
        ("It became independent in 1960.", "It became independent in 1957.", "number 1960"),
        ("It became independent in 1957.", "It became independent on 3 May 1957.", ""),
        ("It has 1500 inhabitants.", "It has 1,520 inhabitants.", ""),
        ("The capital there is Peru\u2019s Lima.", "Lima is the capital of Peru.", ""),
        ("It is a UK-wide law.", "It is law in all of the UK.", ""),
        ("It was written by O\u2019Brien.", "It was written by O'Brien.", ""),
        ("It was written by Brian.", "It was written by O'Brien.", "name Brian"),
        ("As a vegan from Peru, eat 25 grams.", "Eat 25 grams.", "name Peru"),
    ],
)
def test_years_are_exact_and_names_are_without_what_hangs_on_them(sentence: str, evidence: str, missing: str) -> None:
    assert contradiction(sentence, evidence) == missing


def test_what_was_given_may_be_named() -> None:
    assert contradiction("As a vegan from Peru, eat 25 grams.", "Eat 25 grams.", "I'm from Peru.") == ""


def test_answers_that_give_other_years_disagree() -> None:
    assert disagree("It was opened in 1905.", "It was opened in 1945.")
    assert not disagree("It was opened in 1905.", "It was opened on 3 May 1905.")


@pytest.mark.parametrize(
    ("sentence", "evidence", "missing"),
    [
        ("It has thirty-two thousand inhabitants.", "It has 32,000 inhabitants.", False),
        ("It has thirty-two thousand inhabitants.", "It has 2,000 inhabitants.", True),
        ("Twenty-five people came.", "There were 25 guests.", False),
        ("Twenty-five people came.", "There were 20 guests at 5.", True),
        ("It cost two hundred thousand.", "The price was 200,000.", False),
        ("From twenty 2025 cars.", "20 cars of 2025.", False),
        ("In 1900 the town had 50 people.", "It had 50 people in 1900 and 50 thousand in 2000.", False),
        ("Two hundred and fifty people live there.", "It has 250 inhabitants.", False),
        ("It has 120 rooms.", "There are one hundred and twenty rooms.", False),
        ("Two hundred fifty people live there.", "It has 200 inhabitants and 50 cows.", True),
        ("The war lasted from 1939 to 1945.", "The war (1939-45) ended.", False),
        ("In 1900 the town had 60 people.", "It had 50 people in 1900 and 60 thousand in 2000.", True),
    ],
)
def test_numbers_in_words(sentence: str, evidence: str, missing: bool) -> None:
    assert contradiction(sentence, evidence).startswith("number") is missing


@pytest.mark.parametrize(
    ("question", "reply", "echo"),
    [
        ("The kettle leaks at its lid.", "A kettle leaks at its lid!", True),
        ("Profit is a motive of which traders?", "Profit is a motive of traders.", True),
        ("What kind of pay does scarce work get?", "Scarce pay.", False),
        ("Which is older, the oak or the elm?", "The elm is older.", False),
        ("Does the shop sell oats?", "No, the shop does not sell oats.", False),
        ("Does the shop sell oats?", "Yes.", False),
        ("The kettle leaks at its lid.", "The kettle leaks at its lid when it is too full.", False),
        ("Who?", "", False),
    ],
)
def test_a_reply_that_adds_no_word_is_an_echo(question: str, reply: str, echo: bool) -> None:
    assert echoes(question, reply) is echo


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("The house was built in 1905 by a baker.", "The house was built in 1905 by a baker.", True),
        (
            "The house was built in 1905 by a baker.",
            "So: the house was built in 1905 by a baker. It is red.",
            True,
        ),
        ("The house was built in 1905 by a baker.", "A baker built the house, in 1905.", False),
        ("Too short.", "Too short.", True),
        ("", "", False),
        ("?", "The house.", False),
    ],
)
def test_copies_and_excerpts_repeat_a_text(one: str, other: str, same: bool) -> None:
    assert repeats(one, other) is repeats(other, one) is same
