"""HTML, and whatever is turned into it: headings, paragraphs, list items and table rows, without scripts and menus."""

from __future__ import annotations

from codecs import lookup
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path

from bs4 import BeautifulSoup
from bs4.dammit import EncodingDetector
from bs4.element import NavigableString, Tag

from assistant.library.readers.shared.text import WESTERN, Piece, load_text, row_line, tidy, title_of, under_headings
from assistant.text.chunks import Block

SUFFIXES = (".html", ".htm", ".xhtml")
RECORDS = False
UNREAD = ["script", "style", "noscript", "template", "nav", "svg", "button", "select", "textarea", "iframe", "head"]
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
CELLS = ("td", "th")
PIECES = (
    *HEADINGS,
    *CELLS,
    "p",
    "li",
    "tr",
    "pre",
    "blockquote",
    "dt",
    "dd",
    "figcaption",
    "div",
    "section",
    "article",
    "body",
)
# What is declared is read as browsers read it: as the larger set of characters that pages use under the old name.
_LARGER = {
    "iso8859-1": WESTERN,
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "shift_jis": "cp932",
}
# Other codecs that Python has are none of a page; UTF-8 and UTF-16 are told by the bytes, whatever is declared.
_CHARSETS = tuple("cp125 cp866 cp874 cp932 cp949 cp950 iso8859 koi8 mac- gb big5 euc tis".split())


def read(path: Path) -> Iterator[Block]:
    """The paragraphs, under the page's title and the heading that they follow.

    Raises:
        LibraryError: the file is binary.
    """
    return blocks(load_text(path, _declared), title_of(path))


def blocks(markup: str, title: str) -> Iterator[Block]:
    """The same for HTML text; `title` is used where the page has none of its own."""
    soup = BeautifulSoup(f"<div>{markup}</div>", "html.parser")
    named = soup.find("title")
    own_title = tidy(named.get_text(" ")) if named else ""
    for unread in soup.find_all(UNREAD):
        unread.decompose()
    for line_break in soup.find_all("br"):
        line_break.replace_with("\n")
    yield from under_headings(_pieces(soup), own_title or _first_heading(soup) or title)


def _declared(data: bytes) -> str:
    try:
        name = lookup(EncodingDetector.find_declared_encoding(data, is_html=True) or "").name
    except (LookupError, ValueError):  # no encoding, or no name
        return WESTERN
    return _LARGER.get(name, name if name.startswith(_CHARSETS) else WESTERN)


def _first_heading(soup: BeautifulSoup) -> str:
    """What the first heading says itself; one that was never closed has the rest of the page inside."""
    first = soup.find("h1")
    tags = [first, *first.find_all(PIECES)] if first else []
    return next(filter(None, map(_text, tags)), "")


def _pieces(soup: BeautifulSoup) -> Iterator[Piece]:
    lines = _row_lines(soup)
    for tag in soup.find_all(PIECES):
        row = tag if tag.name == "tr" else _around(tag, "tr")
        if id(row) not in lines:
            yield Piece(_text(tag), tag.name in HEADINGS)
        elif tag is row:
            yield Piece(lines[id(row)], False)


def _row_lines(soup: BeautifulSoup) -> dict[int, str]:
    """The rows that are read as one line, by identity.

    A row with a table, a heading or several paragraphs in one cell lays out the page, and is read as its contents.
    """
    held: Counter[int] = Counter()
    for tag in soup.find_all(("table", *PIECES)):
        if tag.name not in CELLS and (cell := _around(tag, *CELLS)):
            held[id(cell)] += 2 if tag.name in {"table", *HEADINGS} else bool(_text(tag))
    rows: dict[int, list[Tag]] = defaultdict(list)
    for cell in soup.find_all(CELLS):
        if row := _around(cell, "tr"):
            rows[id(row)].append(cell)
    return {
        row: row_line(_text(cell, (*CELLS, "tr")) for cell in cells)
        for row, cells in rows.items()
        if all(held[id(cell)] <= 1 for cell in cells)
    }


def _around(tag: Tag, *names: str) -> Tag | None:
    """The nearest of these that `tag` is in; `find_parent` takes several times as long."""
    return next((one for one in tag.parents if one.name in names), None)


def _text(tag: Tag, apart: Collection[str] = PIECES) -> str:
    """The text of a piece without that of the pieces inside it, which come by themselves."""
    return tidy("".join(_parts(tag, apart)))


def _parts(tag: Tag, apart: Collection[str]) -> Iterator[str]:
    for child in tag.children:
        if isinstance(child, Tag):
            space = " " if child.name in PIECES else ""
            yield space
            if child.name not in apart:
                yield from _parts(child, apart)
            yield space
        elif type(child) is NavigableString:
            yield child
