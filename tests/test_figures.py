"""Which of two things has the higher figure is worked out from sentences that give one of each."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from assistant import figures

NORDIC = ("Norway", "Sweden")


def higher(texts: Sequence[str], names: Sequence[str]) -> figures.Higher | None:
    return figures.higher(texts, names, [True] * len(texts))


@pytest.mark.parametrize(
    ("texts", "names", "first"),
    [
        (
            ["Norway has 5,509,733 people (2024 estimate), while Sweden has 10,643,745 (2025 estimate)."],
            NORDIC,
            "Sweden",
        ),
        (["Norway has 5.5 million people.", "Sweden's population is 10,643,745."], NORDIC, "Sweden"),
        (["In 2024 Norway had 385,207 sq km.", "Sweden had 450,295 square kilometres in 2025."], NORDIC, "Sweden"),
        (["The GDP of Norway was $1.2 trillion and that of Sweden $593 billion."], NORDIC, "Norway"),
        (
            ["Malta has an area of 316 square kilometers, while Monaco has 2 square kilometers."],
            ("Malta", "Monaco"),
            "Malta",
        ),
        (["A cup of tea has 47 mg of caffeine.", "A cup of coffee has 95 mg."], ("coffee", "tea"), "coffee"),
        (["Norway has over 9 million people, Sweden 8.1 million."], NORDIC, "Norway"),
        (["Tea has 75-110 mg.", "Coffee has 100–140 mg."], ("tea", "coffee"), None),
        (["Lentils have 9 grams per 100 grams, tofu 12 to 15 grams."], ("lentils", "tofu"), "tofu"),
        (["Unemployment is 4.1% in Norway and 8.4 % in Sweden."], NORDIC, None),  # which is whose can't be seen
        (["Norway 4.1%, Sweden 8.4 %"], NORDIC, "Sweden"),
    ],
)
def test_the_higher_figure(texts: Sequence[str], names: tuple[str, str], first: str | None) -> None:
    found = higher(texts, names)
    assert (found.name if found else None) == first


@pytest.mark.parametrize(
    "texts",
    [
        [],
        ["Norway has 5.5 million people."],
        ["Norway has more people than Sweden."],
        ["Norway has 5 lakes and Sweden has 5."],
        ["Norway has 385,207 square kilometers, Sweden has 10.6 million people in 450,295 square kilometers."],
        ["Norway has 5.5 million people.", "Norway has 385,207 of them.", "Sweden has 10.6 million people."],
        ["Norway has 323,802 square kilometers and Sweden 10.6 million."],
        ["Sweden is larger than Norway, with 10.6 million compared to 5.5 million."],
        ["Norway has over 5 million people, Sweden has under 6 million."],
        ["Norway has up to 9 lakes and Sweden 8."],
        ["It is minus 5 degrees in Norway."],
        ["Norway has minus 5 degrees and Sweden has 3 degrees."],
        ["Norway has −5 degrees and Sweden has 3 degrees."],
        ["Of 4.1% in Norway and 8.4 % in Sweden, half a million and 3% more."],
        ["Norway was free in 1905 and Sweden in 1523."],
    ],
)
def test_no_outcome_where_it_is_not_clear_what_is_whose(texts: Sequence[str]) -> None:
    assert higher(texts, NORDIC) is None


def test_only_what_can_be_used_counts() -> None:
    sentences = ["Norway has 9 million people, Sweden 8.", "Norway has 5.5 million, Sweden 10.6 million."]
    assert figures.higher(sentences, NORDIC, [False, True]) == figures.Higher("Sweden", "Norway", (1,))
    assert figures.higher(sentences, NORDIC, [True, True]) is None
    assert figures.higher(sentences, NORDIC, [False, False]) is None


def test_what_it_is_is_spelt_out() -> None:
    sentences = ["It is hot.", "Tea has more.", "It has 75 mg, coffee 100.", "They say so.", "Its cups are small."]
    assert figures.spelt_out(sentences, ("coffee", "tea")) == [
        "It is hot.", "Tea has more.", "Tea has 75 mg, coffee 100.", "They say so.", "Its cups are small."
    ]  # fmt: skip
    assert figures.spelt_out(sentences, ()) == sentences


def test_only_two_things_are_compared() -> None:
    text = "Norway has 5 lakes, Sweden 6 and Denmark 7."
    assert higher([text], ("Norway", "Sweden", "Denmark")) is None
    assert higher([text], ("Norway",)) is None


@pytest.mark.parametrize(
    ("sentence", "contradicted"),
    [
        ("Malta is smaller than Monaco.", True),
        ("Malta is larger than Monaco.", False),
        ("Monaco is larger than Malta.", True),
        ("Monaco is smaller.", False),
        ("Monaco has more.", True),
        ("Malta is older than Monaco.", False),
        ("Malta is smaller, and Monaco larger.", False),
        ("Malta is smaller than Monaco, with 316.", False),
        ("It is smaller.", False),
        ("Malta is not smaller than Monaco.", False),
        ("Malta isn't larger than Monaco.", False),
        ("Compared to Monaco, Malta is larger.", False),
        ("The one that is smaller than Monaco is hot.", False),
        ("There are more people in Monaco than in Malta.", True),
    ],
)
def test_an_outcome_that_the_figures_contradict(sentence: str, contradicted: bool) -> None:
    found = higher(["Malta has 316 square kilometers, Monaco has 2 square kilometers."], ("Malta", "Monaco"))
    assert found
    assert found.contradicts(sentence) is contradicted


def test_it_says_which_and_where_from() -> None:
    found = higher(["Two countries.", "Norway has 5.5 million people.", "Sweden has 10.6 million."], NORDIC)
    assert found
    assert (str(found), found.places) == ("Of the two figures, Sweden's is the higher.", (1, 2))
