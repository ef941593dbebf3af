"""What messages offer to remember: the patterns alone, then with the real model on the labelled set."""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.errors import DataError
from assistant.evaluation.stated import Message, measure
from assistant.protocols import Embedder
from assistant.types import Fact, FactOffer, now
from ptkb.extract import MAX_OFFERS, offers
from ptkb.statements import statements, unmatched

LABELLED = Path(__file__).parent / "data" / "offers.jsonl"


def facts(*texts: str) -> tuple[Fact, ...]:
    return tuple(Fact(f"f{n}", text, now(), now()) for n, text in enumerate(texts))


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("I've just become vegan, what should I eat?", ["I'm vegan."]),
        ("im vegan and ive got two kids", ["I'm vegan.", "I have two kids."]),
        ("I’m vegetarian and lactose intolerant.", ["I'm vegetarian.", "I'm lactose intolerant."]),
        ("As a vegetarian, how much protein do I need?", ["I'm vegetarian."]),
        ("Since I work night shifts, when should I sleep?", ["I work night shifts."]),
        ("I live in Lisbon and work as a nurse.", ["I live in Lisbon.", "I work as a nurse."]),
        ("We moved from Rome to Oslo last year!", ["I live in Oslo."]),
        ("I turned 35 last week", ["I'm 35."]),
        ("my daughter is 4", ["My daughter is 4."]),
        ("Hi, I'm Jonas from Hamburg. What's the weather like?", ["My name is Jonas.", "I'm from Hamburg."]),
        ("Hi, I'm Brian from Ireland", ["My name is Brian.", "I'm from Ireland."]),
        ("I'm Ann from Oslo.", ["My name is Ann.", "I'm from Oslo."]),
        ("I'm Deaf.", ["I'm Deaf."]),
        ("Hello, I'm Finn.", ["My name is Finn."]),
        ("Hi, I'm Christian!", ["My name is Christian."]),
        ("Hi, I'm Italian. What can I cook tonight?", ["I'm Italian."]),
        ("Hey, I'm Norwegian from Bergen.", ["I'm Norwegian.", "I'm from Bergen."]),
        ("Hello, I'm Indian-American and I'm Hindu.", ["I'm Indian-American.", "I'm Hindu."]),
        ("Hello, I'm Vegan.", ["I'm vegan."]),
        ("Please remember that I don't like coriander.", ["I don't like coriander."]),
        ("Actually, I'm not vegetarian any more.", ["I'm not vegetarian."]),
        ("I no longer eat meat.", ["I don't eat meat."]),
        ("My budget for food is 60 euros a week. What can I cook?", ["My budget for food is 60 euros a week."]),
        ("I like to cook and bake.", ["I like to cook and bake."]),
        ("I live in St. Gallen.", ["I live in St. Gallen."]),
    ],
)
def test_statements_are_found_and_said_plainly(message: str, said: list[str]) -> None:
    assert statements(message) == said


@pytest.mark.parametrize(
    ("message", "left"),
    [
        ("pollen makes me sneeze!! What could I take?", ["Pollen makes me sneeze."]),
        ("I'm vegan. Milk makes me sick.", ["Milk makes me sick."]),
        ("I have been a vegetarian since 2015.", []),
        ("No, I mean the other river. But I want more.", []),
        ("My sister wrote: “My legs hurt.” What does it mean?", []),
        ("If my flight leaves on Monday, when do I have to pack?", []),
        ("The earth is round.", []),
        ("how long before moving out do I have to give notice in alder street", []),
        ("rent plus extras, what am I paying a month", []),
        ('Our walls are damp. The landlord wrote "no".', []),
        ("Our walls are damp?", []),
        ("Paint peels if our walls are damp.", []),
        (f"Our walls are {'very ' * 45}damp.", []),
        (" ".join(["Our walls are damp.", *["The earth is round."] * 5]), ["Our walls are damp."]),
        (" ".join(["Our walls are damp."] * 7), []),
    ],
)
def test_sentences_that_fit_no_pattern_are_left_to_what_is_learned(message: str, left: list[str]) -> None:
    assert unmatched(message) == left


def test_a_message_without_what_it_states_is_refused_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "messages.jsonl"
    path.write_text('{"text": "No pork for me.", "states": []}\n{"text": "No pork for me."}\n', encoding="utf-8")
    with pytest.raises(DataError, match="line 2"):
        Message.read(path)


