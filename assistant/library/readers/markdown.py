"""Markdown (CommonMark with tables), read as the HTML that it makes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from markdown_it import MarkdownIt

from assistant.library.readers import html
from assistant.library.readers.shared.text import load_text, title_of
from assistant.text.chunks import Block

SUFFIXES = (".md", ".markdown")
RECORDS = False
# Nothing, or a key and what may stand below one, between two rules; any other text there is the document's.
_KEY = r"""[\w"'$@][\w "'.$@/:-]{0,40}:(?:[ ].*)?\n"""
_FRONT_MATTER = re.compile(
    rf"""\A---\n
    (?: (?:[ \t]*\n)*+ | (?:[ \t]*(?:\#.*)?\n)*+ {_KEY} (?: {_KEY} | (?:\#|[ \t]|-[ \t]|[]}}]).*\n | -?\n )*+ )
    ---\n""",
    re.VERBOSE,
)


def read(path: Path) -> Iterator[Block]:
    """The paragraphs, under the first heading and the one that they follow.

    Raises:
        LibraryError: the file is binary.
    """
    text = _FRONT_MATTER.sub("", load_text(path))
    # line breaks are kept, since whoever writes a list without bullets means them; running text is joined again
    parser = MarkdownIt("commonmark", {"breaks": True}).enable("table")
    return html.blocks(parser.render(text), title_of(path))
