"""Documents that were made to keep a worker busy or to fill the memory, by kind."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import docx
import openpyxl
import pptx

MANY = 50_000
SPAN, BEGUN = '<w:gridSpan w:val="100000000"/>', '<w:vMerge w:val="restart"/>'
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_SLIDE = "http://schemas.openxmlformats.org/presentationml/2006/main"
_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
_TYPES = "[Content_Types].xml"
MIXED = 'Content-Type: multipart/mixed; boundary="b"'
QUOTED = "Content-Type: text/plain\nContent-Transfer-Encoding: quoted-printable"
CELL, STRING = "<c><v>1</v></c>", '<c t="s"><v>0</v></c>'


def swapped(archive: io.BytesIO, members: dict[str, str]) -> bytes:
    """An archive in which the members of these names have another content, or are added."""
    changed = io.BytesIO()
    with ZipFile(archive) as old, ZipFile(changed, "w", ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name not in members:
                new.writestr(name, old.read(name))
        for name, content in members.items():
            new.writestr(name, content)
    return changed.getvalue()


def word(body: str, prolog: str = "") -> bytes:
    """A Word document of which only the main part is other than Word would write it."""
    file = io.BytesIO()
    docx.Document().save(file)
    main = f'<?xml version="1.0"?>{prolog}<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>'
    return swapped(file, {"word/document.xml": main})


def workbook(rows: str, strings: str = "", prolog: str = "") -> bytes:
    """A workbook whose only sheet has these rows, with shared strings where there are some."""
    file, book = io.BytesIO(), openpyxl.Workbook()
    book.save(file)
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    override = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}"/></Types>'
    with ZipFile(file) as parts:
        types = parts.read(_TYPES).decode().replace("</Types>", override)
    sheet = f'<?xml version="1.0"?><worksheet xmlns="{_SHEET}"><sheetData>{rows}</sheetData></worksheet>'
    shared = f'<?xml version="1.0"?>{prolog}<sst xmlns="{_SHEET}">{strings}</sst>'
    return swapped(file, {_TYPES: types, "xl/worksheets/sheet1.xml": sheet, "xl/sharedStrings.xml": shared})


def numbered(count: int, column: str) -> str:
    """So many rows of a sheet, each with one cell in this column."""
    return "".join(f'<row r="{n}"><c r="{column}{n}"><v>1</v></c></row>' for n in range(1, count + 1))


def slides(shapes: str, prolog: str = "") -> bytes:
    """A presentation whose only slide has these shapes."""
    file, show = io.BytesIO(), pptx.Presentation()
    show.slides.add_slide(show.slide_layouts[6])
    show.save(file)
    tree = f"<p:spTree><p:nvGrpSpPr/><p:grpSpPr/>{shapes}</p:spTree>"
    slide = (
        f'<?xml version="1.0"?>{prolog}<p:sld xmlns:p="{_SLIDE}" xmlns:a="{_DRAWING}"><p:cSld>{tree}</p:cSld></p:sld>'
    )
    return swapped(file, {"ppt/slides/slide1.xml": slide})


def shape(text: str) -> str:
    """A shape of a slide that says this."""
    properties = '<p:nvSpPr><p:cNvPr id="2" name="x"/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/>'
    return f"<p:sp>{properties}<p:txBody><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>"


def book(items: str, spine: str, chapter: str = "", prolog: str = "") -> bytes:
    """An e-book with a chapter `c.xhtml`, and these items and references in its package file."""
    file = io.BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as parts:
        parts.writestr("META-INF/container.xml", '<container><rootfile full-path="a.opf"/></container>')
        head = "<metadata><title>Oats</title></metadata>"
        parts.writestr("a.opf", f"{prolog}<package>{head}<manifest>{items}</manifest><spine>{spine}</spine></package>")
        parts.writestr("c.xhtml", chapter)
    return file.getvalue()


def item(n: int, name: str = "c.xhtml") -> str:
    """An item of a package file."""
    return f'<item id="i{n}" href="{name}" media-type="text/html"/>'


def mail(headers: str, body: str = "") -> str:
    """An e-mail."""
    return f"From: ann@example.org\nSubject: Oats\n{headers}\n\n{body}"


def nested(depth: int) -> str:
    """An e-mail whose parts are each in the one before, so deep."""
    begins = "".join(f'--b{n}\nContent-Type: multipart/mixed; boundary="b{n + 1}"\n\n' for n in range(depth))
    return mail('Content-Type: multipart/mixed; boundary="b0"', f"{begins}--b{depth}\n\noats\n")


def forwarded(depth: int) -> str:
    """An e-mail in an e-mail in an e-mail, so deep."""
    return mail("Content-Type: message/rfc822", "Content-Type: message/rfc822\n\n" * depth + "Subject: x\n\noats")


def parts(count: int, content: bytes) -> bytes:
    """A Word document that holds so many pictures of this content."""
    file = io.BytesIO()
    docx.Document().save(file)
    with ZipFile(file, "a", ZIP_DEFLATED) as archive:
        for n in range(count):
            archive.writestr(f"word/media/{n}.png", content)
    return file.getvalue()


def cell(properties: str = "", text: str = "oats") -> str:
    """A row of a table with one cell."""
    return f"<w:tr><w:tc><w:tcPr>{properties}</w:tcPr><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:tc></w:tr>"


def table(rows: str) -> str:
    """A table of Word."""
    return f"<w:tbl>{rows}</w:tbl>"


def pdf(stream: bytes, pages: int = 1, packed: bool = False, image: bytes = b"") -> bytes:
    """A PDF whose pages all show this stream, which may show an `image` as /I."""
    if packed:
        stream = zlib.compress(stream)
    fonts = b"/Font << /F1 3 0 R >> /XObject << /I 6 0 R >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] >>" % (pages, b"4 0 R " * pages),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 5 0 R /Resources << %s >> >>" % fonts,
        b"<< /Length %d %s>> stream\n%s\nendstream"
        % (len(stream), b"/Filter /FlateDecode " if packed else b"", stream),
        image or b"<< >>",
    ]
    data, offsets = b"%PDF-1.4\n", []
    for n, body in enumerate(objects, 1):
        offsets.append(len(data))
        data += b"%d 0 obj %s endobj\n" % (n, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    start = len(data)
    return data + b"xref\n0 7\n0000000000 65535 f \n%strailer << /Size 7 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (
        table,
        start,
    )


def scan(side: int) -> bytes:
    """A PDF of one page that is a white picture, so many pixels wide and high."""
    pixels = zlib.compress(b"\xff" * (side * side // 8))
    head = b"<< /Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray /BitsPerComponent 1" % (
        side,
        side,
    )
    image = b"%s /Filter /FlateDecode /Length %d >> stream\n%s\nendstream" % (head, len(pixels), pixels)
    return pdf(b"9 0 0 9 0 0 cm /I Do", image=image)


def _references(count: int) -> str:
    return "".join(f'<itemref idref="i{n}"/>' for n in range(count))


def laughs() -> str:
    """Entities that grow tenfold, nine times."""
    entities = "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9))
    return f'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">{entities}]>'


BOMBS: dict[str, bytes | str | Callable[[], bytes | str]] = {
    "div.html": "<div>" * MANY,
    "closed.html": "<div>x" * MANY + "</div>" * MANY,
    "p.html": "<p>x" * MANY,
    "bold.html": "<p><b>x" * MANY,
    "font.html": "<font>" * MANY,
    "mixed.html": "<b></i>x" * MANY,
    "deep.html": "<b>" * 990 + "</i>x" * MANY,
    "tables.html": "<table><tr><td>x" * MANY,
    "lists.html": "<ul><li>x" * MANY,
    "headings.html": "<h1>x" * MANY,
    "select.html": "<select><option>x" * MANY,
    "entities.html": "&a" * MANY,
    "numbers.html": "&#" * MANY,
    "tags.html": "<a" * MANY,
    "attributes.html": "<a " + "b=c " * MANY + ">x",
    "comments.html": "<!--" * MANY,
    "sections.html": "<![" * MANY,
    "ends.html": "</p>" * MANY,
    "titles.html": "<title>" * MANY,
    "line.html": lambda: "a" * 18_000_000,
    "line.txt": lambda: "a" * 18_000_000,
    "words.txt": lambda: "word " * 1_000_000,
    "stops.txt": ". " * 1_000_000,
    "lines.txt": lambda: "\n" * 5_000_000,
    "spaces.txt": lambda: ("\n" + " " * 1000) * 5000,
    "marks.txt": lambda: "e" + "\u0301" * 2_000_000,
    "nothing.txt": "\0" * 1_000_000,
    "brackets.md": "[" * MANY,
    "links.md": "[x](" * MANY,
    "stars.md": "*a" * MANY,
    "lines.md": "_a " * MANY,
    "quotes.md": ">" * MANY,
    "lists.md": "- " * MANY,
    "images.md": "![](" * MANY,
    "ticks.md": "`" * MANY + "x" + "`a" * MANY,
    "table.md": "|a" * 5000 + "\n" + "|-" * 5000 + "\n" + "|b" * 5000,
    "deep.md": "\n".join(" " * n + "- a" for n in range(500)),
    "names.md": "".join(f"[a{n}]: x\n" for n in range(MANY)),
    "deep.jsonl": "[" * 1_000_000,
    "number.jsonl": '{"id": %s, "contents": "x"}' % ("1" * 1_000_000),
    "line.jsonl": lambda: '{"id": 1, "contents": "%s"}' % ("a" * 18_000_000),
    "packed.jsonl.gz": lambda: gzip.compress(b'{"id": 1, "contents": "' + b"a" * 200_000_000 + b'"}'),
    "packed.tsv.gz": lambda: gzip.compress(b"1\tx\ty\n" * 20_000_000),
    "quotes.tsv": '1\t"' + '""' * 1_000_000 + '"\tx',
    "xml.docx": lambda: word("<w:p><w:r><w:t>x</w:t></w:r></w:p>" * 1_700_000),
    "empty.docx": lambda: word("<w:p/>" * 4_000_000),
    "span.docx": lambda: word(table(cell(SPAN) * 1000)),
    "merged.docx": lambda: word(table(cell(BEGUN, "x " * 9000) + cell("<w:vMerge/>") * 20_000)),
    "nested.docx": lambda: word("<w:tbl><w:tr><w:tc>" * 5000),
    "laughs.docx": lambda: word("<w:p><w:r><w:t>&j;</w:t></w:r></w:p>", laughs()),
    "packed.pdf": lambda: pdf(b"(x) Tj " * 20_000_000, packed=True),
    "shown.pdf": lambda: pdf(b"BT /F1 12 Tf (x) Tj ET " * 500_000, packed=True),
    "pages.pdf": lambda: pdf(b"BT /F1 12 Tf (oats) Tj ET", pages=50_000),
    "brackets.pdf": pdf(b"BT " + b"(" * 200_000),
    "lists.pdf": pdf(b"BT " + b"[" * 200_000),
    "objects.pdf": b"%PDF-1.4\n" + b"1 0 obj << " * 100_000,
    "scan.pdf": lambda: scan(20_000),
    "line.csv": lambda: "a" * 18_000_000,
    "columns.csv": lambda: "a," * 1_000_000 + "\n" + "1," * 1_000_000,
    "names.csv": lambda: ",".join(f"{'name ' * 15}{n}" for n in range(5000)) + ("\n" + "1," * 4999 + "1") * 500,
    "quote.csv": lambda: "a,b\n" + '"x' * 1_000_000,
    "columns.xlsx": lambda: workbook(f'<row r="1">{CELL * 1_000_000}</row>'),
    "corners.xlsx": lambda: workbook(numbered(20_000, "XFD")),
    "strings.xlsx": lambda: workbook(f"<row>{STRING * 100}</row>" * 200, f"<si><t>{'oats ' * 20_000}</t></si>"),
    "laughs.xlsx": lambda: workbook(f"<row>{STRING}</row>", "<si><t>&j;</t></si>", laughs()),
    "shapes.pptx": lambda: slides(shape("oats") * 130_000),
    "laughs.pptx": lambda: slides(shape("&j;"), laughs()),
    "nested.eml": lambda: nested(20_000),
    "forwarded.eml": lambda: forwarded(20_000),
    "quoted.eml": lambda: mail(QUOTED, "=" * 5_000_000),
    "headers.eml": lambda: mail("X: y\n" * 1_000_000),
    "folded.eml": lambda: mail("To: x" + ",\n ann@example.org" * 500_000),
    "type.eml": lambda: mail("Content-Type: text/plain" + "; a*0*=utf-8''%61" * 200_000),
    "spine.epub": lambda: book("".join(map(item, range(MANY))), _references(MANY), "<p>oats" * 20_000),
    "laughs.epub": lambda: book(item(0), _references(1) + "&j;", "<p>oats", laughs()),
}
# kinds that are like those above to the readers
SIMILAR_BOMBS: dict[str, bytes | str | Callable[[], bytes | str]] = {
    "frames.html": "<iframe>x" * MANY,
    "forms.html": "<form><input>" * MANY,
    "anchors.html": "<a href=x>y" * MANY,
    "drawings.html": "<svg><g>" * MANY,
    "scripts.html": "<script>" * MANY,
    "terms.html": "<dl><dt>x<dd>" * MANY,
    "data.html": "<![CDATA[" * MANY,
    "tildes.md": "~~~\n" * MANY,
    "slashes.md": "\\" * 1_000_000,
    "tabs.tsv": "\t" * 1_000_000,
    "rows.tsv": "1\tx\n" * 1_000_000,
    "words.docx": lambda: word("<w:p><w:r><w:t>" + "word " * 2_000_000 + "</w:t></w:r></w:p>"),
    "parts.docx": lambda: parts(60_000, b""),
    "zeros.docx": lambda: parts(4, bytes(250_000_000)),
    "quotes.csv": lambda: 'a,b\n"' + '""' * 1_000_000 + '",x',
    "commas.csv": lambda: ("," * 16_000 + "\n") * 300,
    "corner.xlsx": lambda: workbook('<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'),
    "gap.xlsx": lambda: workbook('<row r="1000000000000"><c><v>1</v></c></row>'),
    "packed.xlsx": lambda: workbook(f"<row>{CELL * 10}</row>" * 1_100_000),
    "cell.xlsx": lambda: workbook(f'<row><c t="inlineStr"><is><t>{"oats " * 30_000_000}</t></is></c></row>'),
    "text.pptx": lambda: slides(shape("oats " * 5_000_000)),
    "groups.pptx": lambda: slides("<p:grpSp><p:nvGrpSpPr/><p:grpSpPr/>" * 200 + "</p:grpSp>" * 200),
    "deep.pptx": lambda: slides("<p:grpSp>" * 100_000),
    "parts.eml": lambda: mail(MIXED, "--b\n\noats\n" * 300_000),
    "soft.eml": lambda: mail(QUOTED, "=3D=\n" * 1_000_000),
    "words.eml": lambda: mail("To: " + "=?utf-8?q?=61?= " * 500_000),
    "self.epub": lambda: book(item(0, "a.opf") + item(1, "META-INF/container.xml"), _references(2)),
    "packed.epub": lambda: book(item(0), _references(1), "<p>oats" * 25_000_000),
}


def write_bomb(folder: Path, name: str) -> Path:
    """The document of this name, written into a folder."""
    content = {**BOMBS, **SIMILAR_BOMBS}[name]
    content = content() if callable(content) else content
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / name
