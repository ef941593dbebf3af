"""Pages of real PDFs as pictures, and the boxes of what is quoted."""

from __future__ import annotations

import io
import re
from base64 import b64decode
from pathlib import Path

import pytest
from PIL import Image

from assistant.errors import LibraryError
from assistant.library import pdf_pages
from assistant.library.pdf_pages import CHARS_MOST, HEIGHT, WIDTH, Picture, page_picture
from tests.test_readers import encrypted, make_pdf, pdf_of

FIRST = "Tea is a drink.\nThe key hangs behind the exam-\nple door.\nOats are a cereal."
KEY = "The key hangs behind the example door."


def dark(picture: Picture, box: tuple[float, float, float, float]) -> float:
    """Which share of the pixels in a box is printed on."""
    left, top, width, height = box
    with Image.open(io.BytesIO(b64decode(picture.png))) as image:
        assert image.size == (picture.width, picture.height)
        x, y = left * picture.width, top * picture.height
        area = image.convert("L").crop(
            (round(x), round(y), round(x + width * picture.width), round(y + height * picture.height))
        )
    values = area.histogram()
    return sum(values[:128]) / sum(values)


def test_the_lines_of_the_quote_are_marked_where_they_are_printed(tmp_path: Path) -> None:
    picture = page_picture(make_pdf(tmp_path / "a.pdf", FIRST, "The end."), 1, KEY)
    assert (picture.number, picture.pages, picture.share) == (1, 2, 1.0)
    assert len(picture.boxes) == 2
    for n, (box, line) in enumerate(
        zip(picture.boxes, ("The key hangs behind the exam-", "ple door."), strict=True), 1
    ):
        left, top, width, height = box
        assert left == pytest.approx(72 / 612, abs=0.01)
        baseline = 1 - (720 - 14 * n) / 792
        assert top < baseline < top + height
        assert height < 20 / 792
        assert 0.3 * len(line) < width * 612 / 12 < 0.7 * len(line)
        assert dark(picture, box) > 0.05
    assert dark(picture, (0.5, 0.5, 0.4, 0.4)) == 0


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_a_page_that_is_turned_has_its_marks_turned_too(tmp_path: Path, turn: int) -> None:
    file = make_pdf(tmp_path / "a.pdf", FIRST)
    file.write_bytes(file.read_bytes().replace(b"/MediaBox [0", b"/Rotate %d /MediaBox [0" % turn))
    picture = page_picture(file, 1, "Oats are a cereal.")
    [box] = picture.boxes
    assert dark(picture, box) > 0.05
    assert (box[2] * picture.width > box[3] * picture.height) is (turn == 180)


def test_a_sentence_is_sought_on_the_next_pages(tmp_path: Path) -> None:
    file = make_pdf(tmp_path / "a.pdf", "Tea.", FIRST, "Rice.", "Salt is a mineral of the sea.")
    assert page_picture(file, 1, KEY).number == 2
    far = page_picture(file, 1, "Salt is a mineral of the sea.")
    assert (far.number, far.boxes) == (1, ())


def test_of_less_than_half_nothing_is_marked(tmp_path: Path) -> None:
    file = make_pdf(tmp_path / "a.pdf", FIRST)
    picture = page_picture(file, 1, "The key to success in trade and industry is patience.")
    assert 0 < picture.share < 0.5
    assert picture.boxes == ()
    assert page_picture(file, 1, "The key hung behind an example door.").boxes


def test_a_line_of_a_hundred_thousand_characters_is_marked_as_far_as_it_is_looked_through(tmp_path: Path) -> None:
    words = [f"word{n}" for n in range(16_000)]
    assert len(" ".join(words)) > CHARS_MOST
    pieces = (words[n : n + 1000] for n in range(0, len(words), 1000))  # PDFium takes 32,767 characters at a time
    shown = " ".join(f"({' '.join(piece)} ) Tj" for piece in pieces)
    file = pdf_of(tmp_path / "a.pdf", f"BT /F1 12 Tf 72 720 Td {shown} ET")
    begin = page_picture(file, 1, " ".join(words[:9]))
    assert (begin.share, len(begin.boxes)) == (1.0, 1)
    assert page_picture(file, 1, " ".join(words[9_000:9_009])).share == 1.0
    beyond = page_picture(file, 1, " ".join(words[15_000:15_009]))
    assert (beyond.share, beyond.boxes) == (0.0, ())


@pytest.mark.parametrize("content", [b"", b"no PDF", b"%PDF-1.4\n%%EOF"])
def test_what_is_no_pdf_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.pdf").write_bytes(content)
    with pytest.raises(LibraryError, match="not a PDF that can be drawn"):
        page_picture(tmp_path / "a.pdf", 1, KEY)


def test_what_is_encrypted_gone_or_shorter_is_told(tmp_path: Path) -> None:
    file = make_pdf(tmp_path / "a.pdf", FIRST)
    with pytest.raises(LibraryError, match="has no page 7"):
        page_picture(file, 7, KEY)
    with pytest.raises(LibraryError, match="encrypted"):
        page_picture(encrypted(file, "secret", "AES-256"), 1, KEY)
    file.unlink()
    with pytest.raises(LibraryError):
        page_picture(file, 1, KEY)


@pytest.mark.parametrize("size", ["14400 14400", "14400 3", "3 14400"])
def test_no_picture_is_larger_than_a_screen_needs(tmp_path: Path, size: str) -> None:
    file = make_pdf(tmp_path / "a.pdf", FIRST)
    file.write_bytes(re.sub(rb"612 792", size.encode(), file.read_bytes()))
    picture = page_picture(file, 1, KEY)
    assert 1 <= picture.width <= WIDTH + 1
    assert 1 <= picture.height <= HEIGHT + 1


def test_a_page_that_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = make_pdf(tmp_path / "a.pdf", FIRST)
    monkeypatch.setattr(pdf_pages, "SECONDS", 0.0001)  # by the clock, before Python has begun
    with pytest.raises(LibraryError, match="takes too long"):
        page_picture(file, 1, KEY)
