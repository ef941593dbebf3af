import pytest

from assistant.retrieve.encoded import key_of
from assistant.retrieve.encoder_pieces import BySentences, encoded_queries, pieces_of, text_pieces, texts_of
from assistant.text.chunks import count_words
from assistant.types import Passage


@pytest.mark.parametrize("text", ["row 17 | " * 400, "水" * 4000, "x" * 9000, "tree. " * 500])
def test_no_piece_is_longer_than_the_window_and_nothing_is_lost(text):
    pieces = text_pieces(text, 50)
    assert len(pieces) > 1
    assert all(count_words(piece) <= 50 for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


def test_pieces_end_with_sentences():
    assert text_pieces("One two three. Four five. Six seven eight nine ten.", 5) == [
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


LEASE = Passage("a", "Lease", "The rent is due on the third. Dogs need a written consent.")


def test_by_sentences_a_passage_has_a_text_for_each_of_them_besides_the_whole(embedder):
    whole = "Lease\nThe rent is due on the third. Dogs need a written consent."
    assert texts_of(LEASE, embedder) == [whole]
    singly = ["The rent is due on the third.", "Dogs need a written consent."]
    assert texts_of(LEASE, BySentences(embedder)) == [whole, *singly]
    assert texts_of(LEASE, BySentences(embedder), {key_of(whole)}) == [whole, *singly]


def test_what_is_one_sentence_is_encoded_once(embedder):
    assert texts_of(Passage("a", "Rent", "It is due."), BySentences(embedder)) == ["Rent\nIt is due."]


def test_a_sentence_longer_than_the_window_is_cut(embedder):
    long = Passage("a", "", f"Short. {'word ' * 600}end.")
    assert all(embedder.count(text) <= embedder.window for text in texts_of(long, BySentences(embedder)))


def test_by_sentences_has_a_name_of_its_own_and_the_same_vectors(embedder):
    by_sentences = BySentences(embedder)
    assert by_sentences.name != embedder.name
    assert (by_sentences.encode(["Dogs?"]) == embedder.encode(["Dogs?"])).all()
    assert (encoded_queries(by_sentences, ["Dogs?"]) == encoded_queries(embedder, ["Dogs?"])).all()
