"""HTML, and whatever is turned into it: headings, paragraphs, list items and table rows, without scripts and menus."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bs4 import BeautifulSoup
from bs4.element import NavigableString, Tag

from assistant.library.chunks import Block
from assistant.library.readers._text import load_text, tidy, title_of

SUFFIXES = (".html", ".htm", ".xhtml")
RECORDS = False
UNREAD = ["script", "style", "noscript", "template", "nav", "svg", "button", "select", "textarea", "iframe", "head"]
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
PIECES = (
    *HEADINGS,
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


def read(path: Path) -> Iterator[Block]:
    """The paragraphs, under the page's title and the heading that they follow.

    Raises:
        LibraryError: the file is binary.
    """
    return blocks(load_text(path), title_of(path))


def blocks(markup: str, title: str) -> Iterator[Block]:
    """The same for HTML text; `title` is used where the page has none of its own."""
    soup = BeautifulSoup(f"<div>{markup}</div>", "html.parser")
    title = _own_title(soup) or title
    for unread in soup.find_all(UNREAD):
        unread.decompose()
    for line_break in soup.find_all("br"):
        line_break.replace_with("\n")
    heading = title
    for tag in soup.find_all(PIECES):
        text = tidy(_own_text(tag))
        if tag.name in HEADINGS:
            heading = f"{title} - {text}" if text and text != title else title
        elif text and (tag.name == "tr" or not tag.find_parent("tr")):
            yield Block(text, heading)


def _own_title(soup: BeautifulSoup) -> str:
    named = soup.find("title") or soup.find("h1")
    return tidy(named.get_text(" ")) if named else ""


def _own_text(tag: Tag) -> str:
    """The text of a piece without that of the pieces inside it, which come by themselves."""
    if tag.name == "tr":
        return " | ".join(tidy(cell.get_text(" ")) for cell in tag.find_all(["td", "th"]))
    return "".join(_parts(tag))


def _parts(tag: Tag) -> Iterator[str]:
    for child in tag.children:
        if isinstance(child, Tag):
            yield from [" "] if child.name in PIECES else _parts(child)
        elif type(child) is NavigableString:
            yield child
