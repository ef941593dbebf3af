import gzip
import io
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import docx
import pytest
from pypdf import PdfReader, PdfWriter

from assistant.errors import LibraryError
from assistant.library.readers import ID_CHARS, read, reader_of, suffixes
from assistant.library.readers.shared import archive
from assistant.library.readers.shared import text as shared
from assistant.text.chunks import Block
from benchmarks import bombs


def make_pdf(path: Path, *pages: str, title: str = "", large: Sequence[str] = ()) -> Path:
    """A PDF of one text line a line, written by hand as the format has it: objects, then the table of their places.

    Lines that are among the `large` ones are half as large again as the others.
    """
    streams = []
    for page in pages:
        shown = " ".join(f"/F1 {18 if line in large else 12} Tf ({line}) Tj T*" for line in page.split("\n"))
        streams.append(f"BT {28 if large else 14} TL 72 720 Td {shown} ET")
    return pdf_of(path, *streams, title=title)


def pdf_of(path: Path, *streams: str, title: str = "") -> Path:
    """A PDF whose pages are drawn by these streams."""
    count = len(streams)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Count {count} /Kids [{' '.join(f'{4 + 2 * n} 0 R' for n in range(count))}] >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for n, stream in enumerate(one.encode() for one in streams):
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * n} 0 R"
            f" /Resources << /Font << /F1 3 0 R >> >> >>".encode(),
            b"<< /Length %d >> stream\n%s\nendstream" % (len(stream), stream),
        ]
    objects.append(f"<< /Title ({title}) >>".encode())
    data, places = b"%PDF-1.4\n", []
    for n, one in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj %s endobj\n" % (n, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    trailer = b"trailer << /Size %d /Root 1 0 R /Info %d 0 R >>" % (size, len(objects))
    start = len(data)
    path.write_bytes(
        data + b"xref\n0 %d\n0000000000 65535 f \n%s%s\nstartxref\n%d\n%%%%EOF" % (size, table, trailer, start)
    )
    return path


def encrypted(path: Path, password: str, algorithm: str) -> Path:
    writer = PdfWriter(clone_from=PdfReader(path))
    writer.encrypt(password, owner_password="owner", algorithm=algorithm)
    writer.write(path)
    return path


