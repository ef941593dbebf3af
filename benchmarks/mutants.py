"""Small real documents of the formats that are archives or have parts, with some of their bytes and members changed."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache
from random import Random
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import docx
import openpyxl
import pptx

from benchmarks import bombs

# What is put in the place of other bytes: ends and beginnings of tags, odd numbers, entities, other encodings.
PIECES = (
    b"<", b">", b"</", b"/>", b'"', b"&", b"&a;", b"<!--", b"]]>", b"\x00", b"\xff\xfe", b"-1", b"99999999999999999999",
    b"NaN", b"1e999", b"", b"xmlns=", b"<?xml version='1.0' encoding='utf-16'?>", b"\xf0\x9f\x98\x80",
    b"../../etc/passwd",
)  # fmt: skip
CHANGES, LONGEST = 4, 40  # at most so many changes of a member, and so many bytes that one takes away


def mutant(rng: Random) -> tuple[str, bytes]:
    """A suffix, and a document of that format which is not quite as its program writes it."""
    suffix = rng.choice(sorted(_SEEDS))
    original = _seed(suffix)
    if not original.startswith(b"PK"):
        return suffix, _changed(original, rng)
    with ZipFile(io.BytesIO(original)) as parts:
        members = [(name, parts.read(name)) for name in parts.namelist()]
    for _ in range(rng.randint(1, 3)):
        rng.choice((_change, _change, _change, _drop, _double, _swap))(members, rng)
    file = io.BytesIO()
    with ZipFile(file, "w") as parts:
        for name, content in members:
            parts.writestr(ZipInfo(name), content, ZIP_DEFLATED)  # without the time of its writing
    packed = file.getvalue()
    return suffix, packed if rng.random() < 0.9 else _changed(packed, rng)


Members = list[tuple[str, bytes]]


def _change(members: Members, rng: Random) -> None:
    position = rng.randrange(len(members))
    members[position] = members[position][0], _changed(members[position][1], rng)


def _drop(members: Members, rng: Random) -> None:
    if len(members) > 1:
        members.pop(rng.randrange(len(members)))


def _double(members: Members, rng: Random) -> None:
    members.append(rng.choice(members))


def _swap(members: Members, rng: Random) -> None:
    """One member has the content of another."""
    position = rng.randrange(len(members))
    members[position] = members[position][0], rng.choice(members)[1]


def _changed(content: bytes, rng: Random) -> bytes:
    for _ in range(rng.randint(1, CHANGES)):
        start = rng.randint(0, len(content))
        end = start + rng.choice((0, 1, rng.randint(1, LONGEST)))
        replacement = rng.choice((rng.choice(PIECES), rng.randbytes(2), content[start:end] * 3))
        content = content[:start] + replacement + content[end:]
    return content


def _docx() -> bytes:
    file, document = io.BytesIO(), docx.Document()
    document.add_heading("Oats")
    document.add_paragraph("Oats are a cereal.")
    table = document.add_table(2, 3)
    for n, text in enumerate(("Item", "Price", "Since", "Oats", "12", "May")):
        table.cell(n // 3, n % 3).text = text
    document.save(file)
    return file.getvalue()


def _xlsx() -> bytes:
    file, book = io.BytesIO(), openpyxl.Workbook()
    for row in (("Item", "Price", "Share"), ("Oats", 12.5, 0.25), ("Tea", None, "=B2*2")):
        book.worksheets[0].append(row)
    book.create_sheet("Notes").append(["oats"])
    book.save(file)
    return file.getvalue()


def _pptx() -> bytes:
    file, show = io.BytesIO(), pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[1])
    slide.shapes.title.text = "Oats"
    slide.placeholders[1].text = "Oats are a cereal."
    slide.shapes.add_table(2, 2, 0, 0, 9, 9).table.cell(0, 0).text = "Item"
    slide.notes_slide.notes_text_frame.text = "Say it slowly."
    show.save(file)
    return file.getvalue()


def _epub() -> bytes:
    chapter = "<html><head><title>Oats</title></head><body><h1>Oats</h1><p>Oats are a cereal.</p></body></html>"
    return bombs.book(bombs.item(0), '<itemref idref="i0"/>', chapter)


def _eml() -> bytes:
    parts = (
        "--b\nContent-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n<p>Oats=3D</p>\n"
    )
    parts += '--b\nContent-Disposition: attachment; filename="=?utf-8?q?a=C3=A9.txt?="\n\noats\n--b--\n'
    return bombs.mail(f"{bombs.MIXED}\nTo: =?utf-8?b?w6k=?= <bob@example.org>\nDate: Mon, 2 Mar 2026", parts).encode()


_SEEDS: dict[str, Callable[[], bytes]] = {
    ".docx": _docx,
    ".xlsx": _xlsx,
    ".pptx": _pptx,
    ".epub": _epub,
    ".eml": _eml,
    ".pdf": lambda: bombs.pdf(b"BT /F1 12 Tf (Oats are a cereal.) Tj ET"),
}


@cache
def _seed(suffix: str) -> bytes:
    return _SEEDS[suffix]()
