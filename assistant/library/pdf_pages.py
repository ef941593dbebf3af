"""A page of a PDF as a picture, with the lines that say a quote: by PDFium, within limits of time and memory."""

from __future__ import annotations

import io
import unicodedata
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from threading import BoundedSemaphore, Event
from typing import Any

import pypdfium2
from pypdfium2 import PdfBitmap, PdfDocument, PdfiumError, PdfPage, PdfTextPage

from assistant.errors import LibraryError
from assistant.library.apart import answer_apart
from assistant.library.readers.shared.tables import values
from assistant.protocols import Progress, silent
from assistant.text.spots import LEFTWARD, MIN_SHARE, QuoteLocation, locate_quote

SECONDS = 10.0  # of a processor, for a page
PAGES_AT_ONCE = 2  # pages of all users that are drawn at a time
# Pixels: twice what a column of text needs on a screen. A page that is longer is drawn smaller.
WIDTH, HEIGHT = 1400, 2400
# A sentence is sought on so many pages from the one that its passage begins on.
PAGES_TRIED = 3
# With such a share of its words, the quote isn't sought on.
SURE_SHARE = 0.9
CHARS_MOST = 100_000
# In heights of a line: a gap that is one between columns, and how far numbers go forth and back, which are written from
# left to right in a line from right to left.
GAP, NUMBER = 3.0, 6.0

# Shares of the page's width and height: left, top, width, height.
Box = tuple[float, float, float, float]
_LANES = BoundedSemaphore(PAGES_AT_ONCE)


@dataclass(frozen=True, slots=True)
class Picture:
    """A page, drawn: its `number`, from 1, among so many `pages`; its size in pixels; and the picture, a PNG in base64.

    `boxes` are where the quote stands, a line each; none where less than half of its words are on the page. `share` is
    which share of them is.
    """

    number: int
    pages: int
    width: int
    height: int
    png: str
    boxes: tuple[Box, ...]
    share: float


def page_picture(path: Path, number: int, quote: str) -> Picture:
    """The page that a quote stands on: the one of this number, from 1, or one of the next few that has more of it.

    Raises:
        LibraryError: it can't be drawn, or not within the limits; the message is the reason.
    """
    request = {"path": str(path), "number": number, "quote": quote}
    with _LANES:
        reply = answer_apart(__name__, request, SECONDS, Event())
    return Picture(
        **{**reply, "boxes": tuple((left, top, width, height) for left, top, width, height in reply["boxes"])}
    )


def answer(request: dict[str, Any], _progress: Progress = silent) -> dict[str, Any]:
    """What the process apart says: the fields of a `Picture`.

    Raises:
        LibraryError: the page can't be drawn; the message is the reason.
    """
    try:
        with PdfDocument(request["path"]) as document:
            return _picture_fields(document, request["number"], request["quote"])
    except (PdfiumError, ValueError, OSError) as error:
        raise LibraryError("it is not a PDF that can be drawn; it may be damaged or encrypted") from error


def _picture_fields(document: PdfDocument, number: int, quote: str) -> dict[str, Any]:
    if not 1 <= number <= len(document):
        raise LibraryError(f"it has no page {number}")
    number, quote_spots = _best_page(document, number, quote)
    page = document[number - 1]
    bitmap = page.render(scale=_scale(page))
    boxes = _lines(bitmap, page, quote_spots) if quote_spots.share >= MIN_SHARE else []
    buffer = io.BytesIO()
    bitmap.to_pil().save(buffer, "PNG")
    return {
        "number": number,
        "pages": len(document),
        "width": bitmap.width,
        "height": bitmap.height,
        "png": b64encode(buffer.getvalue()).decode(),
        "boxes": boxes,
        "share": quote_spots.share,
    }


def _best_page(document: PdfDocument, number: int, quote: str) -> tuple[int, QuoteLocation]:
    """The first page that surely has the quote, or that has most of it; the first where none has half."""
    best_number, best_spots = number, QuoteLocation()
    for n in range(number, min(number + PAGES_TRIED, len(document) + 1)):
        words = [word for word, _ in _words(document[n - 1].get_textpage())]
        page_spots = max(
            (locate_quote(text, words) for text in (quote, values(quote))), key=lambda candidate: candidate.share
        )
        if page_spots.share > best_spots.share:
            best_number, best_spots = n, page_spots
        if best_spots.share >= SURE_SHARE:
            break
    return (best_number if best_spots.share >= MIN_SHARE else number), best_spots


def _words(text_page: PdfTextPage) -> Iterator[tuple[str, range]]:
    """The words of a page, each with the places of its characters."""
    start, word = 0, ""
    for n in range(min(text_page.count_chars(), CHARS_MOST)):
        char = chr(pypdfium2.raw.FPDFText_GetUnicode(text_page, n))
        if char.isspace():
            if word:
                yield word, range(start, n)
            start, word = n + 1, ""
        else:
            word += char
    if word:
        yield word, range(start, start + len(word))


def _scale(page: PdfPage) -> float:
    """Pixels for a point of the page."""
    width, height = map(float, page.get_size())
    if min(width, height) <= 0:
        raise LibraryError("its page has no size")
    return float(min(WIDTH / width, HEIGHT / height))


def _lines(bitmap: PdfBitmap, page: PdfPage, quote_spots: QuoteLocation) -> list[Box]:
    """A box for each line of the words that were found; a hyphenated word is one word on two lines."""
    text_page = page.get_textpage()
    words = list(_words(text_page))
    lines: list[_Edges] = []
    leftward = _is_leftward("".join(words[position][0] for position in quote_spots.places))
    for n in chain.from_iterable(words[position][1] for position in quote_spots.places):
        edges = text_page.get_charbox(n, loose=True)
        if edges[0] == edges[2] or edges[1] == edges[3]:
            continue  # it is drawn nowhere, as hyphens that PDFium makes out
        if lines and _in_line(lines[-1], edges, leftward):
            lines[-1] = _union(lines[-1], edges)
        else:
            lines.append(edges)
    return [_box(edges, bitmap, page) for edges in lines]


# Left, bottom, right and top in points, upwards from the foot of the page as it was before it was turned.
_Edges = tuple[float, float, float, float]


def _union(first: _Edges, second: _Edges) -> _Edges:
    return min(first[0], second[0]), min(first[1], second[1]), max(first[2], second[2]), max(first[3], second[3])


def _is_leftward(text: str) -> bool:
    """Whether most of its letters are written from right to left."""
    directions = Counter(map(unicodedata.bidirectional, text))
    return sum(directions[direction] for direction in LEFTWARD) > directions["L"]


def _in_line(line: _Edges, char: _Edges, leftward: bool) -> bool:
    """Whether a character goes on a line: they share half of the lower one's height, and no column is between them."""
    overlap = min(line[3], char[3]) - max(line[1], char[1])
    height = min(line[3] - line[1], char[3] - char[1])
    if leftward:  # its letters differ in height, and numbers in it go back
        line_height = line[3] - line[1]
        is_adjacent = abs(line[0] - char[2]) < NUMBER * line_height
    else:
        is_adjacent = -height < char[0] - line[2] < GAP * height
    return 2 * overlap > height and is_adjacent


def _box(edges: _Edges, bitmap: PdfBitmap, page: PdfPage) -> Box:
    left, bottom, right, top = edges
    to_bitmap, width, height = bitmap.get_posconv(page).to_bitmap, bitmap.width, bitmap.height
    (x0, y0), (x1, y1) = to_bitmap(left, top), to_bitmap(right, bottom)
    return min(x0, x1) / width, min(y0, y1) / height, abs(x1 - x0) / width, abs(y1 - y0) / height
