"""Documents that are archives, written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

CONTAINER = "META-INF/container.xml"


def epub(
    path: Path, chapters: Mapping[str, str], order: Sequence[str], title: str = "A book", before: str = ""
) -> Path:
    """An e-book of these files, read in this order; `before` stands before the root of its package file."""
    items = "".join(f'<item id="{name}" href="{name}" media-type="application/xhtml+xml"/>' for name in order)
    spine = "".join(f'<itemref idref="{name}"/>' for name in order)
    with ZipFile(path, "w", ZIP_DEFLATED) as parts:
        parts.writestr(CONTAINER, '<c xmlns="c"><rootfile full-path="OPS/book.opf"/></c>')
        parts.writestr(
            "OPS/book.opf",
            f'{before}<package xmlns="p" xmlns:dc="d"><dc:title>{title}</dc:title>{items}{spine}</package>',
        )
        for name, body in chapters.items():
            parts.writestr(f"OPS/{name}", f"<html><body>{body}</body></html>")
    return path