def odd_files(folder: Path) -> dict[str, Path]:
    """Files that make the libraries of their formats raise what is no `LibraryError`, by what is wrong with them."""
    texts = {
        "unclosed.html": "<font>" * 1500 + "x",
        "number.jsonl": '{"id": %s, "contents": "x"}\n' % ("1" * 5000),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    _word(folder / "xml.docx", b"<w:document><w:body>")
    _word(folder / "zip.docx", b"<w:document>" * 100)
    with ZipFile(folder / "zip.docx") as parts:
        info = parts.getinfo(_PART)
    data = bytearray((folder / "zip.docx").read_bytes())
    start = info.header_offset + 30 + len(_PART)
    data[start : start + 4] = b"\xff" * 4
    (folder / "zip.docx").write_bytes(data)
    return {one: folder / one for one in (*texts, "xml.docx", "zip.docx")}


_PART = "word/document.xml"


def _word(path: Path, document: bytes) -> None:
    """A Word document of which only the main part is other than Word would write it."""
    docx.Document().save(str(path))
    with ZipFile(path) as whole:
        parts = {name: whole.read(name) for name in whole.namelist()} | {_PART: document}
    with ZipFile(path, "w", ZIP_DEFLATED) as changed:
        for name, data in parts.items():
            changed.writestr(name, data)


def refused(path: Path) -> str:
    with pytest.raises(LibraryError) as caught:
        read(path)
    return str(caught.value)


def test_plain_text_has_paragraphs_and_the_files_name(tmp_path):
    file = tmp_path / "my_notes.txt"
    file.write_text("One line\nand the next.\n\n\nTwo.\n")
    assert read(file) == [Block("One line and the next.", "my notes"), Block("Two.", "my notes")]


PROSE = (
    "The lessor pays for repairs to the boiler, the wiring and the oven, unless\n"
    "the lessee has broken them. Small repairs of up to 80 euros are the lessee's,\n"
    "at most three of them a year. Pets may be kept if nobody in the house minds."
)


@pytest.mark.parametrize(
    ("paragraph", "lines"),
    [
        (PROSE, [PROSE.replace("\n", " ")]),
        (PROSE.replace("\nthe", "\n- the"), [PROSE.replace("\nthe", " - the").replace("\n", " ")]),
        ("Mon swimming\nTue nothing\nWed dentist at 8:30, Dr Lund, bring the card\nThu choir", None),
        ("Car\n- box key\n- ice packs, from the\n  freezer", ["Car", "box key", "ice packs, from the freezer"]),
        ("Car\n- box key", ["Car", "box key"]),
        ("• tea\n• rice", ["tea", "rice"]),
        ("1. Soak the lentils.\n2. Boil them.", None),
        ("[x] ring the plumber\n[ ] pay the rent", None),
        (f"- {PROSE}\n- {PROSE}", [PROSE.replace("\n", " ")] * 2),
        ("Jo Lind\nElm Road 4\n2100 Copenhagen", None),
        ("drug | morning | evening | what it is for, notes\nmetformin 850 | 1 | 1 | sugar, always with food", None),
        ("to do\nring the plumber about the tap\nbin bags\nask Ines for the new number of the landlord\nrent", None),
        ("a walk along the\nriver and back", ["a walk along the river and back"]),
    ],
)
def test_plain_text_keeps_the_lines_of_what_isnt_running_text(tmp_path, paragraph, lines):
    file = tmp_path / "a.txt"
    file.write_text(paragraph)
    [block] = read(file)
    assert block.text.split("\n") == (lines or paragraph.split("\n"))
    assert block.unit == ("\n" in block.text)


def test_line_breaks_of_pages_markdown_and_word_are_kept_where_they_are_meant(tmp_path):
    (tmp_path / "a.html").write_text(
        "<p>Jo Lind<br>Elm Road 4</p><pre>Mon  8:00\nTue 9:00</pre><p>Some\nWords</p>"
        f"<p>{PROSE.replace(chr(10), '<br>')}</p><table><tr><td>Mon<br>Tue<td>8:00</table>"
    )
    assert [block.text for block in read(tmp_path / "a.html")] == [
        "Jo Lind\nElm Road 4", "Mon 8:00\nTue 9:00", "Some Words", PROSE.replace("\n", " "), "Mon Tue | 8:00"
    ]  # fmt: skip
    (tmp_path / "a.md").write_text(f"Hours\nMon 8-12\nTue closed\n\n{PROSE}\n\n```\nMon 8\nTue 9\n```\n")
    assert [block.text for block in read(tmp_path / "a.md")] == [
        "Hours\nMon 8-12\nTue closed", PROSE.replace("\n", " "), "Mon 8\nTue 9"
    ]  # fmt: skip
    document = docx.Document()
    document.add_paragraph("Jo Lind\nElm Road 4")
    document.save(str(tmp_path / "a.docx"))
    assert [block.text for block in read(tmp_path / "a.docx")] == ["Jo Lind\nElm Road 4"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_text_of_usual_encodings(tmp_path, encoding):
    file = tmp_path / "a.txt"
    file.write_bytes("Müller’s café – 5 €".encode(encoding))
    assert read(file)[0].text == "Müller’s café – 5 €"


@pytest.mark.parametrize("damage", [b"\xff", b"\xe2\x82"])
def test_a_damaged_byte_leaves_the_rest_of_a_utf8_file_readable(tmp_path, damage):
    file = tmp_path / "a.txt"
    file.write_bytes("Müller’s café – 5 €".encode() + damage)
    assert read(file)[0].text == "Müller’s café – 5 €\ufffd"


def test_a_utf8_file_of_damaged_characters_stays_what_it_is(tmp_path):
    (tmp_path / "a.txt").write_text("caf\ufffd na\ufffdve", encoding="utf-8")
    assert read(tmp_path / "a.txt")[0].text == "caf\ufffd na\ufffdve"


def test_windows_line_ends_and_control_characters(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes(b"One\x00 two.\r\n\r\nThree." + b" " * 200)
    assert [block.text for block in read(file)] == ["One two.", "Three."]


def test_binary_named_text_is_refused(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes(bytes(range(256)) * 10)
    assert "not text" in refused(file)


def test_markdown_by_headings(tmp_path):
    file = tmp_path / "a.md"
    file.write_text(
        "---\ntags: x\n---\n# Guide\n\nIntro *here*.\n\n## Part\n\n- one\n- two `code`\n\n|a|b|\n|-|-|\n|1|2|\n"
    )
    assert [(block.full_title, block.text) for block in read(file)] == [
        ("Guide", "Intro here."),
        ("Guide - Part", "one"),
        ("Guide - Part", "two code"),
        ("Guide - Part", "a: 1; b: 2"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\n# Title\n\nFirst.\n\n---\n\nSecond.\n", ["First.", "Second."]),
        ("---\n---\n# Title\n\nFirst.\n\n---\n\nSecond.\n", ["First.", "Second."]),
        ("---\nFirst.\n\n---\n\nSecond.\n", ["First.", "Second."]),
        ("---\n# made by hand\n\ntags: x\nmore:\n  - y\n---\n# Title\n\nFirst.\n", ["First."]),
        ("---\ndate: x\n---\nFirst.\n\n---\n\nSecond.\n", ["First.", "Second."]),
        ("---\nNote: First.\n\nSecond.\n\n---\n\nThird.\n", ["Note: First.", "Second.", "Third."]),
        ("---\n'a b': [\n  x,\n]\nog:x: |\n  y\n\n  z\n# w\nv:\n- u\n-\n---\nFirst.\n", ["First."]),
    ],
)
def test_front_matter_alone_is_no_text_of_a_markdown_file(tmp_path, text, expected):
    (tmp_path / "a.md").write_text(text)
    assert [block.text for block in read(tmp_path / "a.md")] == expected


def test_html_without_scripts_and_menus(tmp_path):
    file = tmp_path / "a.html"
    file.write_text(
        "<html><head><title>Page</title><style>p{}</style></head><body>loose <nav>menu</nav>"
        "<p>A <b>bold</b> word<br>next &amp; last.</p><!-- hidden --><div>before<p>inside</p>after</div>"
        "<script>alert(1)</script><h2>Part</h2><p>Text</p></body></html>"
    )
    assert [(block.full_title, block.text) for block in read(file)] == [
        ("Page", "loose"),
        ("Page", "A bold word next & last."),
        ("Page", "before"),
        ("Page", "inside"),
        ("Page", "after"),
        ("Page - Part", "Text"),
    ]


def test_a_page_in_a_form_is_read_without_its_fields(tmp_path):
    file = tmp_path / "a.html"
    file.write_text(
        "<head><title>Page</title></head><form><p>Said.</p><select><option>one</option></select><textarea>typed</textarea>"
        "<button>Go</button></form>"
    )
    assert [(block.full_title, block.text) for block in read(file)] == [("Page", "Said.")]


def test_pdf_with_pages_and_title(tmp_path):
    file = make_pdf(tmp_path / "a.pdf", "First page ends here.", "Second page has\ntwo lines.", title="A report")
    assert read(file) == [
        Block("First page ends here.", "A report", "page 1", page=1),
        Block("Second page has two lines.", "A report", "page 2", page=2),
    ]


def test_a_sentence_over_a_page_break_is_joined(tmp_path):
    file = make_pdf(tmp_path / "long_name.pdf", "It runs on over", "the page. Then it ends.")
    assert read(file) == [
        Block("It runs on over the page.", "long name", "page 1", page=1),
        Block("Then it ends.", "long name", "page 2", page=2),
    ]


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-256"])
def test_an_encrypted_pdf_is_refused(tmp_path, algorithm):
    file = encrypted(make_pdf(tmp_path / "a.pdf", "Secret."), "password", algorithm)
    assert "encrypted" in refused(file)


def test_a_pdf_that_opens_without_password_is_read(tmp_path):
    file = encrypted(make_pdf(tmp_path / "a.pdf", "Open to all."), "", "RC4-128")
    assert read(file)[0].text == "Open to all."


def test_a_scanned_pdf_is_refused(tmp_path):
    writer = PdfWriter()
    writer.add_blank_page(200, 200)
    writer.write(tmp_path / "scan.pdf")
    assert "OCR" in refused(tmp_path / "scan.pdf")


@pytest.mark.parametrize("data", [b"", b"not a pdf", b"%PDF-1.4\n1 0 obj << broken"])
def test_a_broken_pdf_is_refused(tmp_path, data):
    (tmp_path / "a.pdf").write_bytes(data)
    assert "PDF" in refused(tmp_path / "a.pdf")


def test_a_pdf_cut_short_is_read_or_refused_but_never_crashes(tmp_path):
    whole = make_pdf(tmp_path / "a.pdf", "Some text here.").read_bytes()
    for size in range(0, len(whole), 37):
        (tmp_path / "a.pdf").write_bytes(whole[:size])
        with suppress(LibraryError):
            assert read(tmp_path / "a.pdf")[0].text


def test_word_with_headings_and_tables(tmp_path):
    document = docx.Document()
    document.add_heading("Handbook", 0)
    document.add_paragraph("Opening words.")
    document.add_heading("Rules", 1)
    table = document.add_table(rows=1, cols=2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "key", "value"
    document.save(str(tmp_path / "a.docx"))
    assert [(block.full_title, block.text) for block in read(tmp_path / "a.docx")] == [
        ("Handbook", "Opening words."),
        ("Handbook - Rules", "key | value"),
    ]


def word_table(path: Path, *rows: str, merged: tuple[int, int] | None = None) -> Path:
    """A Word document of one table; of the first row the cells from the first to the second of `merged` are one."""
    document = docx.Document()
    table = document.add_table(rows=len(rows), cols=len(rows[0].split(",")))
    for row, texts in zip(table.rows, rows, strict=True):
        for cell, text in zip(row.cells, texts.split(","), strict=True):
            cell.text = text
    if merged:
        table.cell(0, merged[0]).merge(table.cell(0, merged[1]))
    document.save(str(path))
    return path


def test_a_word_tables_equal_and_empty_cells_keep_their_columns(tmp_path):
    file = word_table(tmp_path / "a.docx", "Tea,5,5,7", "Oats,,5,", ",,,")
    assert [block.text for block in read(file)] == ["Tea | 5 | 5 | 7", "Oats | | 5 |"]


def test_a_word_tables_merged_cells_are_read_once(tmp_path):
    file = word_table(tmp_path / "a.docx", "Prices,,Notes", "5,5,5", merged=(0, 1))
    assert [block.text for block in read(file)] == ["Prices | Notes", "5 | 5 | 5"]


def test_a_word_table_in_a_tables_cell_follows_its_row(tmp_path):
    document = docx.Document()
    outer = document.add_table(rows=2, cols=2)
    for cell, text in zip([*outer.rows[0].cells, *outer.rows[1].cells], ["Room", "Prices", "Kitchen", ""], strict=True):
        cell.text = text
    inner = outer.cell(0, 1).add_table(rows=1, cols=2)
    inner.cell(0, 0).text, inner.cell(0, 1).text = "Day", "40 kroner"
    document.save(str(tmp_path / "a.docx"))
    texts = [block.text for block in read(tmp_path / "a.docx")]
    assert texts == ["Room | Prices", "Day | 40 kroner", "Kitchen |"]


def test_a_word_heading_without_a_paragraph_is_kept(tmp_path):
    document = docx.Document()
    for text, level in [("Handbook", 0), ("Closed on Mondays", 1), ("Rules", 1)]:
        document.add_heading(text, level)
    document.add_paragraph("No smoking.")
    document.add_heading("Call 112 in an emergency", 2)
    document.save(str(tmp_path / "a.docx"))
    assert [(block.full_title, block.text) for block in read(tmp_path / "a.docx")] == [
        ("Handbook", "Closed on Mondays"),
        ("Handbook - Rules", "No smoking."),
        ("Handbook - Rules", "Call 112 in an emergency"),
    ]


def test_a_word_document_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "a.docx"
    _word(file, b"<w:document>" + b" " * 1_000_000)
    monkeypatch.setattr(archive, "UNPACKED_BYTES", 1_000_000)
    assert file.stat().st_size < 100_000
    assert "unpacks to more than 1,000,000 bytes" in refused(file)


@pytest.mark.parametrize(("data", "reason"), [(b"\xd0\xcf\x11\xe0" + b"x" * 99, "encrypted"), (b"PK broken", "Word")])
def test_word_that_cant_be_read_is_refused(tmp_path, data, reason):
    (tmp_path / "a.docx").write_bytes(data)
    assert reason in refused(tmp_path / "a.docx")


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "A.JSONL"])
def test_json_lines(tmp_path, name):
    lines = [{"id": "x/1", "title": "T", "contents": "One.\nTwo."}, {"id": 7, "contents": "Three.", "extra": 1}]
    data = "\n\n".join(json.dumps(line) for line in lines).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert read(tmp_path / name) == [Block("One.\nTwo.", "T", id="x/1"), Block("Three.", "", id="7")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{oops", "line 2: not valid JSON"),
        ("[1]", "line 2: not a JSON object"),
        ('{"contents": "x"}', "line 2: 'id'"),
        ('{"id": true, "contents": "x"}', "line 2: 'id'"),
        ('{"id": " ", "contents": "x"}', "line 2: 'id'"),
        ('{"id": "b", "contents": " "}', "line 2: 'contents'"),
        ('{"id": "b", "contents": 5}', "line 2: 'contents'"),
        ('{"id": "b", "title": 5, "contents": "x"}', "line 2: 'title'"),
        ('{"id": "a", "contents": "again"}', "line 2: the id 'a' was used in line 1"),
        ("[" * 100_000, "line 2"),
    ],
)
def test_a_bad_json_line_is_named(tmp_path, line, reason):
    (tmp_path / "a.jsonl").write_text('{"id": "a", "contents": "fine"}\n' + line + "\n")
    assert reason in refused(tmp_path / "a.jsonl")


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
def test_dprs_tab_separated_passages(tmp_path, name):
    data = b'id\ttext\ttitle\n1\t"He said ""yes""."\tA title\n2\tPlain text.\tOther\n'
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert read(tmp_path / name) == [Block('He said "yes".', "A title", id="1"), Block("Plain text.", "Other", id="2")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [("2\tonly two", "line 2: 2 columns"), ("2\t\tT", "line 2: the id or the text"), ("1\tx\tT", "used in line 1")],
)
def test_a_bad_tab_separated_line_is_named(tmp_path, line, reason):
    (tmp_path / "a.tsv").write_text("1\ttext\tT\n" + line + "\n")
    assert reason in refused(tmp_path / "a.tsv")


@pytest.mark.parametrize(
    "text",
    ['"Oats are a cereal.', 'Oats are 5" long.', '"Oats" are a "cereal"', 'A "cereal', '"Oats" are "one', "a\rb"],
)
def test_a_tab_separated_line_that_is_not_quoted_as_a_whole_is_read_as_it_stands(tmp_path, text):
    (tmp_path / "a.tsv").write_bytes(f'1\t{text}\t12" records\n'.encode())
    assert read(tmp_path / "a.tsv") == [Block(text.replace("\r", " "), '12" records', id="1")]


def test_a_quotation_mark_that_never_closes_doesnt_swallow_the_title(tmp_path):
    (tmp_path / "a.tsv").write_text('1\t"Oats are a cereal.\tA "title"\n2\t"Rice\tgrows."\tRice\n')
    assert read(tmp_path / "a.tsv") == [
        Block('"Oats are a cereal.', 'A "title"', id="1"),
        Block("Rice grows.", "Rice", id="2"),
    ]


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_long_tab_separated_text_is_read_whole(tmp_path, quote):
    (tmp_path / "a.tsv").write_text(f"1\t{quote}{'x' * 200_000}{quote}\tT\n")
    assert read(tmp_path / "a.tsv") == [Block("x" * 200_000, "T", id="1")]


@pytest.mark.parametrize(
    ("name", "line"),
    [("a.jsonl", '{"id": "1", "title": "%s", "contents": "Oats."}'), ("a.tsv", "1\tOats.\t%s")],
)
def test_a_records_title_that_is_none_is_cut(tmp_path, name, line):
    (tmp_path / name).write_text(line % ("all about oats " * 1000))
    [block] = read(tmp_path / name)
    assert block.title.startswith("all about oats all")
    assert block.title.endswith("…")
    assert len(block.title) <= shared.TITLE_CHARS


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.tsv.gz"])
def test_what_unpacks_to_too_much_is_refused(tmp_path, monkeypatch, name):
    lines = {
        "a.jsonl.gz": "".join(f'{{"id": {n}, "contents": "{"x" * 900}"}}\n' for n in range(30)),
        "a.tsv.gz": "".join(f"{n}\t{'x' * 900}\tT\n" for n in range(30)),
    }
    (tmp_path / name).write_bytes(gzip.compress(lines[name].encode()))
    (tmp_path / name.removesuffix(".gz")).write_text(lines[name])
    assert len(read(tmp_path / name)) == 30
    monkeypatch.setattr(shared, "UNPACKED_CHARS", 20_000)
    assert (tmp_path / name).stat().st_size * shared.UNPACKED_TIMES < 20_000
    assert "unpacks to more than 20,000 characters" in refused(tmp_path / name)
    assert len(read(tmp_path / name.removesuffix(".gz"))) == 30
    monkeypatch.setattr(shared, "LINE_CHARS", 800)
    assert "a line of more than 800 characters" in refused(tmp_path / name)


def test_not_gzip_and_not_utf8(tmp_path):
    (tmp_path / "a.jsonl.gz").write_bytes(b"plain")
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"id": 1, "contents": "x"}')[:-9])
    (tmp_path / "a.jsonl").write_bytes(b'{"id": 1, "contents": "caf\xe9"}')
    assert "gzip" in refused(tmp_path / "a.jsonl.gz")
    assert "gzip" in refused(tmp_path / "cut.jsonl.gz")
    assert "UTF-8" in refused(tmp_path / "a.jsonl")


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.jsonl", "a.tsv"])
def test_empty_files_hold_no_text(tmp_path, name):
    (tmp_path / name).write_text("\n  \n")
    assert "no text" in refused(tmp_path / name)


def test_unknown_kinds_and_missing_files(tmp_path):
    (tmp_path / "a.png").write_bytes(b"\x89PNG")
    assert ".docx" in refused(tmp_path / "a.png")
    assert "can't be opened" in refused(tmp_path / "none.txt")


@pytest.mark.parametrize(
    ("part", "content"),
    [
        ("word/_rels/document.xml.rels", "<a/>"),
        ("word/document.xml", "<a/>"),
        ("docProps/core.xml", "<a/>"),
        ("[Content_Types].xml", "<a/>"),
    ],
)
def test_what_a_damaged_part_makes_a_library_raise_is_told_plainly_and_is_no_bug(tmp_path, caplog, part, content):
    docx.Document().save(file := io.BytesIO())
    (tmp_path / "a.docx").write_bytes(bombs.swapped(file, {part: content}))
    assert re.search(r"is damaged, or not a \.docx file|is not a Word document", refused(tmp_path / "a.docx"))
    assert "Traceback" not in caplog.text


def test_a_damaged_archive_is_told_as_one(tmp_path, caplog):
    assert "is damaged, or not a .docx file" in refused(odd_files(tmp_path)["zip.docx"])
    assert "ended with error in zipfile" in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize(
    ("module", "bound", "name"),
    [("html", "DEPTH_MOST", "a.html"), ("docx", "COLUMNS_MOST", "a.docx")],  # the first is called by lxml
)
def test_a_bug_of_our_own_is_logged_as_one(tmp_path, caplog, monkeypatch, module, bound, name):
    (tmp_path / "a.html").write_text("<p>Oats")
    (tmp_path / "a.docx").write_bytes(bombs.word(bombs.table(bombs.cell())))
    assert read(tmp_path / name)
    monkeypatch.setattr(f"assistant.library.readers.{module}.{bound}", None)
    assert "the log has the details" in refused(tmp_path / name)
    assert "Traceback" in caplog.text


def test_a_header_in_an_encoding_that_has_no_name_is_read_as_it_stands(tmp_path):
    file = tmp_path / "a.eml"
    file.write_bytes(b"From: ann@example.org\nSubject: =?ut\xc3\xbcf-8?q?Oats?=\n\nOats are a cereal.")
    assert "Oats are a cereal." in [block.text for block in read(file)]


@pytest.mark.parametrize(
    ("name", "reason"), [("xml.docx", "its XML can't be read"), ("number.jsonl", "line 1: not valid JSON")]
)
def test_what_is_wrong_with_an_odd_file_is_told_where_it_is_known(tmp_path, caplog, name, reason):
    assert reason in refused(odd_files(tmp_path)[name])
    assert "Traceback" not in caplog.text


def test_an_id_that_no_index_takes_is_refused(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps({"id": "x" * ID_CHARS, "contents": "fine"}))
    assert read(file)
    file.write_text(json.dumps({"id": "x" * (ID_CHARS + 1), "contents": "fine"}))
    assert "id of more than 1,000 characters" in refused(file)


def test_every_reader_is_found_by_its_suffix():
    assert {".txt", ".md", ".html", ".pdf", ".docx", ".jsonl", ".tsv"} <= set(suffixes())
    assert all(reader_of(Path(f"x{suffix}")) for suffix in suffixes())
