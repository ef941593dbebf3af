"""Countries ranked by the Factbook's figures, as passages that a question for the largest finds."""

from __future__ import annotations

import re

import pytest

from assistant.library.rankings import REGIONS, SOURCE, ranked_entries, regions, states


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    return {one.passage.id.removeprefix("factbook-ranked-"): one.passage.text for one in ranked_entries()}


def test_each_end_of_a_ranking_is_a_passage_with_its_source() -> None:
    passages = [one.passage for one in ranked_entries()]
    assert len({one.id for one in passages}) == len(passages) > 50
    assert {one.source for one in passages} == {SOURCE}
    assert {"World - Countries by population", "Continents - Countries by area"} <= {one.title for one in passages}
    assert max(len(one.text.split()) for one in passages) < 170
    for pattern in (r"\s\s", r" [,.;]", r"[{}]", r"\best\.", r"\(\(", r" with [,.a(]"):
        assert [one.text for one in passages if re.search(pattern, one.text)] == []


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("world-countries-by-population-most", "India with 1,419,316,933 (2025). The second is China"),
        ("world-countries-by-area-most", "The largest country in the world by area is Russia with 17,098,242 square"),
        ("world-countries-by-area-least", "by area is the Holy See with 0.44 square kilometers. The second is Monaco"),
        ("continents-countries-by-area-most", "The largest country in Africa is Algeria with 2,381,740"),
        ("continents-countries-by-area-most", ", before France with 643,801 square kilometers and Ukraine"),
        ("continents-countries-by-area-least", "The smallest country in Europe is the Holy See with 0.44"),
        ("world-countries-by-mean-elevation-least", "Kiribati, the Marshall Islands, Tuvalu and the Maldives with 2"),
        ("continents-countries-by-population-most", "before China with 1,407,181,209 (2025) and Indonesia"),
        ("world-countries-by-highest-point-most", "China and Nepal with Mount Everest 8,849 meters. The second"),
        ("world-countries-by-highest-point-least", "unnamed location 5 meters and the Maldives with 8th tee, golf"),
        ("world-countries-by-railways-most", "China with 150,000 kilometers (2021)"),
        ("world-countries-by-economy-gdp-most", "is the United States with $29.185 trillion (2024)"),
        ("world-countries-by-oil-most", "Saudi Arabia with 11.174 million barrels per day (2023)"),
    ],
)  # fmt: skip
def test_countries_are_ranked_by_what_the_figures_mean(texts: dict[str, str], key: str, sentence: str) -> None:
    assert sentence in texts[key]


def test_words_that_people_ask_with_are_keywords_alone() -> None:
    found = {one.passage.id: one for one in ranked_entries()}
    for key, word in (
        ("income-gdp-per-person-most", "richest"),
        ("obesity-most", "fattest"),
        ("area-least", "tiniest"),
    ):
        entry = found[f"factbook-ranked-world-countries-by-{key}"]
        assert word in entry.keywords.split()
        assert word not in f"{entry.passage.title} {entry.passage.text}"


def test_only_states_are_ranked(texts: dict[str, str]) -> None:
    told = " ".join(texts.values())
    for name in ("European Union", "Greenland", "Hong Kong", "Pitcairn", "Gaza", "Antarctica", "the world with"):
        assert name not in told


def test_every_state_lies_in_a_continent() -> None:
    assert {region for country in states() for region in regions(country)} == set(REGIONS)
    assert {country.title for country in states() if len(regions(country)) > 1} == {"Russia"}
