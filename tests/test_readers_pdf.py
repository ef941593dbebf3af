"""Page numbers, running heads and sentences over the ends of a PDF's pages."""

from pathlib import Path

import pytest

from assistant.library.readers import read
from assistant.library.readers.pdf import SENTENCE_CHARS, Page, blocks_of
from assistant.library.readers.shared.text import TITLE_CHARS
from assistant.text.chunks import chunk
from tests.test_readers import make_pdf, refused

BODIES = ["Oats are a cereal.", "Rice grows in water.", "Tea is a drink.", "Salt is a mineral."]


def pages(folder: Path, *texts: str) -> list[tuple[str, str]]:
    return [(block.place, block.text) for block in read(make_pdf(folder / "a.pdf", *texts))]


@pytest.mark.parametrize("number", ["{}", "Page {}", "- {} -", "{} / 10", "page {} of 10", "| {}"])
def test_page_numbers_are_left_out_and_pages_stay_apart(tmp_path, number):
    for form in ("{body}\n{number}", "{number}\n{body}"):
        texts = [form.format(body=body, number=number.format(n)) for n, body in enumerate(BODIES[:2], 7)]
        assert pages(tmp_path, *texts) == [("page 1", BODIES[0]), ("page 2", BODIES[1])]


@pytest.mark.parametrize("number", ["iv", "XII", "x", "Page ii"])
def test_roman_page_numbers_are_left_out(tmp_path, number):
    assert pages(tmp_path, f"{number}\n{BODIES[0]}") == [("page 1", BODIES[0])]


@pytest.mark.parametrize("line", ["12345", "mix", "3 apples", "Total 3", "5 %"])
def test_a_last_line_that_is_no_page_number_stays(tmp_path, line):
    assert pages(tmp_path, f"{BODIES[0]}\n{line}") == [("page 1", f"{BODIES[0]} {line}")]


def test_of_two_numbers_at_a_pages_end_one_is_the_pages(tmp_path):
    assert pages(tmp_path, "Oats\n42\n1", "Rice\n42\n2") == [("page 1", "Oats 42"), ("page 2", "Rice 42")]


@pytest.mark.parametrize("number", ["1250", "1", "-5"])
def test_a_bare_number_at_the_end_of_the_only_page_stays(tmp_path, number):
    assert pages(tmp_path, f"Total in EUR\n{number}") == [("page 1", f"Total in EUR {number}")]


def test_bare_numbers_that_do_not_go_up_with_the_pages_stay(tmp_path):
    texts = ["1914\nThe war began.", "1918\nIt ended."]
    assert pages(tmp_path, *texts) == [("page 1", "1914 The war began."), ("page 2", "1918 It ended.")]


def test_a_number_that_goes_up_with_the_pages_is_left_out_though_not_every_page_has_one(tmp_path):
    texts = ["Oats are a cereal.", "Rice grows in water.\n12", "Tea is a drink.\n13", "Salt costs\n12"]
    assert [text for _, text in pages(tmp_path, *texts)] == [*BODIES[:3], "Salt costs 12"]


def test_running_heads_and_feet_are_left_out(tmp_path):
    texts = [f"Report 2024\nDraft\n{body}\nSheet {n} of 4\n{n}" for n, body in enumerate(BODIES, 1)]
    texts[0] = f"{BODIES[0]}\n1"
    assert pages(tmp_path, *texts) == [(f"page {n}", body) for n, body in enumerate(BODIES, 1)]


@pytest.mark.parametrize("count", [2, 4])
def test_what_begins_only_some_pages_stays(tmp_path, count):
    texts = [f"Recipes\n{BODIES[0]}", f"Recipes\n{BODIES[1]}", *BODIES[2:]][:count]
    assert pages(tmp_path, *texts)[:2] == [("page 1", f"Recipes {BODIES[0]}"), ("page 2", f"Recipes {BODIES[1]}")]


def test_rows_of_numbers_are_no_running_foot(tmp_path):
    texts = [f"{body}\n{n}0 {n}1" for n, body in enumerate(BODIES, 1)]
    assert all(f"{n}0 {n}1" in " ".join(text for _, text in pages(tmp_path, *texts)) for n in (1, 2, 3, 4))


def test_pages_that_are_all_alike_are_read(tmp_path):
    assert [text for _, text in pages(tmp_path, "Ticket 1", "Ticket 2", "Ticket 3")] == [
        "Ticket 1",
        "Ticket 2",
        "Ticket 3",
    ]


def test_no_more_than_the_ends_of_pages_are_left_out(tmp_path):
    texts = ["\n".join(["Yes or no?"] * 9)] * 3
    assert [text.count("Yes or no?") for _, text in pages(tmp_path, *texts)] == [3, 3, 3]


def test_pages_of_numbers_alone_hold_no_text(tmp_path):
    assert "OCR" in refused(make_pdf(tmp_path / "a.pdf", "1", "2"))


def test_only_the_broken_sentence_moves_to_the_page_that_it_begins_on(tmp_path):
    texts = ["Oats are a cereal. They grow\n1", "in the north. Rice grows\n2", "in water. Tea is a drink.\n3"]
    assert pages(tmp_path, *texts) == [
        ("page 1", "Oats are a cereal. They grow in the north."),
        ("page 2", "Rice grows in water."),
        ("page 3", "Tea is a drink."),
    ]


def test_a_title_that_is_too_long_is_cut(tmp_path):
    [block] = read(make_pdf(tmp_path / "a.pdf", BODIES[0], title="word " * 100))
    assert len(block.title) <= TITLE_CHARS
    assert block.title.endswith("word…")


def test_a_word_that_a_page_break_divides_is_whole(tmp_path):
    assert pages(tmp_path, "Oats are a ce-\n1", "real. So is rice.\n2")[0] == ("page 1", "Oats are a cereal.")


def test_a_page_that_ends_the_sentence_and_says_no_more_is_not_missed(tmp_path):
    assert pages(tmp_path, "Oats are", "a cereal.", "So is rice.") == [
        ("page 1", "Oats are a cereal."),
        ("page 3", "So is rice."),
    ]


def test_pages_without_sentences_stay_apart(tmp_path):
    assert pages(tmp_path, "Tea 5 EUR", "Oats 3 EUR") == [("page 1", "Tea 5 EUR"), ("page 2", "Oats 3 EUR")]


def test_passages_of_a_long_pdf_are_found_on_their_pages(tmp_path):
    sentence = "{} is a cereal that grows in the north of many countries"
    crops = [[f"{crop}{n}" for n in range(9)] for crop in ("Oat", "Rye", "Wheat")]
    texts = [
        "\n".join([*(f"{sentence.format(one)}." for one in crop), "It is not", str(n)]) for n, crop in enumerate(crops)
    ]
    places = [block.place for block in chunk(read(make_pdf(tmp_path / "a.pdf", *texts)))]
    assert {"page 1", "page 2", "page 3"} == set(places)


@pytest.mark.parametrize("blank", ["\u200b", "\u200c \u2060", "\ufeff"])
def test_paragraphs_of_characters_without_width_are_none(blank):
    blocks = blocks_of("T", [Page("Oats are a"), Page(f"{blank}\n\ncereal."), Page(blank)])
    assert [(block.place, block.text) for block in blocks] == [("page 1", "Oats are a cereal.")]


def test_a_paragraph_that_begins_with_many_characters_without_width_is_read():
    blocks = list(blocks_of("T", [Page("Oats are a"), Page("\u200b" * (SENTENCE_CHARS + 1) + "cereal.")]))
    assert [block.place for block in blocks] == ["page 1", "page 2"]