@pytest.mark.model
def test_most_statements_in_other_forms_are_found_and_few_where_none_is_made(embedder: Embedder) -> None:
    """Messages that somebody wrote who knew neither patterns nor examples; 58 % and 2 of 80 were measured."""
    shares = measure(Message.read(LABELLED.with_name("stated_fresh.jsonl")), embedder, 0)[0]["measures"]
    assert shares["recall"]["value"] >= 0.5
    assert shares["false_alarms"]["value"] <= 0.05


@pytest.mark.parametrize(
    "message",
    [
        "",
        "Am I vegetarian?",
        "Should I eat oats because I'm coeliac?",
        "If I were vegan, what would I eat?",
        "If it rains and I'm in Oslo, I take the bus.",
        "Suppose I have a nut allergy. What should I avoid?",
        "I might become vegan one day.",
        "I think I'm allergic to cats.",
        "My friend is vegan.",
        "My sister has coeliac disease.",
        "She told me I'm a good cook.",
        'He said "I\'m vegetarian" and ordered a steak.',
        "Translate “I live in Paris” into French.",
        "How do I say 'I am from Peru' in Spanish?",
        "I have a headache right now.",
        "I had pasta for lunch.",
        "I have a question about Kenya.",
        "I'd like to know how high Kilimanjaro is.",
        "I like the second one.",
        "I love that!",
        "I don't understand your answer.",
        "I love watching them learn and grow.",
        "I am grilling hamburgers and hotdogs.",
        "I'm <b>bold</b>.",
        "I live in [city].",
        'I love "Dune".',
        f"I live in a {'very ' * 45}old house.",
        "As a result, I have less time.",
    ],
)
def test_what_is_no_statement_about_the_writer_gives_nothing(message: str) -> None:
    assert statements(message) == []


def test_no_message_takes_long() -> None:
    since = perf_counter()
    statements("I'm retired and looking after seven lively grandchildren, two dogs and a cat.")
    statements("I'm married and " + "responsible for " * 500 + "all, of us.")
    assert perf_counter() - since < 10


@given(st.text(max_size=200) | st.text(st.sampled_from(list("I'm a ,.?!\"\n-but and so vegan")), max_size=120))
def test_any_text_is_read_without_error(message: str) -> None:
    assert all(text.endswith(".") and "\n" not in text for text in statements(message))


def test_a_long_message_is_read_quickly() -> None:
    assert statements("I'm vegan, and I'm " * 4_000) == []
    assert statements("What is this? " * 1_000 + "I'm vegan.") == ["I'm vegan."]


@pytest.mark.model
@pytest.mark.parametrize(
    ("known", "message", "text"),
    [
        ("I'm vegetarian.", "I eat meat again.", "I eat meat."),
        ("I live in Oslo.", "I've moved to Bergen!", "I live in Bergen."),
        ("I am 34 years old", "I turned 35 last week.", "I'm 35."),
        ("I'm vegan", "I've become vegetarian.", "I'm vegetarian."),
        ("I'm vegetarian and lactose intolerant.", "I eat meat again.", "I eat meat. I'm lactose intolerant."),
        ("I smoke.", "I quit smoking last month.", "I quit smoking last month."),
        ("I love coffee.", "I can't stand coffee.", "I can't stand coffee."),
        ("I have two children.", "We have three children now.", "I have three children."),
        ("I have a dog", "I no longer have a dog.", "I don't have a dog."),
        ("I was born in 1990.", "I was born in 1991.", "I was born in 1991."),
        ("My favourite food is pizza.", "My favourite food is sushi.", "My favourite food is sushi."),
    ],
)
def test_a_contradiction_is_offered_as_a_replacement(embedder: Embedder, known: str, message: str, text: str) -> None:
    [offer] = offers(message, facts("I play chess.", known), embedder)
    assert (offer.text, offer.replaces) == (text, "f1")


@pytest.mark.model
@pytest.mark.parametrize(
    ("known", "message", "expected"),
    [
        ("I live in Porto and I'm 30.", "I live in Lisbon now and I'm 31.", "I live in Lisbon. I'm 31."),
        (
            "I have a dog and I'm 30 and I live in Oslo.",
            "I'm 31. I live in Rome.",
            "I'm 31. I live in Rome. I have a dog.",
        ),
        ("I'm 31 and I live in Oslo.", "I'm 31 and I live in Rome.", "I live in Rome. I'm 31."),
    ],
)
def test_statements_that_contradict_one_fact_are_one_offer(
    embedder: Embedder, known: str, message: str, expected: str
) -> None:
    [offer] = offers(message, facts("I play chess.", known), embedder)
    assert (offer.text, offer.replaces) == (expected, "f1")


