import pytest

from assistant.retrieve.encoder_pieces import cut, pieces_of
from assistant.text.chunks import count_words
from assistant.types import Passage


@pytest.mark.parametrize("text", ["row 17 | " * 400, "水" * 4000, "x" * 9000, "tree. " * 500])
def test_no_piece_is_longer_than_the_window_and_nothing_is_lost(text):
    pieces = cut(text, 50)
    assert len(pieces) > 1
    assert all(count_words(piece) <= 50 for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


def test_pieces_end_with_sentences():
    assert cut("One two three. Four five. Six seven eight nine ten.", 5) == [
        "One two three. Four five.",
        "Six seven eight nine ten.",
    ]


def test_what_fits_is_one_piece_with_its_title():
    assert pieces_of(Passage("a", "Title", "One two."), 3) == ["Title\nOne two."]


def test_each_piece_has_the_title_which_counts_too():
    pieces = pieces_of(Passage("a", "The title", "One two. Three. Four five six."), 5)
    assert pieces == ["The title\nOne two. Three.", "The title\nFour five six."]


def test_a_title_that_would_fill_the_window_is_left_out_of_the_pieces():
    assert pieces_of(Passage("a", "A title as long as this", "One two. Three."), 4) == ["\nOne two. Three."]


@pytest.mark.parametrize(
    "text", ["row 17 | " * 400, "水" * 4000, "Это предложение о воде. " * 60, "In 1994 3,172. " * 70]
)
def test_pieces_fit_the_window_as_the_usual_encoder_counts_it(text, embedder):
    pieces = pieces_of(Passage("a", "A title", text), embedder.window, embedder.count)
    assert len(pieces) > 1
    assert max(embedder.count(piece) for piece in pieces) <= embedder.window
