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
OCR_MISSING = (
    "it has no text, only pictures of its pages; install what reads these (pip install rapidocr==3.10.0), and add it "
    "again"
)
PAGES_UNREAD = "only pictures, which are not read; pip install rapidocr==3.10.0, and add it again"
NO_TEXT = "it has no text, and OCR finds none in the pictures of its pages"
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
    page_numbers = ", ".join(map(str, pages))
    return f"{'page' if len(pages) == 1 else 'pages'} {page_numbers}: {BY_OCR if read else PAGES_UNREAD}"


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
    request = {"path": str(path), "pages": list(pages)}
    reply = answer_apart(__name__, request, seconds, stop, MEMORY_BYTES, progress)
    return [Block(**fields) for fields in reply["blocks"]]


def answer(request: dict[str, Any], progress: Progress = silent) -> dict[str, Any]:
    """What the process apart says: the fields of the blocks.

    Raises:
        LibraryError: as `blocks`.
    """
    return {"blocks": [asdict(block) for block in blocks(Path(request["path"]), request["pages"], progress)]}


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
            found_blocks = list[Block]()
            for done, (number, lines) in enumerate(zip(numbers, _pages(document, numbers), strict=True), 1):
                found_blocks += (
                    Block(text, title, f"page {number}", page=number, by=BY_OCR) for text in paragraphs(lines)
                )
                progress(len(document) - len(numbers) + done, len(document))
    except (PdfiumError, ValueError) as error:
        raise LibraryError("its pages can't be drawn for OCR; it may be damaged") from error
    if not found_blocks and not pages:
        raise LibraryError(NO_TEXT)
    return found_blocks


def paragraphs(lines: Iterable[Line]) -> list[str]:
    """The text of a page as it is read: column by column, and a paragraph where more space is between two lines."""
    line_groups: list[list[str]] = []
    previous: Line | None = None
    for line in _in_order(list(lines)):
        height = line.bottom - line.top
        if previous and -1.5 * height <= line.top - previous.bottom <= PARAGRAPH * height:
            line_groups[-1].append(line.text)
        else:
            line_groups.append([line.text])
        previous = line
    return [text for texts in line_groups if (text := tidy(_joined(texts)))]


def _check_is_installed() -> None:
    if not is_installed():
        raise LibraryError(OCR_MISSING)


def _is_picture(page: PdfPage) -> bool:
    """Whether pictures are most of a page, and it has no more words than a head or a foot of it has."""
    width, height = map(float, page.get_size())
    images = page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=NESTED_MOST)
    image_sizes = [
        (right - left, top - bottom) for left, bottom, right, top in (image.get_bounds() for image in images)
    ]
    covered_area = sum(image_width * image_height for image_width, image_height in image_sizes)
    words = page.get_textpage().get_text_range().split() if covered_area >= COVERED * width * height else []
    return covered_area >= COVERED * width * height and len(words) <= WORDS_MOST


def _pages(document: PdfDocument, numbers: Iterable[int]) -> Iterator[list[Line]]:
    """The lines of each of these pages."""
    from rapidocr import RapidOCR  # noqa: PLC0415 - an extra

    engine = RapidOCR(params={"Global.log_level": "error", "EngineConfig.onnxruntime.intra_op_num_threads": THREADS})
    for number in numbers:
        page = document[number - 1]
        longest = max(map(float, page.get_size()))
        scale = min(DPI / 72, SIDE / longest) if longest > 0 else 1.0
        recognition: Any = engine(page.render(scale=scale).to_numpy(), use_cls=False)
        if recognition.boxes is None:  # letters of pictures that are blown up are not told from them
            recognition = engine(page.render(scale=scale / 2).to_numpy(), use_cls=False)
        yield [
            Line(text, box[:, 0].min(), box[:, 1].min(), box[:, 0].max(), box[:, 1].max())
            for text, box in zip(
                recognition.txts or (), recognition.boxes if recognition.boxes is not None else (), strict=True
            )
        ]


def _in_order(lines: list[Line]) -> Iterator[Line]:
    """The lines as people read them, by cuts along the page's white space (XY-cut, Nagy and Seth, ICPR 1984).

    What is cut into columns has long lines on both sides: the cells of a table are read row by row.
    """
    height = median(line.bottom - line.top for line in lines) if lines else 0.0
    pending_groups = [lines]
    while pending_groups:
        group = pending_groups.pop()
        parts = _columns(group, height) or _rows(group)
        if len(parts) > 1:
            pending_groups += parts[::-1]
        else:
            yield from sorted(group, key=lambda line: line.left)


def _columns(lines: list[Line], height: float) -> list[list[Line]]:
    parts = _groups_apart([(line.left, line.right, line) for line in lines], GUTTER * height)
    are_long = (median(line.right - line.left for line in part) > COLUMN * height for part in parts)
    return parts if len(parts) > 1 and all(are_long) and all(len(part) > 1 for part in parts) else []


def _rows(lines: list[Line]) -> list[list[Line]]:
    """What the widest white space between rows leaves above and below; boxes of neighbours may touch each other."""
    parts = _groups_apart([(line.top + _quarter(line), line.bottom - _quarter(line), line) for line in lines], 0.0)
    if len(parts) <= 1:
        return parts
    gaps = [
        min(line.top for line in lower_lines) - max(line.bottom for line in upper_lines)
        for upper_lines, lower_lines in pairwise(parts)
    ]
    split_index = gaps.index(max(gaps)) + 1
    return [list(chain.from_iterable(parts[:split_index])), list(chain.from_iterable(parts[split_index:]))]


def _quarter(line: Line) -> float:
    return (line.bottom - line.top) / 4


def _groups_apart(extents: list[tuple[float, float, Line]], gap: float) -> list[list[Line]]:
    """Lines whose extents along one side are apart by more than a gap, in groups."""
    groups: list[list[Line]] = []
    end = 0.0
    for start, stop, line in sorted(extents):
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
    for line_text in texts:
        is_broken = text.endswith("-") and text[-2:-1].islower() and line_text[:1].islower()
        text = text[:-1] + line_text if is_broken else f"{text} {line_text}"
    return text
