"""The recipe of pairs that are written as a model replies: how a fact is told again, and what decides the label."""

from collections import Counter
from dataclasses import replace

import pytest

from assistant.training.suitability.replies import make_replies, of_people, to_you
from assistant.training.suitability.tables import Group, Item, Tables, Tags, load_tables

SEED = 0


@pytest.mark.parametrize(
    ("fact", "you", "people"),
    [
        ("I'm vegan.", "you're vegan", "are vegan"),
        ("I have a peanut allergy", "you have a peanut allergy", "have a peanut allergy"),
        ("I can't stand my cat's hair.", "you can't stand your cat's hair", "can't stand their cat's hair"),
        ("I've been told that I am anaemic.", "you've been told that you are anaemic",
         "have been told that they are anaemic"),
        ("I was stung once.", "you were stung once", "were stung once"),
        ("My son was stung.", "your son was stung", ""),
        ("no nuts please", "", ""),
        ("", "", ""),
    ],
)  # fmt: skip
def test_a_fact_is_told_again_to_the_person_and_of_people(fact: str, you: str, people: str):
    assert (to_you(fact), of_people(fact)) == (you, people)


def test_pairs_are_different_and_whole_and_each_way_to_offer_clashes_as_often_as_it_does_not():
    pairs = make_replies(load_tables("train", SEED), 3000, SEED)
    assert len({(pair.fact, pair.text) for pair in pairs}) == 3000
    assert pairs == make_replies(load_tables("train", SEED), 3000, SEED)
    assert not [pair for pair in pairs if "{" in pair.text or "  " in pair.text or pair.text != pair.text.strip()]
    for what in ("offers", "repeating", "sparing"):
        clashing = Counter(pair.clash for pair in pairs if pair.recipe == f"reply {what}")
        assert 0.4 < clashing[True] / clashing.total() < 0.65
    assert not any(pair.clash for pair in pairs if pair.recipe in ("reply warning", "reply around"))


def about_a_vegan() -> Tables:
    group = Group("vegan", Tags.parse("dairy"), ("I'm vegan.",), ())
    things = (
        Item("a toast with cheddar", "food", Tags.parse("dairy gluten")),
        Item("an apple", "food", Tags.parse("")),
    )
    return replace(load_tables("train", SEED), groups=(group,), items=things)


def test_what_is_called_after_what_it_is_made_without_suits_and_after_something_else_does_not():
    pairs = make_replies(about_a_vegan(), 800, SEED)
    offering = [pair for pair in pairs if pair.recipe in ("reply offers", "reply repeating")]
    for word, clash in (("a vegan", False), ("a dairy-free", False), ("a gluten-free", True), ("a wheat-free", True)):
        only = [pair.clash for pair in offering if pair.text.count("toast") == 1 and f"{word} toast" in pair.text]
        assert set(only) == {clash}, word
    assert {pair.clash for pair in offering if "toast" not in pair.text} == {False}


def test_tables_without_anything_that_clashes_are_too_small_and_it_is_told():
    with pytest.raises(ValueError, match="no more than"):
        make_replies(replace(about_a_vegan(), items=about_a_vegan().items[1:]), 5000, SEED)
