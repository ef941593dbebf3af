"""PDF: the text that it carries, page by page, rows of tables by themselves ("Item: Oats; Price: 12").

A scan carries none (`library/scans.py` reads it).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

from pypdfium2 import PdfDocument, PdfiumError, PdfTextPage, raw

from assistant.errors import LibraryError
from assistant.library.pdf_headings import Heading, Line, heading_range, headings_by_height, lines_of, outline_of
from assistant.library.pdf_tables import Rows, table_range, tables_of
from assistant.library.readers.shared.scan import ScanError
from assistant.library.readers.shared.tables import lines as named_rows
from assistant.library.readers.shared.text import Piece, paragraphs, tidy, title_line, title_of, under_headings
from assistant.protocols import Progress, silent
from assistant.text.chunks import Block
from assistant.text.sentences import sentences

SUFFIXES = (".pdf",)
RECORDS = False
# So many lines at either end of a page may be a running head or foot, in a document of so many pages.
RUNNING_LINES = 3
RUNNING_PAGES = 3
# What goes on for longer on the next page is no sentence but a table.
SENTENCE_CHARS = 1000
PAGES_MOST = 20_000
# Arabic and Hebrew letters in the shapes that they have within words, as PDFs have them, and as people type them.
_SHAPES = (*range(0xFB1D, 0xFDFE), *range(0xFE70, 0xFEFD))
_LETTERS = {shape: unicodedata.normalize("NFKC", chr(shape)) for shape in _SHAPES}
_ARABIC = re.compile("[\u0600-\u06ff\ufb50-\ufdfd\ufe70-\ufefc]{2,}")
_HYPHEN = re.compile(r"(?<=[a-zà-ÿ])-\n(?=[a-zà-ÿ])")
# What PDFium has for the hyphen and the line's end within a word.
_DIVIDED = "\ufffe"
_ENDED = (".", "!", "?", ":", "…", "。", "！", "？", '"', "”", "’", "»", ")")
_DIGITS = re.compile(r"\d+")
# Characters without width: a paragraph of nothing else says nothing.
_WITHOUT_WIDTH = "\u200b\u200c\u200d\u2060\ufeff"
# Without anything around it, a number may as well be a sum or a year.
_BARE_NUMBER = re.compile(r"\s*-?\d{1,4}\s*")
_PAGE_NUMBER = re.compile(
    r"""[\s|–—-]*+ (?:page|p\.)? \s*+
    (?: \d{1,4} | (?=[ivxl]) (?:xc|xl|l?x{0,3}) (?:ix|iv|v?i{0,3}) )
    (?: \s* (?:/|of) \s* \d{1,4} )? [\s|–—-]*""",
    re.IGNORECASE | re.VERBOSE,
)


class Page(NamedTuple):
    """The text of a page with what else is known of it: its headings, in order, and its tables."""

    text: str
    headings: Sequence[Heading] = ()
    tables: Sequence[Rows] = ()


def read(path: Path) -> Iterator[Block]:
    """The paragraphs under their headings, with the pages that they begin on.

    A sentence that runs on over a page's end is joined.

    Raises:
        ScanError: it carries no text.
        LibraryError: the file is encrypted or broken.
    """
    return read_with_progress(path, silent)


def read_with_progress(path: Path, progress: Progress) -> Iterator[Block]:
    """The same as `read`; `progress` is told pages that have text.

    Raises:
        ScanError, LibraryError: as `read`.
    """
    title, pages = pages_of(path, progress)
    yield from blocks_of(title, pages)


def pages_of(path: Path, progress: Progress = silent) -> tuple[str, list[Page]]:
    """The title of a document, and its pages; `progress` is told these.

    Raises:
        LibraryError: the file is encrypted or broken.
    """
    try:
        with PdfDocument(path) as document:
            if len(document) > PAGES_MOST:
                raise LibraryError(f"it has more than {PAGES_MOST:,} pages; split it up")
            title = title_line(document.get_metadata_value("Title")) or title_of(path)
            return title, _pages(document, progress)
    except (PdfiumError, ValueError) as error:
        if getattr(error, "err_code", None) == raw.FPDF_ERR_PASSWORD:
            raise LibraryError("it is encrypted; save a copy without a password") from error
        raise LibraryError(f"it is not a PDF that can be read ({error})") from error


def blocks_of(title: str, pages: Sequence[Page]) -> Iterator[Block]:
    """The blocks that the pages make.

    Raises:
        ScanError: they carry no text.
    """
    bodies = _without_margins([page.text for page in pages])
    pieces_by_page = [
        list(_pieces(text, n, page.headings, page.tables))
        for n, (text, page) in enumerate(zip(bodies, pages, strict=True), 1)
    ]
    if not any(pieces_by_page):
        raise ScanError("it has no text, only pictures of its pages, which OCR may read")
    _join(pieces_by_page)
    yield from under_headings(chain.from_iterable(pieces_by_page), title)


def text_of(page: PdfTextPage) -> str:
    """The text of a page, a line a line; a word that two lines share PDFium gives on one."""
    text: str = page.get_text_range()
    if _ARABIC.search(text):
        text = _leftward(page)
    return text.replace("\r\n", "\n").replace(_DIVIDED, "-\n").translate(_LETTERS)


def _leftward(page: PdfTextPage) -> str:
    """The text of a page with words in Arabic letters, some of which PDFium gives from left to right, as they stand."""
    chars = [chr(raw.FPDFText_GetUnicode(page, n)) for n in range(page.count_chars())]
    for word in _ARABIC.finditer("".join(chars)):
        first, last = (page.get_charbox(n)[0] for n in (word.start(), word.end() - 1))
        if first < last:
            chars[word.start() : word.end()] = reversed(word[0])
    return "".join(chars)


def _pages(document: PdfDocument, progress: Progress) -> list[Page]:
    pages, lines = list[Page](), dict[int, list[Line]]()
    headings, read_count = outline_of(document), 0
    for n in range(1, len(document) + 1):
        page = document[n - 1]
        text_page = page.get_textpage()
        pages.append(Page(text_of(text_page), (), tables_of(text_page)))
        lines[n] = [] if headings else list(lines_of(text_page))
        page.close()
        read_count += bool(pages[-1].text.strip())
        progress(read_count, len(document))
    headings = headings or headings_by_height(lines)
    return [page._replace(headings=headings.get(n, ())) for n, page in enumerate(pages, 1)]


def _pieces(text: str, page: int, headings: Sequence[Heading], tables: Sequence[Rows]) -> Iterator[Piece]:
    """The headings, paragraphs and rows of a page.

    A heading that isn't found there begins where the one before it ends, and a table that isn't stays text.
    """
    lines, next_line = text.split("\n"), 0
    tables_by_line = {
        line_range.start: (line_range.stop, table) for table in tables if (line_range := table_range(table, lines))
    }
    for heading in headings:
        line_range = heading_range(heading.text, lines, next_line)
        yield from _between(lines, next_line, line_range.start, tables_by_line, page)
        yield Piece(tidy(heading.text), heading.level, page=page)
        next_line = line_range.stop
    yield from _between(lines, next_line, len(lines), tables_by_line, page)


def _between(
    lines: Sequence[str], start: int, end: int, tables: Mapping[int, tuple[int, Rows]], page: int
) -> Iterator[Piece]:
    """What stands in these lines, tables that lie among them as their rows."""
    for first, (last, rows) in sorted(tables.items()):
        if start <= first < last <= end:
            yield from _paragraphs(lines[start:first], page)
            yield from (Piece(row.text, unit=True, page=page) for row in named_rows(rows))
            start = last
    yield from _paragraphs(lines[start:end], page)


def _paragraphs(lines: Sequence[str], page: int) -> Iterator[Piece]:
    found = paragraphs(_HYPHEN.sub("", "\n".join(lines)))
    return (Piece(paragraph, page=page) for paragraph in found if paragraph.strip(_WITHOUT_WIDTH + " "))


def _without_margins(pages: list[str]) -> list[str]:
    """The pages without their numbers and what repeats at their ends."""
    headless = _headless([page.strip().split("\n") for page in pages])
    footless = _headless([lines[::-1] for lines in headless])
    return ["\n".join(reversed(lines)) for lines in footless]


def _headless(pages: list[list[str]]) -> list[list[str]]:
    running, leads = _running(pages), _leads(pages)
    bodies = [_from_text_on(lines, running, n, leads) for n, lines in enumerate(pages)]
    # Tickets, one a page, are alike from head to foot.
    return bodies if any(bodies) else [_from_text_on(lines, (), n, leads) for n, lines in enumerate(pages)]


def _running(pages: list[list[str]]) -> set[str]:
    """What most pages have among their first lines, but for the numbers in it."""
    if len(pages) < RUNNING_PAGES:
        return set()
    heads = [set(map(_without_digits, lines[:RUNNING_LINES])) for lines in pages]
    counts = Counter(head for page_heads in heads for head in page_heads)
    return {head for head, count in counts.items() if count > len(pages) / 2 and any(map(str.isalpha, head))}


def _leads(pages: list[list[str]]) -> set[int]:
    """By how much bare numbers among the first lines are ahead of their pages, where two pages have the same."""
    leads = [
        {int(line) - page for line in lines[:RUNNING_LINES] if _BARE_NUMBER.fullmatch(line)}
        for page, lines in enumerate(pages)
    ]
    return {lead for lead, count in Counter(chain.from_iterable(leads)).items() if count > 1}


def _is_page_number(line: str, page: int, leads: Collection[int]) -> bool:
    """Whether a line says the number of its page; a bare number does where it goes up with the pages."""
    if _BARE_NUMBER.fullmatch(line):
        return int(line) - page in leads
    return _PAGE_NUMBER.fullmatch(line) is not None


def _from_text_on(lines: list[str], running: Collection[str], page: int, leads: Collection[int]) -> list[str]:
    has_number = False
    for n, line in enumerate(lines[:RUNNING_LINES]):
        is_number = not has_number and _is_page_number(line, page, leads)
        if line.strip() and not is_number and _without_digits(line) not in running:
            return lines[n:]
        has_number = has_number or is_number
    return lines[RUNNING_LINES:]


def _without_digits(line: str) -> str:
    return _DIGITS.sub("#", tidy(line))


def _join(pages: list[list[Piece]]) -> None:
    """Move the rest of a sentence that a page's end breaks to the page that it begins on."""
    for page, next_page in pairwise(filter(None, pages)):
        # `page` was emptied where the page before it needed all of it.
        if page and not page[-1].text.endswith(_ENDED) and _runs_on(page[-1]) and _runs_on(next_page[0]):
            remainder = _sentence_at(next_page[0].text)
            page[-1] = page[-1]._replace(text=tidy(_HYPHEN.sub("", f"{page[-1].text}\n{remainder}")))
            next_page[:1] = _paragraphs([next_page[0].text[len(remainder) :]], next_page[0].page)


def _runs_on(piece: Piece) -> bool:
    """Whether it is text that may go on over a page's end, and no heading or row of a table."""
    return not piece.level and not piece.unit


def _sentence_at(text: str) -> str:
    """The sentence that `text` begins with; nothing where that doesn't end."""
    start = text[:SENTENCE_CHARS]
    spans = sentences(start)  # none where the first characters are all without width
    sentence = start[: spans[0].end] if spans else ""
    return sentence if sentence.endswith(_ENDED) else ""
