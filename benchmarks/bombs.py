"""Documents that were made to keep a worker busy or to fill the memory, by kind."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import docx

MANY = 50_000
SPAN, BEGUN = '<w:gridSpan w:val="100000000"/>', '<w:vMerge w:val="restart"/>'
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def word(body: str, before: str = "") -> bytes:
    """A Word document of which only the main part is other than Word would write it."""
    whole, changed = io.BytesIO(), io.BytesIO()
    docx.Document().save(whole)
    main = f'<?xml version="1.0"?>{before}<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>'
    with ZipFile(whole) as old, ZipFile(changed, "w", ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, main if name == "word/document.xml" else old.read(name))
    return changed.getvalue()


def parts(count: int, content: bytes) -> bytes:
    """A Word document that holds so many pictures of this content."""
    whole = io.BytesIO()
    docx.Document().save(whole)
    with ZipFile(whole, "a", ZIP_DEFLATED) as changed:
        for n in range(count):
            changed.writestr(f"word/media/{n}.png", content)
    return whole.getvalue()


def cell(properties: str = "", text: str = "oats") -> str:
    """A row of a table with one cell."""
    return f"<w:tr><w:tc><w:tcPr>{properties}</w:tcPr><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:tc></w:tr>"


def table(rows: str) -> str:
    """A table of Word."""
    return f"<w:tbl>{rows}</w:tbl>"


def pdf(stream: bytes, pages: int = 1, packed: bool = False) -> bytes:
    """A PDF whose pages all show this stream."""
    if packed:
        stream = zlib.compress(stream)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] >>" % (pages, b"4 0 R " * pages),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 5 0 R /Resources << /Font << /F1 3 0 R >> >> >>",
        b"<< /Length %d %s>> stream\n%s\nendstream"
        % (len(stream), b"/Filter /FlateDecode " if packed else b"", stream),
    ]
    data, places = b"%PDF-1.4\n", []
    for n, one in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj %s endobj\n" % (n, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    start = len(data)
    return data + b"xref\n0 6\n0000000000 65535 f \n%strailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (
        table,
        start,
    )


def laughs() -> str:
    """Entities that grow tenfold, nine times."""
    grown = "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9))
    return f'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">{grown}]>'


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
}
# kinds that are like those above to the readers
MORE: dict[str, bytes | str | Callable[[], bytes | str]] = {
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
}


def made(folder: Path, name: str) -> Path:
    """The document of this name, written into a folder."""
    content = {**BOMBS, **MORE}[name]
    content = content() if callable(content) else content
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / name
