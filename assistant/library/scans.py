"""Reads pages of PDFs that carry no text, only pictures of themselves, by recognition of characters (OCR).

That is an extra: RapidOCR, which brings its models in its package. What was read so says so, wherever it is shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from itertools import chain, pairwise
from pathlib import Path
from statistics import median
from threading import Event
from typing import Any, NamedTuple

from pypdfium2 import PdfDocument, PdfiumError, PdfPage, raw

from assistant.errors import LibraryError
from assistant.library.apart import answer_apart
from assistant.library.readers.shared.text import tidy, title_line, title_of
from assistant.protocols import Progress, silent
from assistant.text.chunks import Block
from assistant.types import Passage

PACKAGE = "rapidocr"
BY_OCR = "read by OCR"
MISSING = (
    "it has no text, only pictures of its pages; install what reads these (pip install rapidocr==3.10.0), and add it "
    "again"
)
UNREAD = "only pictures, which are not read; pip install rapidocr==3.10.0, and add it again"
NOTHING = "it has no text, and OCR finds none in the pictures of its pages"
PAGES_MOST = 300
# Of a processor: until the models are there, and for a page, which took 7 where it was measured.
SECONDS, SECONDS_PER_PAGE = 30.0, 30.0
MEMORY_BYTES = 3 * 2**30  # it took 1.7 GB of addresses where it was measured
THREADS = 2
# A page is a picture where so much of it is, and where it has so few words besides, such as its number.
COVERED, WORDS_MOST, NESTED_MOST = 0.5, 10, 4
# Pixels an inch, as scanners have for text; a page that is longer than so many pixels is drawn smaller.
DPI, SIDE = 150, 2400
# In heights of a line: a gap that ends a paragraph, one between columns, and how long the lines of a column are.
PARAGRAPH, GUTTER, COLUMN = 0.7, 1.0, 8.0


class Line(NamedTuple):
    """A line of text on a page, and its box in pixels from the page's upper left corner."""

    text: str
    left: float
    top: float
    right: float
    bottom: float


def is_installed() -> bool:
    """Whether there is what reads pictures of pages."""
    return find_spec(PACKAGE) is not None


def is_by_ocr(passages: Sequence[Passage]) -> bool:
    """Whether all passages of a document were made of what OCR read."""
    return bool(passages) and all(passage.source.endswith(BY_OCR) for passage in passages)


def pictures(path: Path, texts: Collection[int]) -> list[int]:
    """The pages of a PDF that are nothing but pictures, from 1.

    Args:
        path: the file; of another format there are none.
        texts: the pages that text was found on, which are none of them.
    """
    if path.suffix.lower() != ".pdf":
        return []
    try:
        with PdfDocument(path) as document:
            return [n for n in range(1, len(document) + 1) if n not in texts and _is_picture(document[n - 1])]
    except (PdfiumError, ValueError, OSError):
        return []


def note(pages: Sequence[int], read: bool) -> str:
    """What is told of a document with text and such pages; "" where it has none."""
    if not pages:
        return ""
    named = ", ".join(map(str, pages))
    return f"{'page' if len(pages) == 1 else 'pages'} {named}: {BY_OCR if read else UNREAD}"


def count(path: Path) -> int:
    """How many pages a PDF has; 0 where PDFium can't tell."""
    try:
        with PdfDocument(path) as document:
            return len(document)
    except (PdfiumError, ValueError, OSError):
        return 0


def blocks_apart(
    path: Path, stop: Event, number: int, pages: Sequence[int] = (), progress: Progress = silent
) -> list[Block]:
    """The same as `blocks`, in a process of its own within limits of time, for that `number` of pages, and memory.

    Raises:
        LibraryError: OCR isn't installed, finds nothing, or takes more than it may; the message is the reason.
    """
    _check_is_installed()
    seconds = SECONDS + SECONDS_PER_PAGE * min(number, PAGES_MOST)
    asked = {"path": str(path), "pages": list(pages)}
    said = answer_apart(__name__, asked, seconds, stop, MEMORY_BYTES, progress)
    return [Block(**fields) for fields in said["blocks"]]


def answer(asked: dict[str, Any], progress: Progress = silent) -> dict[str, Any]:
    """What the process apart says: the fields of the blocks.

    Raises:
        LibraryError: as `blocks`.
    """
    return {"blocks": [asdict(one) for one in blocks(Path(asked["path"]), asked["pages"], progress)]}


def blocks(path: Path, pages: Sequence[int] = (), progress: Progress = silent) -> list[Block]:
    """The paragraphs that OCR finds on these pages of a PDF, by default on all, of which one has to have some.

    `progress` is told pages, of which those that have text count as read.

    Raises:
        LibraryError: OCR isn't installed, the pages are too many or can't be drawn, or there is no text on any.
    """
    _check_is_installed()
    try:
        with PdfDocument(path) as document:
            numbers = pages or range(1, len(document) + 1)
            if len(numbers) > PAGES_MOST:
                raise LibraryError(f"it is a scan of {len(numbers):,} pages, and OCR reads {PAGES_MOST}; split it up")
            title = title_line(document.get_metadata_value("Title")) or title_of(path)
            found = list[Block]()
            for done, (number, lines) in enumerate(zip(numbers, _pages(document, numbers), strict=True), 1):
                found += (Block(text, title, f"page {number}", page=number, by=BY_OCR) for text in paragraphs(lines))
                progress(len(document) - len(numbers) + done, len(document))
    except (PdfiumError, ValueError) as error:
        raise LibraryError("its pages can't be drawn for OCR; it may be damaged") from error
    if not found and not pages:
        raise LibraryError(NOTHING)
    return found