@pytest.mark.model
def test_what_another_fact_has_right_already_is_not_kept_wrong(embedder: Embedder) -> None:
    known = facts("I'm 31.", "I live in Porto and I'm 30.")
    assert offers("I'm 31 and I live in Lisbon.", known, embedder) == (FactOffer("I live in Lisbon.", "f1"),)


@pytest.mark.model
def test_statements_that_contradict_two_facts_are_two_offers(embedder: Embedder) -> None:
    made = offers("I'm 31 and I live in Lisbon.", facts("I'm 30.", "I live in Porto."), embedder)
    assert made == (FactOffer("I'm 31.", "f0"), FactOffer("I live in Lisbon.", "f1"))


@pytest.mark.model
def test_of_a_long_fact_as_much_is_kept_as_one_can_hold(embedder: Embedder) -> None:
    parts = ["I'm 30.", *(f"I like {'very ' * 30}old {thing}." for thing in ("boats", "books", "songs"))]
    [offer] = offers("I live in a town, and I'm 31.", facts("I live in a town.", " ".join(parts)), embedder)
    assert offer.text == " ".join(["I'm 31.", *parts[1:3]])


@pytest.mark.model
@pytest.mark.parametrize(
    ("known", "message"),
    [
        ("I like tea.", "I like coffee."),
        ("I eat fish.", "I eat chicken."),
        ("I'm an engineer.", "I'm married."),
        ("My name is Ann.", "My favourite colour is red."),
        ("I live in Oslo.", "I live with my mother."),
        ("I'm vegetarian.", "I'm lactose intolerant."),
        ("I have a dog.", "I have two cats."),
        ("I'm pescatarian.", "I eat fish."),
        ("I'm married.", "I'm engaged in local politics."),
        ("My budget for food is 60 euros a week.", "My budget for travel is 900 euros."),
    ],
)
def test_what_stands_beside_a_fact_replaces_nothing(embedder: Embedder, known: str, message: str) -> None:
    [offer] = offers(message, facts(known), embedder)
    assert offer.replaces == ""


@pytest.mark.model
@pytest.mark.parametrize(
    ("known", "message"),
    [
        ("I'm allergic to coconut milk.", "I'm allergic to milk."),
        ("My father has diabetes.", "I have diabetes."),
        ("My son is allergic to nuts.", "I'm allergic to nuts."),
        ("My wife is vegan.", "I'm vegan."),
        ("I have a dog allergy.", "I have a dog."),
    ],
)
def test_what_is_known_of_another_person_or_thing_is_not_known(embedder: Embedder, known: str, message: str) -> None:
    assert [offer.text for offer in offers(message, facts(known), embedder)] == [message]


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ("I'm vegetarian and lactose intolerant.", "I'm vegetarian, what should I eat?"),
        ("I am allergic to peanuts", "I'm allergic to peanuts!"),
        ("I have a peanut allergy.", "I'm allergic to peanuts."),
        ("I'm 34 years old.", "I'm 34, is that old?"),
        ("I love hiking.", "I enjoy hiking."),
    ],
)
def test_what_is_known_is_not_offered_again(embedder: Embedder, known: str, message: str) -> None:
    assert offers(message, facts(known), embedder) == ()


@pytest.mark.model
def test_a_message_makes_few_offers(embedder: Embedder) -> None:
    message = "I'm vegan. I'm 34. I live in Oslo. I have a dog. I'm a nurse. I like chess."
    assert len(offers(message, (), embedder)) == MAX_OFFERS


@pytest.mark.model
def test_the_labelled_messages(embedder: Embedder) -> None:
    """Wholly right on messages that offer nothing; nearly all others are offered something."""
    rows = [json.loads(line) for line in LABELLED.read_text(encoding="utf-8").splitlines()]
    got = {row["text"]: offers(row["text"], (), embedder) for row in rows}
    junk = [text for row in rows if not row["offers"] and (text := row["text"]) and got[text]]
    missed = [row["text"] for row in rows if row["offers"] and not got[row["text"]]]
    assert junk == []
    assert len(missed) <= 3, missed
