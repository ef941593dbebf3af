"""Documents that were made to keep a worker busy or to fill the memory: each ends soon, and says why it isn't read."""

from __future__ import annotations

import gzip
import io
import os
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Timer
from zipfile import ZIP_DEFLATED, ZipFile

import docx
import pytest

from assistant.errors import LibraryError
from assistant.library import reading
from assistant.library.passages import passages_of
from assistant.library.readers import read
from assistant.library.reading import allowed, read_apart

SECONDS = 10.0  # of a processor: by the clock it depends on what else it does
MANY = 50_000
DEEP = "nested more than"
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


def cell(properties: str = "", text: str = "oats") -> str:
    return f"<w:tr><w:tc><w:tcPr>{properties}</w:tcPr><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:tc></w:tr>"


def table(rows: str) -> str:
    return f"<w:tbl>{rows}</w:tbl>"


def pdf(stream: bytes, pages: int = 1, packed: bool = False) -> bytes:
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


def made(folder: Path, name: str) -> Path:
    content = BOMBS[name]
    content = content() if callable(content) else content
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / name


@pytest.fixture
def bomb(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    yield made(tmp_path, request.param)
    (tmp_path / request.param).unlink()


def spent() -> float:
    """Seconds of a processor that processes which have ended took."""
    times = os.times()
    return times.children_user + times.children_system


@pytest.mark.skipif(os.name != "posix", reason="counts the seconds of a processor as POSIX has it")
@pytest.mark.parametrize("bomb", BOMBS, indirect=True)
def test_every_bomb_ends_soon(bomb: Path) -> None:
    before = spent()
    try:
        outcome = f"{len(read_apart(bomb, 'd', bomb.name, Event()))} passages"
    except LibraryError as error:
        outcome = str(error)
        assert "\n" not in outcome
    most = SECONDS if bomb.stat().st_size < 200_000 or bomb.name.startswith("line.") else allowed(bomb) + 2
    assert spent() - before < most, outcome


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("div.html", DEEP),
        ("xml.docx", "unpacks to more than 30,000,000 bytes"),
        ("packed.jsonl.gz", "characters"),
    ],
)
def test_the_reason_is_told(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(LibraryError, match=reason):
        read_apart(made(tmp_path, name), "d", name, Event())


def test_what_is_read_apart_is_what_is_read_here(tmp_path: Path) -> None:
    for name, text in {
        "a.html": "<h1>Oats</h1><p>Oats are a cereal. \ud83c\udf3e</p><p>é".encode("utf-16", "surrogatepass").decode(
            "utf-16"
        ),
        "b.jsonl": '{"id": "7", "title": "Oslo", "contents": "Oslo is a city."}\n',
        "c.md": "# Tea\n\n" + "Tea is a drink. " * 300,
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        here = passages_of(read(tmp_path / name), "d", name)
        assert read_apart(tmp_path / name, "d", name, Event()) == here


def test_reading_is_stopped_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Oats are a cereal.\n\n" * 400_000)
    stop = Event()
    Timer(1.0, stop.set).start()
    began = time.perf_counter()
    with pytest.raises(LibraryError, match="was stopped"):
        read_apart(tmp_path / "a.txt", "d", "a.txt", stop)
    assert time.perf_counter() - began < 5


@pytest.mark.skipif(os.name != "posix", reason="limits memory as POSIX has it")
def test_memory_and_time_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("Oats are a cereal.\n\n" * 400_000)
    monkeypatch.setattr(reading, "SECONDS_PER_MEGABYTE", 0.0)
    monkeypatch.setattr(reading, "SECONDS", 1.0)
    with pytest.raises(LibraryError, match="takes too long to read; split it up"):
        read_apart(tmp_path / "a.txt", "d", "a.txt", Event())
    monkeypatch.setattr(reading, "SECONDS", 60.0)
    (tmp_path / "b.tsv.gz").write_bytes(gzip.compress(b'1\t"' + b"a" * 900_000_000))
    with pytest.raises(LibraryError, match=r"takes too much memory|unpacks to more|a line of more"):
        read_apart(tmp_path / "b.tsv.gz", "d", "b.tsv.gz", Event())
