"""Where a quote stands among the words of a page."""

from __future__ import annotations

import pytest

from assistant.text.spots import QuoteLocation, locate_quote

PAGE = "House rules Tea is a drink. The key hangs be- hind the green door. Oats are a cereal.".split()


def said(quote: str, page: list[str] = PAGE) -> tuple[str, float]:
    found = locate_quote(quote, page)
    return " ".join(page[n] for n in found.places), round(found.share, 2)


def test_a_quote_is_found_as_it_stands() -> None:
    assert said("Tea is a drink.") == ("Tea is a drink.", 1.0)


@pytest.mark.parametrize("quote", ["The key hangs behind the green door.", "the KEY hangs behind the greendoor"])
def test_hyphens_spaces_and_case_make_no_difference(quote: str) -> None:
    assert said(quote) == ("The key hangs be- hind the green door.", 1.0)


def test_ligatures_are_letters() -> None:
    assert said("five offices", ["Our", "ﬁve", "oﬃces"]) == ("ﬁve oﬃces", 1.0)


def test_it_begins_and_ends_where_words_do() -> None:
    assert said("rice", ["price", "of", "rice"]) == ("rice", 1.0)
    assert said("rice", ["price"]) == ("", 0.0)


def test_of_a_quote_with_other_words_in_it_those_are_found_that_are_there() -> None:
    assert said("The key hung near the green door.") == ("The key the green door.", 0.71)


def test_it_is_sought_where_most_of_it_is_and_not_all_over_the_page() -> None:
    page = ["the", "of", "a", *["filler"] * 60, *PAGE]
    found = locate_quote("The key of the green door", page)
    assert found.places
    assert min(found.places) > 60


def test_what_is_not_there_has_no_share_to_speak_of() -> None:
    assert locate_quote("Bananas grow in warm countries.", PAGE) == QuoteLocation()
    assert locate_quote("The moon is far away from any sea or land", PAGE).share < 0.5


@pytest.mark.parametrize(("quote", "page"), [("", PAGE), ("…", PAGE), ("Tea", []), ("Tea", ["", "…"])])
def test_nothing_is_found_of_nothing(quote: str, page: list[str]) -> None:
    assert locate_quote(quote, page) == QuoteLocation()
