from typing import Literal

import pytest

from assistant.text.sentences import (
    clean,
    ends_a_sentence,
    finished_text,
    normalise,
    quote,
    sentences,
    shorten,
    surrounding_sentences,
    whole_sentences,
)
from assistant.types import Completion, Span


def split(text: str) -> list[str]:
    return [quote(text, span) for span in sentences(text)]


def test_abbreviations_and_decimals_do_not_end_a_sentence() -> None:
    text = "The U.S. bought approx. 3.5 million barrels, i.e. 2.1% more. Dr. Smith agreed! Really?"
    assert split(text) == [
        "The U.S. bought approx. 3.5 million barrels, i.e. 2.1% more.",
        "Dr. Smith agreed!",
        "Really?",
    ]


def test_a_line_break_ends_a_sentence() -> None:
    assert split("Options:\n- Lentils\n- Tofu") == ["Options:", "- Lentils", "- Tofu"]


@pytest.mark.parametrize("mark", [";", ",", "。"])
def test_what_stands_before_a_space_without_width_at_the_end_of_a_line_is_not_lost(mark: str) -> None:
    text = f"Water and heating are paid{mark}\u200b\nPets are allowed."
    assert split(text) == [f"Water and heating are paid{mark}", "Pets are allowed."]
    assert split("It is paid.\u200b\n\u200b") == ["It is paid."]


def test_japanese_sentences_end_without_a_space() -> None:
    assert split("首都は東京です。人口は多いです。") == ["首都は東京です。", "人口は多いです。"]


@pytest.mark.parametrize("abbreviation", ["ch.", "Ch.", "sec.", "nos.", "pp.", "Eqs.", "para."])
def test_what_stands_before_a_number_does_not_end_a_sentence(abbreviation: str) -> None:
    text = f"It is given under {abbreviation} 48 of the law. It is paid."
    assert split(text) == [f"It is given under {abbreviation} 48 of the law.", "It is paid."]


def test_seconds_may_end_a_sentence() -> None:
    assert split("It took 5 sec. 48 people came.") == ["It took 5 sec.", "48 people came."]
    assert split("Read the next ch. Then sleep.") == ["Read the next ch.", "Then sleep."]


def test_nothing_has_no_sentences() -> None:
    assert split(" \n ") == []


def test_shorten_cuts_at_a_sentence_then_at_a_word() -> None:
    assert shorten("One two. Three four.", 12) == "One two."
    assert shorten("One two three four", 12) == "One two…"
    assert shorten("short", 12) == "short"


def test_a_broken_last_sentence_is_dropped_but_never_the_only_one() -> None:
    assert whole_sentences("Eat lentils. They hold pro") == "Eat lentils."
    assert whole_sentences("They hold pro") == "They hold pro"
    assert whole_sentences("Eat lentils. They are good.") == "Eat lentils. They are good."


def test_clean_takes_what_lucene_cannot() -> None:
    assert clean("a\x00b\ud800c\u200f\n") == "a b?c\u200f"


def test_normalise_as_squad_does() -> None:
    assert normalise("The  Eiffel-Tower!") == "eiffeltower"


def test_a_number_behind_a_bracket_goes_on_with_the_sentence() -> None:
    text = "They speak German (official) 62.1%, French (official) 22.8%. English is common."
    assert split(text) == ["They speak German (official) 62.1%, French (official) 22.8%.", "English is common."]


def test_a_list_with_semicolons_is_one_sentence() -> None:
    text = "It borders on: Argentina 942 km; Brazil 3,403 km; Peru 1,212 km. The climate varies; it is humid."
    assert split(text) == [
        "It borders on: Argentina 942 km; Brazil 3,403 km; Peru 1,212 km.",
        "The climate varies; it is humid.",
    ]


@pytest.mark.parametrize(
    ("written", "form", "finish", "expected"),
    [
        ("One is whole. Two is brok", "chat", "length", "One is whole."),
        ("Only one, which is brok", "chat", "length", "Only one, which is …"),
        ("It ends here. So does it.", "chat", "length", "It ends here. So does it."),
        ("No full stop", "chat", "stop", "No full stop"),
        (" 25,148 kilo", "factoid", "length", "25,148 kilo"),
    ],
)
def test_what_the_room_cut_off_is_not_shown_as_if_it_were_whole(
    written: str, form: str, finish: Literal["stop", "length"], expected: str
) -> None:
    assert finished_text(Completion(written, finish=finish), form) == expected


@pytest.mark.timeout(60)
def test_a_megabyte_of_semicolons_is_one_sentence_within_seconds() -> None:
    assert len(sentences("12.11.2024;Market;Food;23,40;EUR " * 30_000)) == 1


@pytest.mark.parametrize(
    ("text", "whole"),
    [("It is.", True), ("It is: “so!” ", True), ("是的。", True), ("It is", False), ("These are:", False), ("", False)],
)
def test_what_was_broken_off_has_no_end(text: str, whole: bool) -> None:
    assert ends_a_sentence(text) == whole


def test_a_stretch_has_its_sentence_in_the_middle_as_far_as_there_is_room() -> None:
    text = "One is here. Two is here. Three is here. Four is here. Five is here."
    three = Span(text.index("Three"), text.index("Three") + 14)
    assert quote(text, surrounding_sentences(text, three, 9)) == "Two is here. Three is here. Four is here."
    assert quote(text, surrounding_sentences(text, three, 1)) == "Three is here."
    assert quote(text, surrounding_sentences(text, three, 99)) == text
    assert quote(text, surrounding_sentences(text, Span(0, 12), 6)) == "One is here. Two is here."
    assert quote(text, surrounding_sentences(text, Span(len(text) - 14, len(text)), 6)) == "Four is here. Five is here."
    assert surrounding_sentences("", Span(0, 0), 9) == Span(0, 0)
