"""PDF: the text that it carries, page by page, rows of tables by themselves ("Item: Oats; Price: 12").

A scan carries none (`library/scans.py` reads it).
"""

from __future__ import annotations

import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path

from pypdf import PdfReader
from pypdf.errors import PyPdfError
from pypdfium2 import PdfDocument, PdfiumError

from assistant.errors import LibraryError
from assistant.library.pdf_headings import Heading, headings_of, place_of
from assistant.library.pdf_tables import Rows, lines_of, tables_of
from assistant.library.readers.shared.scan import ScanError
from assistant.library.readers.shared.tables import lines as named_rows
from assistant.library.readers.shared.text import Piece, paragraphs, tidy, title_line, title_of, under_headings
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
_HEBREW = re.compile("[\u05d0-\u05ea]")
_HYPHEN = re.compile(r"(?<=[a-zà-ÿ])-\n(?=[a-zà-ÿ])")
_ENDED = (".", "!", "?", ":", "…", "。", "！", "？", '"', "”", "’", "»", ")")
_DIGITS = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(
    r"""[\s|–—-]*+ (?:page|p\.)? \s*+
    (?: \d{1,4} | (?=[ivxl]) (?:xc|xl|l?x{0,3}) (?:ix|iv|v?i{0,3}) )
    (?: \s* (?:/|of) \s* \d{1,4} )? [\s|–—-]*""",
    re.IGNORECASE | re.VERBOSE,
)

# pypdf logs every irregularity of a file that it reads all the same.
logging.getLogger("pypdf").setLevel(logging.ERROR)


def read(path: Path) -> Iterator[Block]:
    """The paragraphs under their headings, with the pages that they begin on.

    A sentence that runs on over a page's end is joined.

    Raises:
        ScanError: it carries no text.
        LibraryError: the file is encrypted or broken.
    """
    try:
        reader = PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            raise LibraryError("it is encrypted; save a copy without a password")
        if len(reader.pages) > PAGES_MOST:
            raise LibraryError(f"it has more than {PAGES_MOST:,} pages; split it up")
        title = title_line(str(reader.metadata.title)) if reader.metadata and reader.metadata.title else title_of(path)
        pages = [page.extract_text().translate(_LETTERS) for page in reader.pages]
        pages = _hebrew_in_order(pages, path)
    except (
        PyPdfError,
        PdfiumError,
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        RecursionError,
    ) as error:
        raise LibraryError(f"it is not a PDF that can be read ({error})") from error
    headings, tables = headings_of(path), tables_of(path)
    texts = [
        list(_pieces(text, n, headings.get(n, ()), tables.get(n, ())))
        for n, text in enumerate(_without_margins(pages), 1)
    ]
    if not any(texts):
        raise ScanError("it has no text, only pictures of its pages, which OCR may read")
    _join(texts)
    yield from under_headings(chain.from_iterable(texts), title)


def _hebrew_in_order(pages: Sequence[str], path: Path) -> list[str]:
    """The pages, those in Hebrew as PDFium reads them: pypdf has full stops and numbers of such lines elsewhere."""
    hebrew = [n for n, text in enumerate(pages) if 2 * len(_HEBREW.findall(text)) > max(sum(map(str.isalpha, text)), 1)]
    if not hebrew:
        return list(pages)
    with PdfDocument(path) as document:
        found = {n: document[n].get_textpage().get_text_range().replace("\r\n", "\n") for n in hebrew}
    return [found.get(n, text) for n, text in enumerate(pages)]


def _pieces(text: str, page: int, headings: Sequence[Heading], tables: Sequence[Rows]) -> Iterator[Piece]:
    """The headings, paragraphs and rows of a page.

    A heading that isn't found there begins where the one before it ends, and a table that isn't stays text.
    """
    lines, done = text.split("\n"), 0
    rows = {place.start: (place.stop, table) for table in tables if (place := lines_of(table, lines))}
    for heading in headings:
        place = place_of(heading.text, lines, done)
        yield from _between(lines, done, place.start, rows, page)
        yield Piece(tidy(heading.text), heading.level, page=page)
        done = place.stop
    yield from _between(lines, done, len(lines), rows, page)


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
    return (Piece(paragraph, page=page) for paragraph in paragraphs(_HYPHEN.sub("", "\n".join(lines))))


def _without_margins(pages: list[str]) -> list[str]:
    """The pages without their numbers and what repeats at their ends."""
    headless = _headless([page.strip().split("\n") for page in pages])
    footless = _headless([lines[::-1] for lines in headless])
    return ["\n".join(reversed(lines)) for lines in footless]


def _headless(pages: list[list[str]]) -> list[list[str]]:
    running = _running(pages)
    bare = [_from_text_on(lines, running) for lines in pages]
    # Tickets, one a page, are alike from head to foot.
    return bare if any(bare) else [_from_text_on(lines, ()) for lines in pages]


def _running(pages: list[list[str]]) -> set[str]:
    """What most pages have among their first lines, but for the numbers in it."""
    if len(pages) < RUNNING_PAGES:
        return set()
    heads = [set(map(_known_by, lines[:RUNNING_LINES])) for lines in pages]
    counts = Counter(head for one in heads for head in one)
    return {head for head, count in counts.items() if count > len(pages) / 2 and any(map(str.isalpha, head))}


def _from_text_on(lines: list[str], running: Collection[str]) -> list[str]:
    numbered = False
    for n, line in enumerate(lines[:RUNNING_LINES]):
        is_number = not numbered and _PAGE_NUMBER.fullmatch(line) is not None
        if line.strip() and not is_number and _known_by(line) not in running:
            return lines[n:]
        numbered = numbered or is_number
    return lines[RUNNING_LINES:]


def _known_by(line: str) -> str:
    return _DIGITS.sub("#", tidy(line))


def _join(pages: list[list[Piece]]) -> None:
    """Move the rest of a sentence that a page's end breaks to the page that it begins on."""
    for before, after in pairwise(filter(None, pages)):
        # `before` was emptied where the page before it needed all of it.
        if before and not before[-1].text.endswith(_ENDED) and _runs_on(before[-1]) and _runs_on(after[0]):
            rest = _sentence_at(after[0].text)
            before[-1] = before[-1]._replace(text=tidy(_HYPHEN.sub("", f"{before[-1].text}\n{rest}")))
            after[:1] = _paragraphs([after[0].text[len(rest) :]], after[0].page)


def _runs_on(piece: Piece) -> bool:
    """Whether it is text that may go on over a page's end, and no heading or row of a table."""
    return not piece.level and not piece.unit


def _sentence_at(text: str) -> str:
    """The sentence that `text` begins with; nothing where that doesn't end."""
    start = text[:SENTENCE_CHARS]
    sentence = start[: sentences(start)[0].end]
    return sentence if sentence.endswith(_ENDED) else ""
