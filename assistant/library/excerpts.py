"""A document as text to read, with the words that say a quote: read anew, within limits of time and memory.

Of a long one, the part around the quote.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import BoundedSemaphore, Event
from typing import Any, NamedTuple

from assistant.errors import LibraryError
from assistant.library.apart import answer_apart
from assistant.library.readers import read
from assistant.library.reading import time_limit
from assistant.protocols import Progress, silent
from assistant.text.chunks import Block
from assistant.text.spots import MIN_SHARE, locate_quote

DOCUMENTS_AT_ONCE = 2  # documents of all users that are read at a time
# Of a longer document, about so many characters are shown; a third of them stand before the quote.
CHARS_MOST = 60_000
BEFORE_DIVISOR = 3
# A paragraph is cut where more of it would be added.
WHOLE_CHARS = 2_000
# With quotes and the end of a sentence around it; where no spaces are, a full stop parts two words.
_WORD = re.compile(r"[^\w\s]*\w+[^\w\s,;:]*")
_LANES = BoundedSemaphore(DOCUMENTS_AT_ONCE)


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph, or a row of a table, in pieces, each with whether it is marked.

    `headings` are those that it is the first to stand under, each with its level, from 0 for the document's title.
    `place` says where it is ("slide 3"), where the paragraph before it is elsewhere.
    """

    headings: tuple[tuple[int, str], ...]
    place: str
    pieces: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of a document, and whether that begins earlier and goes on.

    `share` is which share of the quote's words was found; where it is less than half of them, nothing is marked.
    """

    paragraphs: tuple[Paragraph, ...]
    earlier: bool
    later: bool
    share: float

    @property
    def is_marked(self) -> bool:
        """Whether the quote was found."""
        return self.share >= MIN_SHARE


def excerpt(original: Path, file: str, passage: str, quote: str) -> Excerpt:
    """The part of a document that a quote stands in.

    Args:
        original: the document, whatever its file is called.
        file: the name that it came under, which says how it is read.
        passage: the text of the passage, as it was read before, in which the quote is sought.
        quote: a part of it.

    Raises:
        LibraryError: it can't be read, or not within the limits; the message is the reason.
    """
    with _LANES, _named_copy(original, file) as path:
        request = {"path": str(path), "passage": passage, "quote": quote}
        reply = answer_apart(__name__, request, time_limit(path), Event())
    paragraphs = [
        Paragraph(
            tuple((level, heading) for level, heading in headings),
            place,
            tuple((text, is_marked) for text, is_marked in pieces),
        )
        for headings, place, pieces in reply["paragraphs"]
    ]
    return Excerpt(tuple(paragraphs), reply["earlier"], reply["later"], reply["share"])


def answer(request: dict[str, Any], progress: Progress = silent) -> dict[str, Any]:
    """What the process apart says: the fields of an `Excerpt`.

    Raises:
        LibraryError: the document can't be read; the message is the reason.
    """
    blocks = read(Path(request["path"]), progress)
    words = [
        _Word(n, *match.span(), match.group()) for n, block in enumerate(blocks) for match in _WORD.finditer(block.text)
    ]
    passage_start, positions, share = _quote_positions(
        request["passage"], request["quote"], [word.text for word in words]
    )
    marks = list(_marks(words, positions))
    first_word = words[positions[0] if positions else passage_start] if words else _Word(0, 0, 0, "")
    start, end = _shown_range([len(block.text) for block in blocks], first_word)
    return {
        "paragraphs": list(_paragraphs(blocks, marks, start, end)),
        "earlier": start > (0, 0),
        "later": end < (len(blocks) - 1, len(blocks[-1].text)),
        "share": share,
    }


class _Word(NamedTuple):
    """A word, or a stretch of text: the block that it is in, and from and to which of its characters."""

    block: int
    start: int
    end: int
    text: str = ""


# A position in a document: the number of a block, and one of its characters.
_Position = tuple[int, int]


@contextmanager
def _named_copy(original: Path, file: str) -> Iterator[Path]:
    """A copy of a document under the file name that it came with."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / Path(file).name
        try:
            shutil.copyfile(original, path)
        except OSError as error:
            raise LibraryError(f"it can't be opened ({error.strerror or error})") from error
        yield path


