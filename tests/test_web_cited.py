"""Citations as people copy them."""

from __future__ import annotations

from assistant.types import Citation, Passage, Turn
from assistant.web.cited import citation_texts, in_documents, location_text

OATS = Passage("d-1", "On oats & rye", "Oats are a cereal.", source="oats_1.pdf, page 3", own=True, page=3)


def test_a_citation_is_copied_in_three_forms() -> None:
    made = citation_texts(OATS, "Oats are\na cereal.")
    assert made["text"] == "“Oats are a cereal.” — On oats & rye, oats_1.pdf, page 3"
    assert made["Markdown"] == "> Oats are a cereal.\n>\n> — On oats & rye, oats\\_1.pdf, page 3"
    assert made["BibTeX"] == (
        "@misc{d-1,\n  title = {On oats \\& rye},\n  howpublished = {oats\\_1.pdf, page 3},\n  note = {p. 3}\n}"
    )


def test_without_a_quote_the_source_alone_is_named() -> None:
    assert citation_texts(Passage("é#", "", ""), "") == {
        "text": "é#",
        "Markdown": "é\\#",
        "BibTeX": "@misc{source,\n  title = {é\\#}\n}",
    }
    assert location_text(OATS) == "On oats & rye, oats_1.pdf, page 3"


def test_only_citations_of_ones_own_documents_open_them() -> None:
    others = Passage("x-1", "", "", page=3), Passage("d-2", "", "", own=True)
    cited = [Citation(n, key, 0, 0, "", "", 1.0) for n, key in enumerate(("d-1", "x-1", "d-2", "gone"), 1)]
    turn = Turn("t", "?", passages=(OATS, *others), citations=tuple(cited))
    assert in_documents(turn) == [0, 2]
