"""A page of the web (.web.html): what there is to read on it, without menus, advertisements and remarks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from readability import Document
from readability.readability import Unparseable

from assistant.library.readers import html
from assistant.library.readers.shared.text import load_text, title_of
from assistant.text.chunks import Block, count_words

SUFFIXES = (".web.html",)
RECORDS = False
# With fewer words, or a smaller share of the page's, what is to be read was not found, and the page is read as it is.
WORDS_LEAST, SHARE_LEAST = 40, 0.2


def read(path: Path) -> Iterator[Block]:
    """The paragraphs of the page's article, or of all of it where none stands out.

    Raises:
        LibraryError: the file is binary, or its tags are nested too deeply.
    """
    markup = load_text(path, html.declared_encoding)
    page_blocks = list(html.blocks(markup, title_of(path)))
    article_blocks = _article(markup, page_blocks[0].title if page_blocks else title_of(path))
    article_words, page_words = (
        sum(count_words(block.text) for block in blocks) for blocks in (article_blocks, page_blocks)
    )
    yield from article_blocks if article_words >= max(WORDS_LEAST, SHARE_LEAST * page_words) else page_blocks


def _article(markup: str, title: str) -> list[Block]:
    try:
        return list(html.blocks(Document(markup.replace("\0", "")).summary(html_partial=True), title))
    except (Unparseable, ValueError):
        return []