def paragraphs(lines: Iterable[Line]) -> list[str]:
    """The text of a page as it is read: column by column, and a paragraph where more space is between two lines."""
    found: list[list[str]] = []
    before: Line | None = None
    for line in _in_order(list(lines)):
        height = line.bottom - line.top
        if before and -1.5 * height <= line.top - before.bottom <= PARAGRAPH * height:
            found[-1].append(line.text)
        else:
            found.append([line.text])
        before = line
    return [text for one in found if (text := tidy(_joined(one)))]


def _check_is_installed() -> None:
    if not is_installed():
        raise LibraryError(MISSING)


def _is_picture(page: PdfPage) -> bool:
    """Whether pictures are most of a page, and it has no more words than a head or a foot of it has."""
    width, height = map(float, page.get_size())
    found = page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=NESTED_MOST)
    sides = [(right - left, top - bottom) for left, bottom, right, top in (one.get_bounds() for one in found)]
    covered = sum(across * upwards for across, upwards in sides)
    words = page.get_textpage().get_text_range().split() if covered >= COVERED * width * height else []
    return covered >= COVERED * width * height and len(words) <= WORDS_MOST


def _pages(document: PdfDocument, numbers: Iterable[int]) -> Iterator[list[Line]]:
    """The lines of each of these pages."""
    from rapidocr import RapidOCR  # noqa: PLC0415 - an extra

    engine = RapidOCR(params={"Global.log_level": "error", "EngineConfig.onnxruntime.intra_op_num_threads": THREADS})
    for number in numbers:
        page = document[number - 1]
        longest = max(map(float, page.get_size()))
        scale = min(DPI / 72, SIDE / longest) if longest > 0 else 1.0
        seen: Any = engine(page.render(scale=scale).to_numpy(), use_cls=False)
        if seen.boxes is None:  # letters of pictures that are blown up are not told from them
            seen = engine(page.render(scale=scale / 2).to_numpy(), use_cls=False)
        yield [
            Line(text, box[:, 0].min(), box[:, 1].min(), box[:, 0].max(), box[:, 1].max())
            for text, box in zip(seen.txts or (), seen.boxes if seen.boxes is not None else (), strict=True)
        ]


def _in_order(lines: list[Line]) -> Iterator[Line]:
    """The lines as people read them, by cuts along the page's white space (XY-cut, Nagy and Seth, ICPR 1984).

    What is cut into columns has long lines on both sides: the cells of a table are read row by row.
    """
    height = median(line.bottom - line.top for line in lines) if lines else 0.0
    left = [lines]
    while left:
        group = left.pop()
        cut = _columns(group, height) or _rows(group)
        if len(cut) > 1:
            left += cut[::-1]
        else:
            yield from sorted(group, key=lambda line: line.left)


def _columns(lines: list[Line], height: float) -> list[list[Line]]:
    parts = _apart([(line.left, line.right, line) for line in lines], GUTTER * height)
    long = (median(line.right - line.left for line in part) > COLUMN * height for part in parts)
    return parts if len(parts) > 1 and all(long) and all(len(part) > 1 for part in parts) else []


def _rows(lines: list[Line]) -> list[list[Line]]:
    """What the widest white space between rows leaves above and below; boxes of neighbours may touch each other."""
    parts = _apart([(line.top + _quarter(line), line.bottom - _quarter(line), line) for line in lines], 0.0)
    if len(parts) <= 1:
        return parts
    gaps = [min(line.top for line in below) - max(line.bottom for line in above) for above, below in pairwise(parts)]
    at = gaps.index(max(gaps)) + 1
    return [list(chain.from_iterable(parts[:at])), list(chain.from_iterable(parts[at:]))]


def _quarter(line: Line) -> float:
    return (line.bottom - line.top) / 4


def _apart(edges: list[tuple[float, float, Line]], gap: float) -> list[list[Line]]:
    """Lines whose extents along one side are apart by more than a gap, in groups."""
    groups: list[list[Line]] = []
    end = 0.0
    for start, stop, line in sorted(edges):
        if groups and start - end <= gap:
            groups[-1].append(line)
            end = max(end, stop)
        else:
            groups.append([line])
            end = stop
    return groups


def _joined(texts: list[str]) -> str:
    """Lines as one text; a word that is broken at a line's end is whole again."""
    text = ""
    for one in texts:
        broken = text.endswith("-") and text[-2:-1].islower() and one[:1].islower()
        text = text[:-1] + one if broken else f"{text} {one}"
    return text
