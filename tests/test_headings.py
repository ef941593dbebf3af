"""A passage carries the headings of its section, which are searched and shown, and never cited."""

from pathlib import Path

import docx
import pytest
from pypdf import PdfReader, PdfWriter

from assistant.library.index import READING_VERSION, add_documents
from assistant.library.passages import passages_of
from assistant.library.readers import read
from assistant.library.readers.shared.text import TITLE_CHARS
from assistant.library.shelves import open_library
from assistant.library.writer import writing
from assistant.retrieve.bm25 import read_manifest
from assistant.retrieve.encoder_pieces import pieces_of
from assistant.settings import Settings
from assistant.types import Passage
from assistant.web.cited import citation_texts
from tests.test_readers import make_pdf

MARKDOWN = """# Espresso machine

Read this first.

## Care

### Cleaning

Rinse the group with water.

### Descaling

Use citric acid.

## Repair

Call us.
"""
HEADED = [
    ("", "Read this first."),
    ("Care > Cleaning", "Rinse the group with water."),
    ("Care > Descaling", "Use citric acid."),
    ("Repair", "Call us."),
]


def headed(path: Path) -> list[tuple[str, str]]:
    return [(block.heading, block.text) for block in read(path)]


def made(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def outlined(path: Path, *entries: tuple[str, int, int]) -> Path:
    """The PDF with an outline: titles, their pages from 0, and which entry before it each stands under, or -1."""
    writer = PdfWriter(clone_from=PdfReader(path))
    items: list[object] = []
    for title, page, under in entries:
        items.append(
            writer.add_outline_item(title=title, page_number=page, parent=items[under] if under >= 0 else None)
        )
    writer.write(path)
    return path


def test_markdown_headings_are_nested(tmp_path):
    blocks = read(made(tmp_path, "a.md", MARKDOWN))
    assert [(block.heading, block.text) for block in blocks] == HEADED
    assert {block.title for block in blocks} == {"Espresso machine"}


def test_html_headings_are_nested(tmp_path):
    markup = (
        "<title>Espresso machine</title><h1>Espresso machine<a href='#x'>¶</a></h1><p>Read this first.</p><h2>Care</h2>"
        "<h3>Cleaning</h3><p>Rinse the group with water.</p><h3>Descaling</h3><p>Use citric acid.</p>"
        "<h2>Repair</h2><p>Call us.</p>"
    )
    assert headed(made(tmp_path, "a.html", markup)) == HEADED


def test_word_headings_are_nested(tmp_path):
    document = docx.Document()
    for level, text in [(0, "Espresso machine"), (1, "Care"), (2, "Cleaning"), (1, "Repair")]:
        document.add_heading(text, level)
        document.add_paragraph(f"On {text.lower()}.")
    document.save(str(tmp_path / "a.docx"))
    assert headed(tmp_path / "a.docx") == [
        ("", "On espresso machine."),
        ("Care", "On care."),
        ("Care > Cleaning", "On cleaning."),
        ("Repair", "On repair."),
    ]


def test_a_pdfs_outline_gives_its_headings(tmp_path):
    pages = ["Read this first.\n3 Care\n3.1 Cleaning\nRinse the group.", "3.2 De-\nscaling\nUse citric acid."]
    entries = [("Care", 0, -1), ("Cleaning", 0, 0), ("Descaling", 1, 0)]
    pdf = outlined(make_pdf(tmp_path / "a.pdf", *pages), *entries)
    assert [(block.heading, block.text, block.page) for block in read(pdf)] == [
        ("", "Read this first.", 1),
        ("Care > Cleaning", "Rinse the group.", 1),
        ("Care > Descaling", "Use citric acid.", 2),
    ]


def test_an_entry_of_the_outline_that_no_line_says_heads_its_page(tmp_path):
    pdf = outlined(make_pdf(tmp_path / "a.pdf", "One.", "Two."), ("The second part", 1, -1))
    assert headed(pdf) == [("", "One."), ("The second part", "Two.")]


def test_larger_lines_head_a_pdf_without_an_outline(tmp_path):
    body = "\n".join(f"This is what line {n} of the section says." for n in range(8))
    pages = [f"Cleaning\n{body}", f"{body}\nDescaling\nthe boiler\n{body}"]
    found = headed(make_pdf(tmp_path / "a.pdf", *pages, large=("Cleaning", "Descaling", "the boiler")))
    assert list(dict.fromkeys(heading for heading, _ in found)) == ["Cleaning", "Descaling the boiler"]
    assert not any("Descaling" in text for _, text in found)


def test_a_poster_has_no_headings(tmp_path):
    pages = ["Come one\nCome all\nto the fair\nFree for everybody who is under six years old."]
    found = headed(make_pdf(tmp_path / "a.pdf", *pages, large=("Come one", "Come all", "to the fair")))
    assert {heading for heading, _ in found} == {""}
    assert found[0][1].startswith("Come one")


def test_a_term_stays_with_its_definition(tmp_path):
    quiet = "<dt>-q</dt><dt>--quiet<a>¶</a></dt><dd><p>Say nothing.</p><p>At all.</p></dd>"
    markup = f"<dl>{quiet}<dt>-v</dt><dd>Talk.</dd></dl>"
    [one, two] = read(made(tmp_path, "a.html", markup))
    assert (one.text, two.text) == ("-q, --quiet: Say nothing. At all.", "-v: Talk.")
    assert one.unit


def test_a_long_definition_is_a_section(tmp_path):
    long = "It goes on and on. " * 50
    inner = "<dl><dt>-x</dt><dd>Extend.</dd></dl>"
    markup = f"<h2>Commands</h2><dl><dt>set</dt><dd><p>{long}</p>{inner}</dd><dt>unset</dt><dd>End.</dd></dl><p>So.</p>"
    found = headed(made(tmp_path, "a.html", markup))
    assert found[0] == ("Commands > set", f"set: {long}".strip())
    assert found[1:] == [("Commands > set", "-x: Extend."), ("Commands", "unset: End."), ("Commands", "So.")]


def test_a_term_without_a_definition_is_read(tmp_path):
    assert headed(made(tmp_path, "a.html", "<dl><dt>Tea</dt></dl><p>Oats.</p>")) == [("", "Tea"), ("", "Oats.")]


def test_definitions_within_definitions_without_end_are_read(tmp_path):
    deep = 200
    markup = "<dl><dt>t</dt><dd>" * deep + "Here." + "</dd></dl>" * deep
    assert any("Here." in text for _, text in headed(made(tmp_path, "a.html", markup)))


@pytest.mark.parametrize("text", ["-q: Say nothing.\n-v: Talk\n  a lot.", "-q:\n   Say nothing.\n-v: Talk a lot."])
def test_terms_of_plain_text_stay_with_their_definitions(tmp_path, text):
    assert headed(made(tmp_path, "a.txt", text)) == [("", "-q: Say nothing."), ("", "-v: Talk a lot.")]


def test_prose_with_colons_is_no_list_of_terms(tmp_path):
    text = "He brought three things: tea,\nrice and oats. Note: none was\nripe: not one."
    assert headed(made(tmp_path, "a.txt", text)) == [("", text.replace("\n", " "))]


def test_a_definition_that_fits_a_passage_is_not_cut(tmp_path):
    entries = "".join(f"<dt>option{n}</dt><dd>{'It does something. ' * 12}</dd>" for n in range(9))
    passages = passages_of(read(made(tmp_path, "a.html", f"<dl>{entries}</dl>")), "d", "a.html")
    assert all(passage.text.startswith("option") for passage in passages)


def test_the_path_of_many_headings_keeps_the_innermost(tmp_path):
    markup = "".join(f"<h{n}>{'deep ' * 12}{n}</h{n}>" for n in range(1, 7)) + "<p>Text.</p>"
    [block] = read(made(tmp_path, "a.html", f"<title>T</title>{markup}"))
    assert block.heading.endswith("deep 6")
    assert len(block.heading) <= TITLE_CHARS


@pytest.fixture(scope="module")
def indexed(tmp_path_factory) -> Settings:
    folder = tmp_path_factory.mktemp("headings")
    settings = Settings(data_dir=folder / "data")
    add_documents("docs", [made(folder, "a.md", MARKDOWN)], settings)
    return settings


@pytest.mark.lucene
def test_a_passage_is_found_by_its_heading_and_doesnt_say_it(indexed):
    [passage] = open_library("docs", indexed).search("descaling", 5)
    assert (passage.title, passage.heading, passage.text) == (
        "Espresso machine",
        "Care > Descaling",
        "Use citric acid.",
    )
    assert pieces_of(passage, 100) == ["Espresso machine - Care > Descaling\nUse citric acid."]
    assert "Care > Descaling" in citation_texts(passage, "Use citric acid.")["BibTeX"]
    assert citation_texts(passage, "Use citric acid.")["text"].startswith(
        "“Use citric acid.” — Espresso machine, Care > Desc"
    )


@pytest.mark.lucene
def test_an_index_of_before_is_searched_and_its_documents_are_read_anew(indexed, tmp_path):
    library, file = "old", made(tmp_path, "old.md", MARKDOWN)
    [outcome] = add_documents(library, [file], indexed)
    folder = indexed.libraries_dir / library
    manifest = read_manifest(folder)
    [(key, entry)] = manifest["documents"].items()
    assert entry["reading"] == READING_VERSION
    with writing(folder) as writer:
        writer.clear()
        writer.add(key, [Passage("p", "Espresso machine", "Use citric acid.", source="old.md")])
        writer.commit({"documents": {key: {name: value for name, value in entry.items() if name != "reading"}}})
    [before] = open_library(library, indexed).search("citric", 5)
    assert (before.heading, before.text) == ("", "Use citric acid.")
    assert [one.status for one in add_documents(library, [file], indexed)] == ["replaced"]
    assert [one.status for one in add_documents(library, [file], indexed)] == ["unchanged"]
    [after] = open_library(library, indexed).search("citric", 5)
    assert after.heading == "Care > Descaling"
    assert outcome.passages == 4
