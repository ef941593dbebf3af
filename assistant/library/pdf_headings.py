"""The headings of a PDF: its outline, or else the lines that are larger than its text; by PDFium."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import NamedTuple

import pypdfium2
from pypdfium2 import PdfDocument, PdfiumError, PdfTextPage

_LOG = logging.getLogger(__name__)
# No outline that people read has more entries.
ENTRIES_MOST = 20_000
# A heading is so many times as high as most of the text, and so long. Where such lines have as large a share of
# all characters, none is: a poster, or a page of figures.
HEIGHT_RATIO, LETTERS_LEAST, CHARS_MOST, SHARE_MOST = 1.15, 3, 120, 0.25
LEVELS = 4
PAGE_CHARS_MOST = 100_000
# A line may have so many words more than the outline says: "3.2", "Chapter 3:".
NUMBERING_WORDS = 3


class Heading(NamedTuple):
    """A heading and its level, from 1 for the outermost."""

    level: int
    text: str


class Line(NamedTuple):
    """A line of a page; it is as high, in points, as the lower one of its first and last character."""

    text: str
    height: float


def outline_of(document: PdfDocument) -> Mapping[int, list[Heading]]:
    """The headings of each page that the outline names some of, in order; pages are counted from 1."""
    pages: dict[int, list[Heading]] = defaultdict(list)
    try:
        for entry in islice(document.get_toc(), ENTRIES_MOST):
            destination = entry.get_dest()
            page = destination.get_index() if destination else None
            if page is not None and entry.get_title().strip():
                pages[page + 1].append(Heading(entry.level + 1, entry.get_title()))
    except (PdfiumError, ValueError) as error:  # it is read without
        _LOG.info("an outline can't be read to its end: %s", error)
    return dict(pages)


def lines_of(page: PdfTextPage) -> Iterator[Line]:
    """The lines of a page with their heights."""
    char_indexes: list[int] = []
    text = ""
    for n in range(min(page.count_chars(), PAGE_CHARS_MOST)):
        char = chr(pypdfium2.raw.FPDFText_GetUnicode(page, n))
        if char not in "\r\n":
            text += char
            char_indexes += [] if char.isspace() else [n]
        elif char_indexes:
            yield Line(text.strip(), _height(page, char_indexes))
            char_indexes, text = [], ""
    if char_indexes:
        yield Line(text.strip(), _height(page, char_indexes))


def headings_by_height(pages: Mapping[int, Sequence[Line]]) -> Mapping[int, list[Heading]]:
    """The headings of each page that has some, told by their lines being larger than most of the text.

    Args:
        pages: the lines of each page, by its number.
    """
    chars_by_height = Counter[float]()
    for line in (line for lines in pages.values() for line in lines):
        chars_by_height[line.height] += len(line.text)
    if not chars_by_height:
        return {}
    min_height = HEIGHT_RATIO * chars_by_height.most_common(1)[0][0]
    heading_lines = {n: list(_headings(lines, min_height)) for n, lines in pages.items()}
    if sum(len(line.text) for lines in heading_lines.values() for line in lines) > SHARE_MOST * chars_by_height.total():
        return {}
    heights = sorted({line.height for lines in heading_lines.values() for line in lines}, reverse=True)
    levels = {height: min(n, LEVELS) for n, height in enumerate(heights, 1)}
    return {
        n: [Heading(levels[line.height], line.text) for line in lines] for n, lines in heading_lines.items() if lines
    }


def heading_range(heading: str, lines: Sequence[str], start: int) -> range:
    """The lines that say a heading, from `start` on: one, or two if it is broken; an empty range where none does.

    They may have a number before it that the outline leaves out.
    """
    heading_letters = _letters(heading)
    for n in range(start, len(lines)):
        for end in (n + 1, n + 2):
            line = " ".join(lines[n:end])
            if heading_letters and _letters(line).endswith(heading_letters) and _is_numbering(line, heading):
                return range(n, min(end, len(lines)))
    return range(start, start)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _is_numbering(line: str, heading: str) -> bool:
    """Whether all that a line has more than the heading, at its beginning, is a number as sections have it."""
    leading_words = line.split()[: max(len(line.split()) - len(heading.split()), 0)]
    extra_letters = len(_letters(line)) - len(_letters(heading))
    return extra_letters == 0 or (
        len(leading_words) <= NUMBERING_WORDS and any(_is_number(word) for word in leading_words)
    )


def _is_number(word: str) -> bool:
    return any(map(str.isdigit, word)) or len(_letters(word)) == 1


def _headings(lines: Sequence[Line], min_height: float) -> Iterator[Line]:
    """The lines that are as high as that, those of one height that follow each other as one."""
    for height, run in groupby(lines, key=lambda line: line.height):
        text = " ".join(line.text for line in run)
        if height >= min_height and len(_letters(text)) >= LETTERS_LEAST and len(text) <= CHARS_MOST:
            yield Line(text, height)


def _height(page: PdfTextPage, char_indexes: Sequence[int]) -> float:
    boxes = (page.get_charbox(n, loose=True) for n in (char_indexes[0], char_indexes[-1]))
    return min(round(float(top - bottom), 1) for _, bottom, _, top in boxes)
