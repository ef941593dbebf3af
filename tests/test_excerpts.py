"""Real documents as text to read, and what of it is marked."""

from __future__ import annotations

from email.message import EmailMessage
from pathlib import Path

import docx
import pptx
import pytest

from assistant.errors import LibraryError
from assistant.library import excerpts, reading
from assistant.library.excerpts import CHARS_MOST, Excerpt, excerpt
from assistant.library.index import add_documents, list_documents, originals_of
from assistant.library.passages import passages_of
from assistant.library.readers import read
from assistant.library.shelves import own_library
from assistant.settings import Settings
from tests.archives import epub
from tests.browser.fake import HOSTILE
from tests.test_readers_office import workbook

KEY = "The key hangs behind the green door."
OATS = "Oats are a cereal."


def word(path: Path) -> Path:
    document = docx.Document()
    document.add_heading("The house", 0)
    document.add_paragraph(OATS)
    document.add_heading("Doors", 1)
    paragraph = document.add_paragraph("The key hangs ")
    paragraph.add_run("behind the green").bold = True
    paragraph.add_run(" door. It is red.")
    table = document.add_table(0, 3)
    for row in (("Item", "Room", "Shelf"), ("Oats", "Kitchen", "top")):
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    document.save(path)
    return path


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def slides(path: Path) -> Path:
    show = pptx.Presentation()
    for title, body in (("Meals", OATS), ("Doors", KEY)):
        slide = show.slides.add_slide(show.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = title, body
    show.save(path)
    return path


def mail(path: Path) -> Path:
    message = EmailMessage()
    message["From"], message["Subject"] = "ann@example.org", "The house"
    message.set_content(f"{OATS}\n\nThe key hangs behind\nthe green door.\n")
    path.write_bytes(message.as_bytes())
    return path


def book(path: Path) -> Path:
    return epub(path, {"a.html": f"<h1>Doors</h1><p>{OATS}</p><p>{KEY}</p>"}, ["a.html"])


def made(folder: Path, name: str) -> Path:
    path = folder / name
    match path.suffix[1:]:
        case "docx":
            return word(path)
        case "pptx":
            return slides(path)
        case "xlsx":
            return workbook(path, Doors=[["Item", "Where", "Since"], ["Tea", KEY, "2026"]])
        case "eml":
            return mail(path)
        case "epub":
            return book(path)
        case ending:
            texts = {
                "md": f"# The house\n\n{OATS}\n\n## Doors\n\nThe *key* hangs behind the\n[green](x) door. It is red.\n",
                "html": f"<h1>The house</h1><p>{OATS}<h2>Doors</h2><p>The key <b>hangs</b> behind the green door.",
                "txt": f"{OATS}\n\nThe key hangs\nbehind the green\ndoor. It is red.\n",
                "csv": f"Item,Where,Since\nTea,{KEY},2026\n",
                "jsonl": f'{{"id": 7, "title": "Doors", "contents": "{OATS}\\n{KEY}"}}\n',
            }
            return written(path, texts[ending])


def shown(path: Path, quote: str, passage: str = "", name: str = "") -> Excerpt:
    return excerpt(path, name or path.name, passage or quote, quote)


def marked(found: Excerpt) -> list[str]:
    return [text for one in found.paragraphs for text, on in one.pieces if on]


def text(found: Excerpt) -> list[str]:
    return ["".join(piece for piece, _ in one.pieces) for one in found.paragraphs]


@pytest.mark.parametrize("ending", "docx md html txt eml epub pptx xlsx csv jsonl".split())
def test_the_quote_of_a_passage_is_marked_in_every_kind_of_document(tmp_path: Path, ending: str) -> None:
    file = made(tmp_path, f"my_house.{ending}")
    passage = next(one.text for one in passages_of(read(file), "d", file.name) if "green" in one.text)
    kept = file.rename(tmp_path / ("0" * 64))  # as originals are called
    found = excerpt(kept, f"my_house.{ending}", passage, KEY)
    assert marked(found) == [KEY]
    assert (found.share, found.earlier, found.later) == (1.0, False, False)


def test_headings_and_rows_stand_where_they_do_in_the_document(tmp_path: Path) -> None:
    found = shown(made(tmp_path, "a.docx"), KEY)
    assert text(found) == [OATS, f"{KEY} It is red.", "Item: Oats; Room: Kitchen; Shelf: top"]
    assert [one.headings for one in found.paragraphs] == [((0, "The house"),), ((1, "Doors"),), ()]
    assert found.paragraphs[1].pieces == ((KEY, True), (" It is red.", False))


def test_slides_and_rows_say_where_they_are(tmp_path: Path) -> None:
    assert [one.place for one in shown(made(tmp_path, "a.pptx"), KEY).paragraphs] == ["slide 1", "slide 2"]
    assert [one.place for one in shown(made(tmp_path, "a.xlsx"), KEY).paragraphs] == ["sheet Doors, row 2"]


def test_a_short_quote_is_marked_in_its_own_passage(tmp_path: Path) -> None:
    file = written(tmp_path / "a.txt", f"Is it open? Yes.\n\n{OATS}\n\nIs it locked? Yes.\n")
    found = shown(file, "Yes.", f"{OATS} Is it locked? Yes.")
    assert found.paragraphs[2].pieces == (("Is it locked? ", False), ("Yes.", True))
    assert marked(found) == ["Yes."]


def test_a_quote_over_two_paragraphs_is_marked_in_both(tmp_path: Path) -> None:
    assert marked(shown(written(tmp_path / "a.txt", f"{OATS}\n\n{KEY}"), f"{OATS}\n{KEY}")) == [OATS, KEY]


def test_sentences_without_spaces_between_them_are_told_apart(tmp_path: Path) -> None:
    file = written(tmp_path / "a.txt", "燕麦是谷物。钥匙挂在绿门后面。茶是饮料。")
    assert marked(shown(file, "钥匙挂在绿门后面。", "燕麦是谷物。钥匙挂在绿门后面。茶是饮料。")) == [
        "钥匙挂在绿门后面。"
    ]


def test_of_less_than_half_nothing_is_marked_and_the_passage_is_shown(tmp_path: Path) -> None:
    file = written(tmp_path / "a.txt", f"{OATS}\n\n{KEY}")
    found = shown(file, "Bananas grow in warm countries.")
    assert (marked(found), found.is_marked, text(found)) == ([], False, [OATS, KEY])
    most = shown(file, "The key hung behind the old green door.")
    assert most.is_marked
    assert marked(most) == ["The key", "behind the green door."]


def test_of_a_long_document_the_part_around_the_quote_is_shown(tmp_path: Path) -> None:
    filler = "\n\n".join(f"Paragraph {n} is about nothing much." for n in range(10_000))
    file = written(tmp_path / "a.txt", f"{filler}\n\n{KEY}\n\n{filler.replace('much', 'more')}")
    found = shown(file, KEY)
    assert marked(found) == [KEY]
    assert (found.earlier, found.later) == (True, True)
    assert 0.9 * CHARS_MOST < len("".join(text(found))) < 1.1 * CHARS_MOST
    assert text(found)[0].startswith("Paragraph ")
    end = shown(file, "Paragraph 9999 is about nothing more.")
    assert (end.earlier, end.later, text(end)[-1]) == (True, False, "Paragraph 9999 is about nothing more.")
    begin = shown(file, "Paragraph 0 is about nothing much.")
    assert (begin.earlier, begin.later) == (False, True)


def test_a_paragraph_that_is_too_long_is_cut(tmp_path: Path) -> None:
    filler = " ".join(f"Word{n} is a word." for n in range(20_000))
    found = shown(written(tmp_path / "a.txt", f"{filler} {KEY} {filler}"), KEY)
    assert marked(found) == [KEY]
    assert len("".join(text(found))) == CHARS_MOST
    assert (found.earlier, found.later) == (True, True)


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    found = shown(written(tmp_path / "a.txt", HOSTILE), HOSTILE)
    assert text(found) == [HOSTILE]
    page = written(
        tmp_path / "a.html", f"<p onclick=x()>{KEY}</p><script>window.hacked=1</script><iframe src=x></iframe>"
    )
    assert text(shown(page, KEY)) == [KEY]


@pytest.mark.parametrize(("name", "content", "reason"), [
    ("a.docx", b"no Word", "Word document"),
    ("a.txt", b"", "holds no text"),
    ("a.exe", b"MZ", "this kind of file can't be read"),
])  # fmt: skip
def test_what_cannot_be_read_is_told(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(LibraryError, match=reason):
        shown(tmp_path / name, KEY)


def test_what_is_gone_or_takes_too_long_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LibraryError, match="can't be opened"):
        shown(tmp_path / "a.txt", KEY)
    file = written(tmp_path / "a.txt", KEY)
    monkeypatch.setattr(reading, "SECONDS", 0.0001)  # by the clock, before Python has begun
    monkeypatch.setattr(reading, "SECONDS_PER_MEGABYTE", 0.0)
    with pytest.raises(LibraryError, match="takes too long"):
        excerpts.excerpt(file, "a.txt", KEY, KEY)


@pytest.mark.lucene
def test_a_document_of_another_name_is_read_as_the_file_that_it_came_as(settings: Settings, tmp_path: Path) -> None:
    mine = own_library("me")
    pasted, key = written(tmp_path / "Doors.txt", KEY), written(tmp_path / "a.md", f"# House\n\n{OATS}")
    add_documents(mine, [pasted], settings, uploaded=True, names={pasted: "My doors: all"})
    add_documents(mine, [key], settings, uploaded=True)
    files = {one.name: one.file for one in list_documents(mine, settings)}
    assert files == {"My doors: all": "Doors.txt", "a.md": ""}
    [document] = [one for one in list_documents(mine, settings) if one.file]
    original = originals_of(mine, settings).path(document.hash)
    assert original
    assert marked(excerpt(original, document.file, KEY, KEY)) == [KEY]
