"""Hebrew and Arabic in documents: read, quoted and marked as what is written from left to right is."""

from __future__ import annotations

from pathlib import Path

import docx
import pytest

from assistant.library.index import add_documents
from assistant.library.pdf_pages import page_picture
from assistant.library.readers import read
from assistant.library.shelves import open_library
from assistant.settings import Settings
from assistant.text.sentences import quote, sentences
from tests.test_pdf_pages import dark

PDF = Path(__file__).parent / "data" / "right_to_left.pdf"  # printed by Chromium, from the sentences below
HEBREW = (
    "המפתח תלוי מאחורי הדלת הירוקה ליד המטבח.",
    "המנורה עומדת על השולחן.",
    "הטלפון של השכן הוא 5551234 והוא עונה.",  # the number is written from left to right
)
ARABIC = (
    "المفتاح معلق خلف الباب الأخضر بجانب المطبخ.",
    "أين المصباح؟",
    "المصباح على الطاولة الكبيرة في الغرفة.",
)


def document(folder: Path, suffix: str) -> Path:
    """A document of this format with a paragraph in Hebrew and one in Arabic."""
    file, paragraphs = folder / f"house{suffix}", (" ".join(HEBREW), " ".join(ARABIC))
    if suffix == ".pdf":
        return PDF
    if suffix == ".docx":
        word = docx.Document()
        for paragraph in paragraphs:
            word.add_paragraph(paragraph)
        word.save(str(file))
    elif suffix == ".html":
        file.write_text("".join(f"<p dir=rtl>{paragraph}</p>" for paragraph in paragraphs), encoding="utf-8")
    else:
        file.write_text("\n\n".join(paragraphs), encoding="utf-8")
    return file


@pytest.mark.parametrize("suffix", [".txt", ".html", ".docx", ".pdf"])
def test_sentences_are_read_as_they_were_written(tmp_path: Path, suffix: str) -> None:
    texts = [block.text for block in read(document(tmp_path, suffix))]
    found = [quote(text, span) for text in texts for span in sentences(text)]
    assert found == [*HEBREW, *ARABIC]


@pytest.mark.lucene
def test_a_question_in_its_own_letters_finds_a_pdf(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data")
    add_documents("house", [PDF], settings)
    for question, sentence in (("מי תלוי מאחורי הדלת", HEBREW[0]), ("أين المفتاح", ARABIC[0])):
        [passage] = open_library("house", settings).search(question, 1)
        assert sentence in passage.text


@pytest.mark.parametrize("sentence", [*HEBREW, *ARABIC])
def test_a_line_is_marked_by_one_box(sentence: str) -> None:
    picture = page_picture(PDF, 1 + (sentence in ARABIC), sentence)
    assert picture.share == 1.0
    heights = {round(top + height / 2, 2) for _, top, _, height in picture.boxes}
    assert 0 < len(heights) == len(picture.boxes) <= 2
    for box in picture.boxes:
        assert dark(picture, box) > 0.04


@pytest.mark.parametrize("text", ["یہ ایک گھر ہے۔ چابی یہاں ہے۔", "यह एक घर है। चाबी यहाँ है।"])
def test_sentences_end_with_the_full_stop_of_their_script(text: str) -> None:
    assert len(sentences(text)) == 2
