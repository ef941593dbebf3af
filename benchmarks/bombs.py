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
# Combining marks of four classes, each before those that it belongs behind: to put a run of n of these into Unicode's
# order takes time by the square of n.
MARKS = "\u0345\u0301\u0316\u0327"
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


def grid(count: int) -> str:
    """A table of a slide with so many rows of one cell."""
    row = '<a:tr h="1"><a:tc><a:txBody><a:bodyPr/><a:p><a:r><a:t>oats</a:t></a:r></a:p></a:txBody></a:tc></a:tr>'
    properties = '<p:cNvPr id="2" name="x"/><p:cNvGraphicFramePr/><p:nvPr/>'
    frame = f"<p:nvGraphicFramePr>{properties}</p:nvGraphicFramePr><p:xfrm/>"
    kind, rows = _DRAWING.replace("main", "table"), f"<a:tbl><a:tblPr/>{row * count}</a:tbl>"
    data = f'<a:graphicData uri="{kind}">{rows}</a:graphicData>'
    return f"<p:graphicFrame>{frame}<a:graphic>{data}</a:graphic></p:graphicFrame>"


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


def cells(count: int) -> str:
    """A row of a table with so many cells."""
    return f"<w:tr>{'<w:tc><w:p><w:r><w:t>x</w:t></w:r></w:p></w:tc>' * count}</w:tr>"


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


