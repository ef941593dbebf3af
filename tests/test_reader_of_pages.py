"""The name of the file that a page of the web is read as says that it is one, however long its own name is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import pytest

from assistant.library.addresses import FetchedFile
from assistant.library.arrivals import Arrivals
from assistant.library.readers import reader_of, web
from assistant.runs import Runs
from assistant.store.conversations import Conversations
from assistant.store.database import connect
from assistant.web.library import NAME_BYTES, Document, DocumentPanel
from assistant.web.view import Pieces, View
from ptkb.store import Ptkb


class Kept:
    """Documents of which only the names of their files are kept."""

    def __init__(self) -> None:
        self.files: list[Path] = []

    def list(self, _user: str) -> list[Document]:
        return []

    def mark(self, _user: str) -> str:
        return ""

    def add(self, _user: str, files: Sequence[Path], *_others: object) -> list[str]:
        self.files += files
        return []

    def remove(self, _user: str, _document: str) -> None:
        raise AssertionError


@pytest.mark.parametrize("slug", ["Овсянка" * 8, "oats", "oats.v1.2"])
def test_a_page_with_a_long_name_is_read_as_a_page(monkeypatch: pytest.MonkeyPatch, slug: str) -> None:
    page = FetchedFile("http://one.example/", f"{slug}.web.html", b"<p>Oats.")
    monkeypatch.setattr("assistant.web.library.fetch_file", lambda _: page)
    engine, kept = connect("sqlite://"), Kept()
    view = View(Pieces(*(one.name for one in fields(Pieces))), Conversations(engine), Ptkb(engine), Runs())
    DocumentPanel(view, kept, Arrivals()).bring_page("ann", page.address)
    [file] = kept.files
    assert reader_of(file) is web
    assert slug.startswith(file.name.removesuffix(".web.html"))
    assert len(file.name.encode()) <= NAME_BYTES + len(".web.html")
