"""PDFs of pictures: the order of their lines by itself, and once the real reading of pages drawn from text."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pypdfium2
import pytest
from pypdf import PdfWriter

from assistant.errors import LibraryError
from assistant.library import scans
from assistant.library.index import add_documents, list_documents
from assistant.library.reading import read_apart
from assistant.library.scans import Line, is_by_ocr, is_installed, paragraphs
from assistant.settings import Settings
from assistant.types import Passage
from tests.test_readers import make_pdf

ROOT = Path(__file__).parents[1]
HIGH, APART = 20, 26  # a line of text, and from one to the next


def column(left: float, top: float, *texts: str) -> list[Line]:
    return [
        Line(text, left, top + n * APART, left + 10 * len(text), top + n * APART + HIGH) for n, text in enumerate(texts)
    ]


def scan(path: Path, *pages: str) -> Path:
    """A PDF of the pictures of these pages."""
    with pypdfium2.PdfDocument(make_pdf(path.with_suffix(".text.pdf"), *pages)) as document:
        first, *others = [page.render(scale=100 / 72).to_pil() for page in document]
    first.save(path, save_all=True, append_images=others, resolution=100)
    return path


def test_lines_are_joined_to_paragraphs_and_broken_words_are_whole() -> None:
    lines = [*column(0, 0, "Oats are a cere-", "al of the north."), *column(0, 90, "Tea is a drink.")]
    assert paragraphs(reversed(lines)) == ["Oats are a cereal of the north.", "Tea is a drink."]


def test_columns_are_read_one_after_the_other_below_what_stands_over_both() -> None:
    title = Line("Of the harvest of oats in the north", 0, 0, 700, HIGH)
    left = column(0, 60, "the first line of the left", "and the second line of it")
    right = column(400, 60, "the first line of the right", "and the last line of all")
    assert paragraphs([title, *right, *left]) == [
        "Of the harvest of oats in the north",
        "the first line of the left and the second line of it",
        "the first line of the right and the last line of all",
    ]


def test_the_cells_of_a_table_are_read_row_by_row() -> None:
    cells = [*column(0, 0, "Oats", "Tea"), *column(300, 2, "12", "40")]
    assert paragraphs(cells) == ["Oats 12 Tea 40"]


def test_a_page_without_lines_has_no_paragraphs() -> None:
    assert paragraphs([]) == []


def test_without_ocr_one_sentence_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "PACKAGE", "no_such_package")
    pin = (ROOT / "requirements-ocr.txt").read_text().splitlines()[-1]
    with pytest.raises(LibraryError, match=f"pip install {pin}"):
        read_apart(scan(tmp_path / "a.pdf", "Oats."), "d", "a.pdf", Event())


def mixed(path: Path) -> Path:
    """A page of text, one that is a picture, and one that is empty."""
    writer = PdfWriter(clone_from=make_pdf(path.with_suffix(".text.pdf"), "Oats are a cereal."))
    writer.append(scan(path.with_suffix(".scan.pdf"), "Tea is a drink."))
    writer.append(make_pdf(path.with_suffix(".empty.pdf"), ""))
    writer.write(path)
    return path


def test_scanned_pages_among_others_are_named_where_they_cannot_be_read(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scans, "PACKAGE", "no_such_package")
    [outcome] = add_documents("docs", [mixed(tmp_path / "a.pdf")], settings)
    assert (outcome.status, outcome.passages) == ("added", 1)
    assert outcome.reason.startswith("page 2: only pictures, which are not read; pip install")
    [document] = list_documents("docs", settings)
    assert (document.note, document.by_ocr) == (outcome.reason, False)


@pytest.mark.skipif(not is_installed(), reason="OCR is an extra: pip install -r requirements-ocr.txt")
def test_scanned_pages_among_others_are_read_and_the_others_once(tmp_path: Path) -> None:
    passages, note = read_apart(mixed(tmp_path / "a.pdf"), "d", "a.pdf", Event())
    assert [(one.text, one.source) for one in passages] == [
        ("Oats are a cereal.", "a.pdf, page 1"),
        ("Tea is a drink.", "a.pdf, page 2, read by OCR"),
    ]
    assert note == "page 2: read by OCR"


def test_a_figure_on_a_page_of_text_is_no_scan(tmp_path: Path) -> None:
    assert scans.pictures(mixed(tmp_path / "a.pdf"), {1}) == [2]
    assert scans.pictures(tmp_path / "a.pdf", {1, 2}) == []
    assert scans.pictures(tmp_path / "a.txt", ()) == []


@pytest.mark.parametrize(("read", "expected"), [("sst", False), ("tts", False), ("ss", True), ("", False)])
def test_a_document_is_read_by_ocr_where_none_of_it_is_text(read: str, expected: bool) -> None:
    sources = {"s": "a.pdf, page 1, read by OCR", "t": "a.pdf, page 2"}
    assert is_by_ocr([Passage("d#1", "a", "Oats.", source=sources[one]) for one in read]) is expected


@pytest.mark.skipif(not is_installed(), reason="OCR is an extra: pip install -r requirements-ocr.txt")
def test_a_scan_is_read_and_says_so(tmp_path: Path) -> None:
    file = scan(tmp_path / "a.pdf", "Oats are a cereal\nof the north.", "Tea is a drink.")
    passages = read_apart(file, "d", "a.pdf", Event()).passages
    assert passages[0].text == "Oats are a cereal of the north.\nTea is a drink."
    assert passages[0].source == "a.pdf, page 1, read by OCR"
    assert passages[0].page == 1
    assert is_by_ocr(passages)