def _quote_positions(passage: str, quote: str, words: Sequence[str]) -> tuple[int, tuple[int, ...], float]:
    """Start of the passage, positions of the quote's words (none where less than half are there), and their share.

    Where the passage is found, the quote is sought in it: a short one may stand elsewhere, too.
    """
    passage_spots = locate_quote(_spaced_words(passage), words)
    passage_start, passage_end = (
        (passage_spots.places[0], passage_spots.places[-1] + 1) if passage_spots.share >= MIN_SHARE else (0, len(words))
    )
    quote_spots = locate_quote(_spaced_words(quote), words[passage_start:passage_end])
    positions = (
        tuple(passage_start + position for position in quote_spots.places) if quote_spots.share >= MIN_SHARE else ()
    )
    return passage_start, positions, quote_spots.share


def _spaced_words(text: str) -> str:
    """The words of a text, split as those of the document are, with single spaces between them."""
    return " ".join(_WORD.findall(text))


def _marks(words: Sequence[_Word], positions: Sequence[int]) -> Iterator[_Word]:
    """The stretches of text that words which follow each other make."""
    for _, run in groupby(enumerate(positions), key=lambda pair: (pair[1] - pair[0], words[pair[1]].block)):
        run_words = [words[position] for _, position in run]
        yield _Word(run_words[0].block, run_words[0].start, run_words[-1].end)


def _shown_range(sizes: Sequence[int], first_word: _Word) -> tuple[_Position, _Position]:
    """From where to where a document is shown whose blocks have these sizes in characters, around a word."""
    total, word_offset = sum(sizes), sum(sizes[: first_word.block]) + first_word.start
    start_offset = max(min(word_offset - CHARS_MOST // BEFORE_DIVISOR, total - CHARS_MOST), 0)
    first_block, begin = _position(sizes, start_offset)
    last_block, end = _position(sizes, min(start_offset + CHARS_MOST, total))
    shows_start, tail = begin <= WHOLE_CHARS, sizes[last_block] - end
    return (first_block, 0 if shows_start else begin), (last_block, sizes[last_block] if tail <= WHOLE_CHARS else end)


def _position(sizes: Sequence[int], offset: int) -> _Position:
    """The position of the character that has so many characters of the document before it."""
    for n, size in enumerate(sizes):
        if offset < size:
            return n, offset
        offset -= size
    return len(sizes) - 1, sizes[-1]


def _paragraphs(
    blocks: Sequence[Block], marks: Sequence[_Word], start: _Position, end: _Position
) -> Iterator[tuple[Any, ...]]:
    """The fields of the paragraphs from one place to another."""
    previous_path: list[str] = []
    previous_place = ""
    for n in range(start[0], end[0] + 1):
        block, path = blocks[n], [blocks[n].title, *filter(None, blocks[n].heading.split(" > "))]
        shared_levels = sum(
            1 for _ in takewhile(lambda titles: titles[0] == titles[1], zip(path, previous_path, strict=False))
        )
        begin, stop = start[1] if n == start[0] else 0, end[1] if n == end[0] else len(block.text)
        pieces = list(_pieces(block.text, begin, stop, [mark for mark in marks if mark.block == n]))
        if pieces:
            yield list(enumerate(path))[shared_levels:], block.place if block.place != previous_place else "", pieces
            previous_path, previous_place = path, block.place


def _pieces(text: str, start: int, end: int, marks: Sequence[_Word]) -> Iterator[tuple[str, bool]]:
    """A text from one place to another, in pieces, each with whether it is marked."""
    offset = start
    for mark in marks:
        if offset < mark.start:
            yield text[offset : mark.start], False
        yield text[mark.start : mark.end], True
        offset = mark.end
    if offset < end:
        yield text[offset:end], False
