"""PDF: the text that it carries, page by page. A scan carries none, and is reported."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

from pypdf import PdfReader
from pypdf.errors import PyPdfError

from assistant.errors import LibraryError
from assistant.library.chunks import Block
from assistant.library.readers._text import paragraphs, tidy, title_of

SUFFIXES = (".pdf",)
RECORDS = False
_HYPHEN = re.compile(r"(?<=[a-zà-ÿ])-\n(?=[a-zà-ÿ])")
_ENDED = (".", "!", "?", ":", '"', "”", ")")

# pypdf logs every irregularity of a file that it reads all the same.
logging.getLogger("pypdf").setLevel(logging.ERROR)


def read(path: Path) -> Iterator[Block]:
    """The paragraphs with the pages that they begin on; what runs on over a page's end is joined.

    Raises:
        LibraryError: the file is encrypted, scanned or broken.
    """
    try:
        reader = PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            raise LibraryError("it is encrypted; save a copy without a password")
        title = tidy(str(reader.metadata.title)) if reader.metadata and reader.metadata.title else title_of(path)
        pages = [page.extract_text() for page in reader.pages]
    except (PyPdfError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise LibraryError(f"it is not a PDF that can be read ({error})") from error
    if not any(page.strip() for page in pages):
        raise LibraryError("it has no text, only images: scan it with text recognition (OCR) first")
    yield from _joined(_paragraphs(pages, title))


def _paragraphs(pages: list[str], title: str) -> Iterator[Block]:
    for number, page in enumerate(pages, 1):
        for paragraph in paragraphs(_HYPHEN.sub("", page)):
            yield Block(paragraph, title, f"page {number}")


def _joined(blocks: Iterator[Block]) -> Iterator[Block]:
    current = next(blocks)
    for block in blocks:
        if block.place != current.place and not current.text.endswith(_ENDED):
            current = Block(f"{current.text} {block.text}", current.title, current.place)
        else:
            yield current
            current = block
    yield current