# What a document holds, by how many there are of what it repeats: `count(n)` is n, or a share of it.
Content = Callable[[Callable[[int], int]], bytes | str]
BOMBS: dict[str, Content] = {
    "div.html": lambda count: "<div>" * count(MANY),
    "closed.html": lambda count: "<div>x" * count(MANY) + "</div>" * count(MANY),
    "p.html": lambda count: "<p>x" * count(MANY),
    "bold.html": lambda count: "<p><b>x" * count(MANY),
    "font.html": lambda count: "<font>" * count(MANY),
    "mixed.html": lambda count: "<b></i>x" * count(MANY),
    "deep.html": lambda count: "<b>" * 990 + "</i>x" * count(MANY),
    "tables.html": lambda count: "<table><tr><td>x" * count(MANY),
    "cells.html": lambda count: "<table><tr>" + "<td>x" * count(MANY),
    "lists.html": lambda count: "<ul><li>x" * count(MANY),
    "headings.html": lambda count: "<h1>x" * count(MANY),
    "select.html": lambda count: "<select><option>x" * count(MANY),
    "entities.html": lambda count: "&a" * count(MANY),
    "numbers.html": lambda count: "&#" * count(MANY),
    "tags.html": lambda count: "<a" * count(MANY),
    "attributes.html": lambda count: "<a " + "b=c " * count(MANY) + ">x",
    "comments.html": lambda count: "<!--" * count(MANY),
    "sections.html": lambda count: "<![" * count(MANY),
    "ends.html": lambda count: "</p>" * count(MANY),
    "titles.html": lambda count: "<title>" * count(MANY),
    "line.html": lambda count: "a" * count(18_000_000),
    "line.txt": lambda count: "a" * count(18_000_000),
    "words.txt": lambda count: "word " * count(1_000_000),
    "stops.txt": lambda count: ". " * count(1_000_000),
    "lines.txt": lambda count: "\n" * count(5_000_000),
    "spaces.txt": lambda count: ("\n" + " " * 1000) * count(5000),
    "marks.txt": lambda count: "e" + "\u0301" * count(2_000_000),
    "classes.txt": lambda count: "e" + MARKS * count(500_000),
    "nothing.txt": lambda count: "\0" * count(1_000_000),
    "brackets.md": lambda count: "[" * count(MANY),
    "links.md": lambda count: "[x](" * count(MANY),
    "stars.md": lambda count: "*a" * count(MANY),
    "lines.md": lambda count: "_a " * count(MANY),
    "quotes.md": lambda count: ">" * count(MANY),
    "lists.md": lambda count: "- " * count(MANY),
    "images.md": lambda count: "![](" * count(MANY),
    "ticks.md": lambda count: "`" * count(MANY) + "x" + "`a" * count(MANY),
    "table.md": lambda count: "|a" * count(5000) + "\n" + "|-" * count(5000) + "\n" + "|b" * count(5000),
    "deep.md": lambda count: "\n".join(" " * n + "- a" for n in range(count(500))),
    "names.md": lambda count: "".join(f"[a{n}]: x\n" for n in range(count(MANY))),
    "deep.jsonl": lambda count: "[" * count(1_000_000),
    "number.jsonl": lambda count: '{"id": %s, "contents": "x"}' % ("1" * count(1_000_000)),
    "line.jsonl": lambda count: '{"id": 1, "contents": "%s"}' % ("a" * count(18_000_000)),
    "packed.jsonl.gz": lambda count: gzip.compress(b'{"id": 1, "contents": "' + b"a" * count(200_000_000) + b'"}'),
    "packed.tsv.gz": lambda count: gzip.compress(b"1\tx\ty\n" * count(20_000_000)),
    "quotes.tsv": lambda count: '1\t"' + '""' * count(1_000_000) + '"\tx',
    "xml.docx": lambda count: word("<w:p><w:r><w:t>x</w:t></w:r></w:p>" * count(1_700_000)),
    "empty.docx": lambda count: word("<w:p/>" * count(4_000_000)),
    "span.docx": lambda count: word(table(cell(SPAN) * count(1000))),
    "merged.docx": lambda count: word(table(cell(BEGUN, "x " * 9000) + cell("<w:vMerge/>") * count(20_000))),
    "nested.docx": lambda count: word("<w:tbl><w:tr><w:tc>" * count(5000)),
    "laughs.docx": lambda _count: word("<w:p><w:r><w:t>&j;</w:t></w:r></w:p>", laughs()),
    "packed.pdf": lambda count: pdf(b"(x) Tj " * count(20_000_000), packed=True),
    "shown.pdf": lambda count: pdf(b"BT /F1 12 Tf (x) Tj ET " * count(500_000), packed=True),
    "pages.pdf": lambda count: pdf(b"BT /F1 12 Tf (oats) Tj ET", pages=count(50_000)),
    "brackets.pdf": lambda count: pdf(b"BT " + b"(" * count(200_000)),
    "lists.pdf": lambda count: pdf(b"BT " + b"[" * count(200_000)),
    "objects.pdf": lambda count: b"%PDF-1.4\n" + b"1 0 obj << " * count(100_000),
    "scan.pdf": lambda count: scan(count(20_000)),
    "line.csv": lambda count: "a" * count(18_000_000),
    "columns.csv": lambda count: "a," * count(1_000_000) + "\n" + "1," * count(1_000_000),
    "names.csv": lambda count: (
        ",".join(f"{'name ' * 15}{n}" for n in range(count(5000))) + ("\n" + "1," * count(5000)) * 500
    ),
    "quote.csv": lambda count: "a,b\n" + '"x' * count(1_000_000),
    "columns.xlsx": lambda count: workbook(f'<row r="1">{CELL * count(1_000_000)}</row>'),
    "corners.xlsx": lambda count: workbook(numbered(count(20_000), "XFD")),
    "strings.xlsx": lambda count: workbook(
        f"<row>{STRING * 100}</row>" * 200, f"<si><t>{'oats ' * count(20_000)}</t></si>"
    ),
    "laughs.xlsx": lambda _count: workbook(f"<row>{STRING}</row>", "<si><t>&j;</t></si>", laughs()),
    "shapes.pptx": lambda count: slides(shape("oats") * count(130_000)),
    "laughs.pptx": lambda _count: slides(shape("&j;"), laughs()),
    "nested.eml": lambda count: nested(count(20_000)),
    "forwarded.eml": lambda count: forwarded(count(20_000)),
    "quoted.eml": lambda count: mail(QUOTED, "=" * count(5_000_000)),
    "headers.eml": lambda count: mail("X: y\n" * count(1_000_000)),
    "folded.eml": lambda count: mail("To: x" + ",\n ann@example.org" * count(500_000)),
    "type.eml": lambda count: mail("Content-Type: text/plain" + "; a*0*=utf-8''%61" * count(200_000)),
    "spine.epub": lambda count: book(
        "".join(map(item, range(count(MANY)))), _references(count(MANY)), "<p>oats" * count(20_000)
    ),
    "laughs.epub": lambda _count: book(item(0), _references(1) + "&j;", "<p>oats", laughs()),
}
# Kinds that are like those above to the readers: tests read smaller ones of these.
SIMILAR_BOMBS: dict[str, Content] = {
    "classes.html": lambda count: f"<title>e{MARKS * count(500_000)}</title><h1>e{MARKS * count(500_000)}</h1>oats",
    "classes.eml": lambda count: mail(f"To: e{MARKS * count(500_000)}", "e" + MARKS * count(500_000)),
    "classes.csv": lambda count: f"e{MARKS * count(500_000)},item\n12,oats\n13,e{MARKS * count(500_000)}",
    "rows.html": lambda count: "<table>" + "<tr><td>x<td>y<td>z" * count(MANY),
    "cells.docx": lambda count: word(table(cells(count(MANY)) * 2)),
    "frames.html": lambda count: "<iframe>x" * count(MANY),
    "forms.html": lambda count: "<form><input>" * count(MANY),
    "anchors.html": lambda count: "<a href=x>y" * count(MANY),
    "drawings.html": lambda count: "<svg><g>" * count(MANY),
    "scripts.html": lambda count: "<script>" * count(MANY),
    "terms.html": lambda count: "<dl><dt>x<dd>" * count(MANY),
    "data.html": lambda count: "<![CDATA[" * count(MANY),
    "tildes.md": lambda count: "~~~\n" * count(MANY),
    "slashes.md": lambda count: "\\" * count(1_000_000),
    "tabs.tsv": lambda count: "\t" * count(1_000_000),
    "rows.tsv": lambda count: "1\tx\n" * count(1_000_000),
    "words.docx": lambda count: word("<w:p><w:r><w:t>" + "word " * count(2_000_000) + "</w:t></w:r></w:p>"),
    "parts.docx": lambda count: parts(count(60_000), b""),
    "zeros.docx": lambda count: parts(4, bytes(count(250_000_000))),
    "quotes.csv": lambda count: 'a,b\n"' + '""' * count(1_000_000) + '",x',
    "commas.csv": lambda count: ("," * 16_000 + "\n") * count(300),
    "corner.xlsx": lambda _count: workbook('<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'),
    "gap.xlsx": lambda _count: workbook('<row r="1000000000000"><c><v>1</v></c></row>'),
    "packed.xlsx": lambda count: workbook(f"<row>{CELL * 10}</row>" * count(1_100_000)),
    "cell.xlsx": lambda count: workbook(
        f'<row><c t="inlineStr"><is><t>{"oats " * count(30_000_000)}</t></is></c></row>'
    ),
    "rows.pptx": lambda count: slides(grid(count(20_000))),
    "text.pptx": lambda count: slides(shape("oats " * count(5_000_000))),
    "groups.pptx": lambda _count: slides("<p:grpSp><p:nvGrpSpPr/><p:grpSpPr/>" * 200 + "</p:grpSp>" * 200),
    "deep.pptx": lambda count: slides("<p:grpSp>" * count(100_000)),
    "parts.eml": lambda count: mail(MIXED, "--b\n\noats\n" * count(300_000)),
    "soft.eml": lambda count: mail(QUOTED, "=3D=\n" * count(1_000_000)),
    "words.eml": lambda count: mail("To: " + "=?utf-8?q?=61?= " * count(500_000)),
    "self.epub": lambda _count: book(item(0, "a.opf") + item(1, "META-INF/container.xml"), _references(2)),
    "packed.epub": lambda count: book(item(0), _references(1), "<p>oats" * count(25_000_000)),
}


def write_bomb(folder: Path, name: str, share: float = 1.0) -> Path:
    """The document of this name, written into a folder; a smaller one with a `share` of what it repeats."""
    content = {**BOMBS, **SIMILAR_BOMBS}[name](lambda most: max(1, round(share * most)))
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / name
