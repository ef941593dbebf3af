import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.text.chunks import MAX_CHUNK_WORDS, MAX_SENTENCE_WORDS, Block, chunk, count_words


def sentence(words: int, first: str = "Word") -> str:
    return " ".join([first] + ["word"] * (words - 1)) + "."


def texts(*blocks: Block) -> list[str]:
    return [one.text for one in chunk(blocks)]


def test_a_short_document_is_one_chunk_with_its_paragraphs_apart():
    assert texts(Block("One.", "T"), Block("Two.", "T")) == ["One.\nTwo."]


def test_a_long_paragraph_is_cut_between_sentences():
    paragraph = " ".join(sentence(30) for _ in range(10))
    found = texts(Block(paragraph, "T"))
    assert [count_words(one) for one in found] == [120, 120, 60]
    assert all(one.startswith("Word") and one.endswith("word.") for one in found)


def test_a_paragraphs_end_closes_a_chunk_that_is_long_enough():
    found = texts(Block(sentence(80), "T"), Block(sentence(30, "Next"), "T"))
    assert [count_words(one) for one in found] == [80, 30]


def test_a_list_is_kept_whole_where_a_chunk_can_hold_it():
    items = "\n".join(f"{n} {sentence(9)}" for n in range(10))
    assert texts(Block(sentence(80), "T"), Block(items, "T", unit=True)) == [sentence(80), items]
    found = texts(Block(sentence(20), "T"), Block(items, "T", unit=True))
    assert found == [f"{sentence(20)}\n{items}"]
    assert texts(Block(sentence(20), "T"), Block(items, "T"))[0] != found[0]


def test_headings_begin_chunks_of_their_own():
    found = list(chunk([Block("One.", "T - a"), Block("Two.", "T - b")]))
    assert [(one.title, one.text) for one in found] == [("T - a", "One."), ("T - b", "Two.")]


def test_a_chunk_says_where_it_begins():
    found = list(chunk([Block(sentence(100), "T", "page 1"), Block(sentence(100), "T", "page 2")]))
    assert [one.place for one in found] == ["page 1", "page 2"]


def test_a_record_that_fits_comes_out_as_it_went_in():
    record = Block("One.\n\nTwo has \t odd  spaces.", "T", id="7")
    assert list(chunk([record])) == [record]


def test_a_long_record_is_cut_and_keeps_its_id():
    found = list(chunk([Block(" ".join(sentence(50) for _ in range(5)), "T", id="7")]))
    assert len(found) == 3
    assert {one.id for one in found} == {"7"}


def test_what_is_no_sentence_is_cut_between_words():
    found = texts(Block("cell " * 5000, "T"))
    assert all(count_words(one) <= MAX_SENTENCE_WORDS for one in found)
    assert sum(len(one.split()) for one in found) == 5000


def test_a_token_without_end_is_cut_too():
    found = texts(Block("x" * 100_000, "T"))
    assert "".join(found) == "x" * 100_000
    assert all(len(one) < 2000 for one in found)


def test_japanese_is_cut_between_sentences():
    found = texts(Block("これは長い文章です。" * 200, "T"))
    assert len(found) > 1
    assert all(one.endswith("。") for one in found)


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_empty_blocks_make_no_chunks(text):
    assert texts(Block(text, "T")) == []


@settings(max_examples=50)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=30))
def test_sentences_stay_whole_and_in_order(lengths):
    whole = [sentence(length, f"S{n}") for n, length in enumerate(lengths)]
    found = texts(*(Block(one, "T") for one in whole))
    assert " ".join(found).replace("\n", " ") == " ".join(whole)
    assert all(count_words(one) <= MAX_CHUNK_WORDS for one in found)
