"""Slides of PowerPoint (.pptx): the texts, tables and notes of each, under its title."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import pptx
from pptx.exc import PackageNotFoundError
from pptx.oxml.ns import qn
from pptx.shapes.group import GroupShape

from assistant.errors import LibraryError
from assistant.library.readers.shared.archive import check_archive
from assistant.library.readers.shared.tables import lines
from assistant.library.readers.shared.text import tidy, title_line, title_of
from assistant.text.chunks import Block

SUFFIXES = (".pptx",)
RECORDS = False
SHAPES_MOST = 50_000
_KIND = "a presentation"
_ROW, _CELL = qn("a:tr"), qn("a:tc")


def read(path: Path) -> Iterator[Block]:
    """The slides in order, each with its notes.

    Raises:
        LibraryError: the file is encrypted, unpacks to too much, or is no presentation.
    """
    check_archive(path, _KIND)
    try:
        presentation = pptx.Presentation(str(path))
    except (PackageNotFoundError, BadZipFile, KeyError, ValueError) as error:
        raise LibraryError(f"it is not {_KIND} that can be read") from error
    title = title_line(presentation.core_properties.title or "") or title_of(path)
    shape_count = 0
    for number, slide in enumerate(presentation.slides, 1):
        shape_count += sum(1 for _ in slide.element.iter("{*}sp", "{*}grpSp", "{*}graphicFrame"))
        if shape_count > SHAPES_MOST:
            raise LibraryError(f"it has more than {SHAPES_MOST:,} shapes; split it up")
        title_shape = slide.shapes.title
        heading = title_line(title_shape.text_frame.text) if title_shape is not None else ""
        slide_title = title if heading in {"", title} else f"{title} - {heading}"
        texts = [text for text in map(tidy, _texts(slide.shapes)) if text and text != heading]
        if slide.has_notes_slide and (frame := slide.notes_slide.notes_text_frame) and (notes := tidy(frame.text)):
            texts.append(f"Notes: {notes}")
        yield from (Block(text, slide_title, f"slide {number}") for text in texts or [heading] if text)


def _texts(shapes: Iterable[Any]) -> Iterator[str]:
    """What the shapes say: a paragraph each, and the rows of tables; groups are read as what they hold."""
    pending_shapes = list(shapes)[::-1]
    while pending_shapes:
        shape = pending_shapes.pop()
        if isinstance(shape, GroupShape):
            pending_shapes += list(shape.shapes)[::-1]
        elif shape.has_text_frame:
            yield from (paragraph.text for paragraph in shape.text_frame.paragraphs)
        elif getattr(shape, "has_table", False):
            # Not `shape.table.rows`, which looks for each row among all of them.
            rows = ([cell.text for cell in row.iter(_CELL)] for row in shape.element.iter(_ROW))
            yield from (row.text for row in lines(rows))
