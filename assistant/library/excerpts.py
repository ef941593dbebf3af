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
from assistant.library.reading import allowed
from assistant.protocols import Progress, silent
from assistant.text.chunks import Block
from assistant.text.spots import ENOUGH, spots

AT_ONCE = 2  # documents of all users that are read at a time
# Of a longer document, about so many characters are shown; a third of them stand before the quote.
CHARS_MOST = 60_000
BEFORE = 3
# A paragraph is cut where more of it would be added.
WHOLE_CHARS = 2_000
# With quotes and the end of a sentence around it; where no spaces are, a full stop parts two words.
_WORD = re.compile(r"[^\w\s]*\w+[^\w\s,;:]*")
_LANES = BoundedSemaphore(AT_ONCE)


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
        return self.share >= ENOUGH


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
    with _LANES, _named(original, file) as path:
        asked = {"path": str(path), "passage": passage, "quote": quote}
        said = answer_apart(__name__, asked, allowed(path), Event())
    paragraphs = [
        Paragraph(
            tuple((level, heading) for level, heading in headings), place, tuple((text, on) for text, on in pieces)
        )
        for headings, place, pieces in said["paragraphs"]
    ]
    return Excerpt(tuple(paragraphs), said["earlier"], said["later"], said["share"])


def answer(asked: dict[str, Any], progress: Progress = silent) -> dict[str, Any]:
    """What the process apart says: the fields of an `Excerpt`.

    Raises:
        LibraryError: the document can't be read; the message is the reason.
    """
    blocks = read(Path(asked["path"]), progress)
    words = [
        _Word(n, *match.span(), match.group()) for n, block in enumerate(blocks) for match in _WORD.finditer(block.text)
    ]
    near, places, share = _sought(asked["passage"], asked["quote"], [word.text for word in words])
    marks = list(_marks(words, places))
    first = words[places[0] if places else near] if words else _Word(0, 0, 0, "")
    start, end = _part([len(block.text) for block in blocks], first)
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


# A place in a document: the number of a block, and one of its characters.
_At = tuple[int, int]


@contextmanager
def _named(original: Path, file: str) -> Iterator[Path]:
    """A copy of a document that is called as it came."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / Path(file).name
        try:
            shutil.copyfile(original, path)
        except OSError as error:
            raise LibraryError(f"it can't be opened ({error.strerror or error})") from error
        yield path


def _sought(passage: str, quote: str, words: Sequence[str]) -> tuple[int, tuple[int, ...], float]:
    """Where the passage begins, the places of the quote's words, none where less than half are there, and their share.

    Where the passage is found, the quote is sought in it: a short one may stand elsewhere, too.
    """
    around = spots(_apart(passage), words)
    at, end = (around.places[0], around.places[-1] + 1) if around.share >= ENOUGH else (0, len(words))
    found = spots(_apart(quote), words[at:end])
    places = tuple(at + place for place in found.places) if found.share >= ENOUGH else ()
    return at, places, found.share


def _apart(text: str) -> str:
    """Words as those of the document are told apart."""
    return " ".join(_WORD.findall(text))


def _marks(words: Sequence[_Word], places: Sequence[int]) -> Iterator[_Word]:
    """The stretches of text that words which follow each other make."""
    for _, run in groupby(enumerate(places), key=lambda one: (one[1] - one[0], words[one[1]].block)):
        ends = [words[place] for _, place in run]
        yield _Word(ends[0].block, ends[0].start, ends[-1].end)


def _part(sizes: Sequence[int], first: _Word) -> tuple[_At, _At]:
    """From where to where a document is shown whose blocks have these sizes in characters, around a word."""
    total, at = sum(sizes), sum(sizes[: first.block]) + first.start
    start = max(min(at - CHARS_MOST // BEFORE, total - CHARS_MOST), 0)
    n, begin = _place(sizes, start)
    last, end = _place(sizes, min(start + CHARS_MOST, total))
    whole, left = begin <= WHOLE_CHARS, sizes[last] - end
    return (n, 0 if whole else begin), (last, sizes[last] if left <= WHOLE_CHARS else end)


def _place(sizes: Sequence[int], at: int) -> _At:
    """The place of a character of all."""
    for n, size in enumerate(sizes):
        if at < size:
            return n, at
        at -= size
    return len(sizes) - 1, sizes[-1]


def _paragraphs(blocks: Sequence[Block], marks: Sequence[_Word], start: _At, end: _At) -> Iterator[tuple[Any, ...]]:
    """The fields of the paragraphs from one place to another."""
    before: list[str] = []
    place = ""
    for n in range(start[0], end[0] + 1):
        block, path = blocks[n], [blocks[n].title, *filter(None, blocks[n].heading.split(" > "))]
        same = sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(path, before, strict=False)))
        begin, stop = start[1] if n == start[0] else 0, end[1] if n == end[0] else len(block.text)
        pieces = list(_pieces(block.text, begin, stop, [mark for mark in marks if mark.block == n]))
        if pieces:
            yield list(enumerate(path))[same:], block.place if block.place != place else "", pieces
            before, place = path, block.place


def _pieces(text: str, start: int, end: int, marks: Sequence[_Word]) -> Iterator[tuple[str, bool]]:
    """A text from one place to another, in pieces, each with whether it is marked."""
    at = start
    for mark in marks:
        if at < mark.start:
            yield text[at : mark.start], False
        yield text[mark.start : mark.end], True
        at = mark.end
    if at < end:
        yield text[at:end], False
