"""Workbooks, slides, e-mails and e-books, made by the libraries that others make them with."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from email.message import EmailMessage
from pathlib import Path
from zipfile import ZipFile

import docx
import openpyxl
import pptx
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from pptx.util import Inches
from pypdf import PdfWriter

from assistant.errors import LibraryError
from assistant.library import readers
from assistant.library.readers import read
from assistant.library.readers.html import CARRIED_MOST, SPAN_MOST
from assistant.library.readers.shared.tables import NAME_CHARS, SPANNED_MOST, head_of
from tests.archives import CONTAINER, epub


def said(path: Path) -> list[tuple[str, str, str]]:
    return [(block.title, block.place, block.text) for block in read(path)]


def refused(path: Path) -> str:
    with pytest.raises(LibraryError) as error:
        read(path)
    return str(error.value)


def workbook(path: Path, **sheets: Sequence[Sequence[object]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_rows_of_a_workbook_have_the_names_of_their_columns(tmp_path):
    day = datetime(2026, 3, 1)
    file = workbook(
        tmp_path / "stock_list.xlsx",
        Prices=[
            ["Prices of March"],
            [],
            ["Item", "Price", "Since"],
            ["Oats", 12.5, day],
            ["Tea", None, date(2026, 4, 2)],
        ],
        Notes=[[1, 2], [3, 4]],
    )
    assert said(file) == [
        ("stock list - Prices", "sheet Prices, row 1", "Prices of March"),
        ("stock list - Prices", "sheet Prices, row 4", "Item: Oats; Price: 12.5; Since: 2026-03-01"),
        ("stock list - Prices", "sheet Prices, row 5", "Item: Tea; Since: 2026-04-02"),
        ("stock list - Notes", "sheet Notes, row 1", "1 | 2"),
        ("stock list - Notes", "sheet Notes, row 2", "3 | 4"),
    ]


def test_a_lone_cell_that_is_far_out_is_read_without_the_empty_ones_before_it(tmp_path):
    book = openpyxl.Workbook()
    book.active["XFD9"] = "Oats"
    book.save(tmp_path / "a.xlsx")
    assert said(tmp_path / "a.xlsx") == [("a - Sheet", "sheet Sheet, row 9", "Oats")]


def test_a_text_that_many_cells_share_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "CHARS_MOST", 1000)
    file = workbook(tmp_path / "a.xlsx", Oats=[["oats " * 50]] * 5)
    assert "more than 1,000 characters" in refused(file)


def test_percent_is_read_as_shown_and_a_formula_that_was_never_calculated_is_nothing(tmp_path):
    book = openpyxl.Workbook()
    book.active.append(["Item", "Share", "Sum"])
    book.active.append(["Oats", 0.25, "=B2*2"])
    book.active["B2"].number_format = "0%"
    book.save(tmp_path / "a.xlsx")
    assert [block.text for block in read(tmp_path / "a.xlsx")] == ["Item: Oats; Share: 25%"]


@pytest.mark.parametrize(
    ("value", "shown_as", "text"),
    [
        (1, "0%", "100%"),
        (2, "0.0 %", "200%"),
        (12.5, '0.0"%"', "12.5%"),
        (12.5, r"0.0\%", "12.5%"),
        (0.25, "[Red]0%", "25%"),
        (True, "0%", "True"),
    ],
)
def test_a_number_is_a_share_where_its_format_makes_it_one(tmp_path, value, shown_as, text):
    book = openpyxl.Workbook()
    book.active.append([value])
    book.active["A1"].number_format = shown_as
    book.save(tmp_path / "a.xlsx")
    assert [block.text for block in read(tmp_path / "a.xlsx")] == [text]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("item,price\nOats,12\n\nTea,\n", [("row 2", "item: Oats; price: 12"), ("row 4", "item: Tea")]),
        ("Preis;Menge\n1,50;2\n", [("row 2", "Preis: 1,50; Menge: 2")]),
        ('a\tb\n"x\ny"\t2\n', [("row 2", "a: x y; b: 2")]),
        ("1,2\n3,4\n", [("row 1", "1 | 2"), ("row 2", "3 | 4")]),
        ("item,price\nOats,12,more\n", [("row 2", "item: Oats; price: 12; more")]),
        ("item,price\n", [("row 1", "item | price")]),
        ("word\nOats\n", [("row 1", "word"), ("row 2", "Oats")]),
        (
            "Landlord,Anna Meyer\nPhone,0123\nRent,500\n",
            [("row 1", "Landlord | Anna Meyer"), ("row 2", "Phone | 0123"), ("row 3", "Rent | 500")],
        ),
        (
            "item,price\nOats,on request\nTea,5 EUR\nRye,6 EUR\n",
            [
                ("row 2", "item: Oats; price: on request"),
                ("row 3", "item: Tea; price: 5 EUR"),
                ("row 4", "item: Rye; price: 6 EUR"),
            ],
        ),
        (
            "day,what\n01.02.2026,swim\n08:30,run\n",
            [
                ("row 2", "day: 01.02.2026; what: swim"),
                ("row 3", "day: 08:30; what: run"),
            ],
        ),
        ("item,price\n\nOats,12\n", [("row 3", "item: Oats; price: 12")]),
        (
            "by,Anna\n\nitem,price,note\nOats,12,new\nRye,5,\n",
            [
                ("row 1", "by | Anna"),
                ("row 4", "item: Oats; price: 12; note: new"),
                ("row 5", "item: Rye; price: 5"),
            ],
        ),
        (
            "item,price\nOats,12\n\nShops,\nshop,staff\nNorth,3\n\nSouth,4\n",
            [
                ("row 2", "item: Oats; price: 12"),
                ("row 4", "Shops"),
                ("row 6", "shop: North; staff: 3"),
                ("row 8", "shop: South; staff: 4"),
            ],
        ),
        (
            "item,price\nOats,12\n\nname,phone\nAnna,0123\n",
            [
                ("row 2", "item: Oats; price: 12"),
                ("row 4", "name | phone"),
                ("row 5", "Anna | 0123"),
            ],
        ),
        ("name,city,job\n\nAnna,Rome,cook\n", [("row 3", "name: Anna; city: Rome; job: cook")]),
        (
            "Prices, in EUR\nItem;Price\nOats;1,50\nTea;2,50\n",
            [
                ("row 1", "Prices, in EUR"),
                ("row 3", "Item: Oats; Price: 1,50"),
                ("row 4", "Item: Tea; Price: 2,50"),
            ],
        ),
        ('item,note\n"a;b\nc;d",1\n"e;f",2\n', [("row 2", "item: a;b c;d; note: 1"), ("row 3", "item: e;f; note: 2")]),
    ],
)
def test_rows_of_comma_separated_values(tmp_path, text, rows):
    (tmp_path / "a.csv").write_text(text)
    assert [(block.place, block.text) for block in read(tmp_path / "a.csv")] == rows


def test_a_long_name_of_a_column_is_cut_beside_its_values(tmp_path):
    (tmp_path / "a.csv").write_text(f"{'n' * 500},b\n1,2\n")
    assert [block.text for block in read(tmp_path / "a.csv")] == [f"{'n' * (NAME_CHARS - 1)}…: 1; b: 2"]


def test_slides_with_a_table_a_group_and_notes(tmp_path):
    show = pptx.Presentation()
    show.core_properties.title = "Harvest"
    slide = show.slides.add_slide(show.slide_layouts[5])
    slide.shapes.title.text = "Oats in 2026"
    box = slide.shapes.add_textbox(Inches(1), Inches(1), Inches(3), Inches(1))
    box.text_frame.text = "More than last year."
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, 99, 99).text_frame.text = "Inside a group."
    table = slide.shapes.add_table(2, 2, 0, 0, Inches(2), Inches(1)).table
    for cell, text in zip(table.iter_cells(), ["Field", "Tons", "North", "40"], strict=True):
        cell.text = text
    slide.notes_slide.notes_text_frame.text = "Thank the farmers."
    show.slides.add_slide(show.slide_layouts[5]).shapes.title.text = "Thanks"
    show.save(tmp_path / "a.pptx")
    assert said(tmp_path / "a.pptx") == [
        ("Harvest - Oats in 2026", "slide 1", "More than last year."),
        ("Harvest - Oats in 2026", "slide 1", "Inside a group."),
        ("Harvest - Oats in 2026", "slide 1", "Field: North; Tons: 40"),
        ("Harvest - Oats in 2026", "slide 1", "Notes: Thank the farmers."),
        ("Harvest - Thanks", "slide 2", "Thanks"),
    ]


def email(path: Path, html: str = "", text: str = "Hi Bo,\n\nthe oats are in.\n", **headers: str) -> Path:
    message = EmailMessage()
    for name, value in {"From": "Åse <ase@example.org>", "To": "Bo <bo@example.org>", **headers}.items():
        message[name] = value
    message["Date"] = datetime(2026, 5, 17, 9, tzinfo=UTC)
    if html:
        message.set_content(html, "html")
    else:
        message.set_content(text)
    message.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="bill.pdf")
    path.write_bytes(bytes(message))
    return path


def test_an_email_and_the_names_of_what_is_attached(tmp_path):
    blocks = read(email(tmp_path / "a.eml", Subject="Über oats"))
    assert {block.title for block in blocks} == {"Über oats"}
    head, *texts = [block.text for block in blocks]
    assert head.startswith("From: Åse <ase@example.org>; To: Bo <bo@example.org>; Date: Sun, 17 May 2026 09:00:00")
    assert texts == ["Hi Bo,", "the oats are in.", "Attachments, which were not read: bill.pdf"]


def test_an_emails_list_keeps_its_lines(tmp_path):
    blocks = read(email(tmp_path / "a.eml", text="Hi Bo,\n\nplease bring\n- oats\n- two lemons\n\nAnna"))
    assert [block.text for block in blocks[1:4]] == ["Hi Bo,", "please bring\noats\ntwo lemons", "Anna"]


def test_an_email_in_html_and_one_without_a_subject(tmp_path):
    blocks = read(email(tmp_path / "a_letter.eml", html="<p>Said <b>so</b>.</p><script>x</script>"))
    assert [(block.title, block.text) for block in blocks[1:-1]] == [("a letter", "Said so.")]


def test_an_email_in_an_unknown_character_set_is_read_all_the_same(tmp_path):
    (tmp_path / "a.eml").write_bytes(b"From: a\nContent-Type: text/plain; charset=none\n\nOats.\n")
    assert read(tmp_path / "a.eml")[-1].text == "Oats."


def test_an_email_whose_plain_text_is_empty_is_read_in_html(tmp_path):
    message = EmailMessage()
    message["From"] = "ann@example.org"
    message.set_content("\n")
    message.add_alternative("<p>The oats are in.</p>", subtype="html")
    (tmp_path / "a.eml").write_bytes(bytes(message))
    assert [text for _, _, text in said(tmp_path / "a.eml")] == ["From: ann@example.org", "The oats are in."]


def test_an_emails_text_goes_on_behind_what_stands_in_its_middle(tmp_path):
    message = EmailMessage()
    message["From"] = "ann@example.org"
    message.set_content("See the bill.")
    message.add_alternative("<p>See the bill.</p>", subtype="html")
    message.add_attachment(b"%PDF", maintype="application", subtype="pdf", disposition="inline", filename="bill.pdf")
    message.add_attachment("It is for oats.", disposition="inline")
    message.add_attachment("<p>Paid in May.</p>", subtype="html", disposition="inline")
    message.add_attachment("Not this.", disposition="inline", filename="more.txt")
    message.add_attachment("Nor this.", subtype="html", filename="more.html")
    (tmp_path / "a.eml").write_bytes(bytes(message))
    assert [text for _, _, text in said(tmp_path / "a.eml")] == [
        "From: ann@example.org",
        "See the bill.",
        "It is for oats.",
        "Paid in May.",
        "Attachments, which were not read: bill.pdf, more.txt, more.html",
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_an_emails_headers_that_are_not_encoded_are_read(tmp_path, encoding):
    mail = "From: Åse <ase@example.org>\nSubject: Grüße\n\nOats.\n"
    (tmp_path / "a.eml").write_bytes(mail.encode(encoding))
    assert said(tmp_path / "a.eml")[0] == ("Grüße", "", "From: Åse <ase@example.org>; Subject: Grüße")


@pytest.mark.parametrize("declared", ["", "; charset=us-ascii", "; charset=none"])
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_an_emails_text_in_no_character_set_that_it_says_is_read_as_its_bytes_are(tmp_path, declared, encoding):
    mail = f"From: a\nContent-Type: text/plain{declared}\n\nGrüße aus Århus\n"
    (tmp_path / "a.eml").write_bytes(mail.encode(encoding))
    assert read(tmp_path / "a.eml")[-1].text == "Grüße aus Århus"


@pytest.mark.parametrize(("header", "meta"), [("", "windows-1251"), ("; charset=windows-1251", "koi8-r")])
def test_an_emails_page_is_in_the_encoding_of_its_header_or_else_its_own(tmp_path, header, meta):
    mail = f"From: a\nContent-Type: text/html{header}\n\n<meta charset={meta}><p>Овсянка полезна.</p>\n"
    (tmp_path / "a.eml").write_bytes(mail.encode("windows-1251"))
    assert read(tmp_path / "a.eml")[-1].text == "Овсянка полезна."


def test_files_and_forwarded_messages_are_named_wherever_they_stand_in_an_email(tmp_path):
    mixed = EmailMessage()
    mixed.set_content("<p>The bill.</p>", "html")
    mixed.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="bill.pdf")
    for subject in ("Oats again", ""):
        forwarded = EmailMessage()
        forwarded["Subject"] = subject
        forwarded.set_content("Not this.")
        mixed.add_attachment(forwarded)
    message = EmailMessage()
    message["From"] = "ann@example.org"
    message.set_content("The bill.")
    message.make_alternative()
    message.attach(mixed)
    (tmp_path / "a.eml").write_bytes(bytes(message))
    assert [text for _, _, text in said(tmp_path / "a.eml")] == [
        "From: ann@example.org",
        "The bill.",
        "Attachments, which were not read: bill.pdf, Oats again, a message without a subject",
    ]


def test_an_email_that_is_a_file_names_it(tmp_path):
    mail = 'From: a\nContent-Type: application/pdf; name="bill.pdf"\n\n%PDF\n'
    (tmp_path / "a.eml").write_text(mail)
    assert read(tmp_path / "a.eml")[-1].text == "Attachments, which were not read: bill.pdf"


def test_an_ebook_in_reading_order(tmp_path):
    chapters = {"two.xhtml": "<h1>Two</h1><p>Second.</p>", "one.xhtml": "<h1>One</h1><p>First &amp; best.</p>"}
    file = epub(tmp_path / "a.epub", chapters, order=["one.xhtml", "gone.xhtml", "two.xhtml"], title="On oats")
    assert said(file) == [("On oats - One", "part 1", "First & best."), ("On oats - Two", "part 2", "Second.")]


def test_an_ebook_that_is_protected_is_refused(tmp_path):
    file = epub(tmp_path / "a.epub", {"one.xhtml": "<p>x</p>"}, order=["one.xhtml"])
    with ZipFile(file, "a") as parts:
        parts.writestr("META-INF/encryption.xml", '<e xmlns="x"><CipherReference URI="OPS/one.xhtml"/></e>')
    assert "protected against copying" in refused(file)


def test_a_word_tables_first_row_names_the_columns(tmp_path):
    document = docx.Document()
    table = document.add_table(rows=2, cols=3)
    for cell, text in zip(
        [*table.rows[0].cells, *table.rows[1].cells], ["Item", "Price", "Note", "Oats", "12", ""], strict=True
    ):
        cell.text = text
    document.save(str(tmp_path / "a.docx"))
    assert [block.text for block in read(tmp_path / "a.docx")] == ["Item: Oats; Price: 12"]


def control(content: str, about: str = "") -> str:
    return f"<w:sdt><w:sdtPr>{about}</w:sdtPr><w:sdtContent>{content}</w:sdtContent></w:sdt>"


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def word(path: Path, body: str) -> Path:
    document = docx.Document()
    for child in parse_xml(f"<w:body {nsdecls('w')}>{body}</w:body>"):
        document.element.body.append(child)
    document.save(str(path))
    return path


def test_what_stands_in_content_controls_and_was_inserted_with_tracking_is_read(tmp_path):
    line = "<w:p>{}</w:p>".format
    cell = "<w:tc>{}</w:tc>".format
    row = f"<w:tr>{cell(line(run('Tea')))}{control(cell(control(line(run('5')))))}</w:tr>"
    tracked = f"<w:ins>{run('was ')}</w:ins><w:del><w:r><w:delText>never </w:delText></w:r></w:del>"
    body = [
        line(run("Oats ") + tracked + control(run("sold ")) + f"<w:smartTag>{run('in May')}</w:smartTag>"),
        control(line(run("Kept dry.")) + control(line(run("And cool.")))),
        control(f"<w:tbl>{control(row)}</w:tbl>"),
        line(run("The end.")),
    ]
    texts = [text for _, _, text in said(word(tmp_path / "a.docx", "".join(body)))]
    assert texts == ["Oats was sold in May", "Kept dry.", "And cool.", "Tea | 5", "The end."]


def test_exponents_in_word_are_told_from_other_digits_and_footnotes_are_left_out(tmp_path):
    raised = '<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>{}</w:t></w:r>'.format
    link = f"<w:hyperlink>{raised('3')}</w:hyperlink>"
    body = f"<w:p>{run('10')}{raised('-')}{raised('6')}{run(' m')}{raised('2')}{run(' in 2020')}{link}{run('.')}</w:p>"
    assert [text for _, _, text in said(word(tmp_path / "a.docx", body))] == ["10^-6 m2 in 2020."]


def test_tables_of_contents_and_hints_at_what_to_fill_in_are_no_text_of_a_word_document(tmp_path):
    line = "<w:p>{}</w:p>".format
    gallery = '<w:docPartObj><w:docPartGallery w:val="{}"/></w:docPartObj>'.format
    body = [
        control(line(run("Our oats")), gallery("Cover Pages")),
        control(line(run("Prices 3")), gallery("Table of Contents")),
        line(run("Sold to: ") + control(run("Click here to enter text."), "<w:showingPlcHdr/>")),
    ]
    assert [text for _, _, text in said(word(tmp_path / "a.docx", "".join(body)))] == ["Our oats", "Sold to:"]


@pytest.mark.parametrize(
    ("rows", "texts"),
    [
        (
            "<tr><th>Item<th>Price<tr><td>Oats<td>12<tr><td colspan=2>All in crowns",
            ["Item: Oats; Price: 12", "All in crowns"],
        ),
        ("<tr><td>Item<td>Price<td>Note<tr><td>Oats<td>12<td>", ["Item: Oats; Price: 12"]),
        ("<tr><td>Name<td>Anna<tr><td>Age<td>12", ["Name | Anna", "Age | 12"]),
        ("<tr><th>Name<td>Anna<tr><th>Age<td>12", ["Name | Anna", "Age | 12"]),
        ("<tr><th>Item<th>Price", ["Item | Price"]),
        (
            "<tr><th>Year<th colspan=2>Revenue in EUR<tr><td>2020<td>5<td>6",
            ["Year: 2020; Revenue in EUR: 5; Revenue in EUR: 6"],
        ),
        (
            "<tr><th colspan=2>Item<th colspan=x>Price<tr><td colspan=2>Oats<td>12",
            ["Item: Oats; Price: 12"],
        ),
        ("<tr><th>Item<th>Price<tr><td>Oats<td>12<td>new", ["Item | Price", "Oats | 12 | new"]),
        (
            "<tr><th>Land<th>Year<th>Price<tr><td rowspan=2>Mali<td>2020<td>5<tr><td>2021<td>7<tr><td>Oz<td><td>1",
            [
                "Land: Mali; Year: 2020; Price: 5",
                "Land: Mali; Year: 2021; Price: 7",
                "Land: Oz; Price: 1",
            ],
        ),
        ("<tr><td>Oats<td rowspan=2>5<td>a<tr><td colspan=1>Rye<td>b", ["Oats | 5 | a", "Rye | 5 | b"]),
        ("<tr><td>Oats<td rowspan=3>5<tr><td>Rye<tr><tr><td>Tea", ["Oats | 5", "Rye | 5", "Tea"]),
        (
            "<thead><tr><th rowspan=2>Year<th colspan=2>Sold<tr><th>Q1<th>Q2<tbody><tr><td>2020<td>5<td>6",
            ["Year | Q1 | Q2", "Year: 2020; Sold: 5; Sold: 6"],
        ),
        ("<thead><tr><th rowspan=9>Item<th>Price<tbody><tr><td>Oats<td>5", ["Item: Oats; Price: 5"]),
        (
            f"<tr><td rowspan=2>{'long ' * 90}<td>1<tr><td>2",
            [f"{'long ' * 89}long | 1", f"{('long ' * 16)[: NAME_CHARS - 1].rstrip()}… | 2"],
        ),
    ],
)
def test_a_web_pages_table(tmp_path, rows, texts):
    (tmp_path / "a.html").write_text(f"<table>{rows}</table>")
    assert [block.text for block in read(tmp_path / "a.html")] == texts


@pytest.mark.parametrize(("ending", "kind"), [("xlsx", "workbook"), ("pptx", "presentation"), ("epub", "e-book")])
def test_what_is_broken_encrypted_or_another_archive_is_refused(tmp_path, ending, kind):
    file = tmp_path / f"a.{ending}"
    file.write_bytes(b"PK broken")
    assert f"{kind} that can be read" in refused(file)
    file.write_bytes(b"\xd0\xcf\x11\xe0" + b"x" * 99)
    assert "encrypted" in refused(file)
    with ZipFile(file, "w") as parts:
        parts.writestr(CONTAINER, "<x/>")
    assert f"{kind} that can be read" in refused(file)


def test_what_is_no_email_is_refused(tmp_path):
    PdfWriter().write(tmp_path / "a.eml")
    assert "not an e-mail" in refused(tmp_path / "a.eml")


def test_a_subject_in_a_broken_encoding_is_shown_as_it_stands(tmp_path):
    (tmp_path / "a.eml").write_text("From: ann@example.org\nSubject: =?utf-8?b?w6k?=\n\nOats.\n")
    assert [text for _, _, text in said(tmp_path / "a.eml")][-1] == "Oats."


def test_a_chapter_that_is_listed_twice_is_read_once(tmp_path):
    file = epub(tmp_path / "a.epub", {"a.xhtml": "<p>Oats.</p>"}, ["a.xhtml"])
    with ZipFile(file) as parts:
        package, chapter = parts.read("OPS/book.opf").decode(), parts.read("OPS/a.xhtml")
    package = package.replace(
        "<itemref", '<item id="b" href="a.xhtml" media-type="text/html"/><itemref idref="b"/><itemref'
    )
    with ZipFile(file, "w") as parts:
        parts.writestr(CONTAINER, '<c xmlns="c"><rootfile full-path="OPS/book.opf"/></c>')
        parts.writestr("OPS/book.opf", package)
        parts.writestr("OPS/a.xhtml", chapter)
    assert [text for _, _, text in said(file)] == ["Oats."]


def merged(*rows: str) -> str:
    """A table of Word: "Sold/2" spans two columns, "Year+" goes on in the rows below, where "+" stands for it."""
    cells = (map(merged_cell, row.split(",")) for row in rows)
    return "<w:tbl>" + "".join(f"<w:tr>{''.join(row)}</w:tr>" for row in cells) + "</w:tbl>"


def merged_cell(cell: str) -> str:
    text, _, span = cell.strip("+").partition("/")
    begun = '<w:vMerge w:val="restart"/>' if cell.endswith("+") else ""
    about = f'<w:gridSpan w:val="{span or 1}"/>{"<w:vMerge/>" if cell == "+" else begun}'
    return f"<w:tc><w:tcPr>{about}</w:tcPr><w:p>{run(text)}</w:p></w:tc>"


@pytest.mark.parametrize(
    ("rows", "texts"),
    [
        (("Year,Sold/2,Note", "2020,5,6,x"), ["Year: 2020; Sold: 5; Sold: 6; Note: x"]),
        (("Year,Sold/2,Note", "2020,5/2,x"), ["Year: 2020; Sold: 5; Note: x"]),
        (("Year,Sold,Note", "2020,5/2"), ["Year | Sold | Note", "2020 | 5"]),
        (("Year+,Sold/2,Note+", "+,A,B,+", "1,5,6,x"), ["Year | A | B | Note", "Year: 1; Sold: 5; Sold: 6; Note: x"]),
        (("Land,Year,Price", "Oz+,20,5", "+,21,7"), ["Land: Oz; Year: 20; Price: 5", "Land: Oz; Year: 21; Price: 7"]),
    ],
)  # fmt: skip
def test_merged_cells_of_a_word_table_have_the_names_of_their_columns(tmp_path, rows, texts):
    assert [text for _, _, text in said(word(tmp_path / "a.docx", merged(*rows)))] == texts


def test_what_cells_span_is_bounded(tmp_path):
    cells = "".join(f"<td rowspan=99999>{n}" for n in range(CARRIED_MOST + 9))
    (tmp_path / "a.html").write_text(f"<table><tr>{cells}{'<tr><td>x' * (SPAN_MOST + 9)}</table>")
    texts = [block.text for block in read(tmp_path / "a.html")]
    assert texts[1] == " | ".join([*map(str, range(CARRIED_MOST)), "x"])
    assert texts[SPAN_MOST:] == ["x"] * 10
    head = head_of(["a", "b"], [10 * SPANNED_MOST] * 2)
    assert len(head.by_column) == 2 + SPANNED_MOST
    assert head.by_column[-1] == "b"
