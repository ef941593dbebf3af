"""The document behind a citation, opened for its owner and nobody else."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path

import pytest

from assistant.errors import LibraryError
from assistant.runs import Runs
from assistant.store.conversations import Conversations
from assistant.store.database import connect
from assistant.types import Citation, Passage, Turn
from assistant.web.original import NOT_KEPT
from assistant.web.sources import SOURCE_GONE, SourcePanel
from assistant.web.tab import Tab
from assistant.web.view import Pieces, View
from ptkb.store import Ptkb
from tests.browser.fake import HOSTILE, Shelf

KEY = "The key hangs behind the green door."
OATS = "Oats are a cereal."


@pytest.fixture
def view() -> View:
    engine = connect("sqlite://")
    return View(Pieces(*(one.name for one in fields(Pieces))), Conversations(engine), Ptkb(engine), Runs())


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "shelf")


def asked(view: View, user: str, *passages: Passage) -> Tab:
    """A request to open the first of the passages that a turn of this user's cites."""
    cited = tuple(Citation(n, one.id, 0, len(one.text), one.text, one.text, 0.9) for n, one in enumerate(passages, 1))
    talk = view.conversations.new(user, "Doors")
    turn = Turn("Where?", status="done", passages=passages, citations=cited)
    view.conversations.save_turn(user, talk.id, turn)
    return Tab(user, conversation=talk.id, data={"turn": turn.id, "passage": passages[0].id, "citation": "0"})


def opened(view: View, shelf: Shelf, tab: Tab) -> list[str]:
    """What is shown, one after the other."""

    async def all_of() -> list[str]:
        return [str(html) async for updates in SourcePanel(view, shelf).open(tab) for html in updates.values()]

    # in a thread of its own, as a browser test may have left this one with a loop
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(all_of())).result()


def put(shelf: Shelf, user: str, folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    shelf.add(user, [folder / name], lambda *_: None, None)


def own(name: str, text: str, n: int = 1) -> Passage:
    return Passage(f"{name}-{n}", "Doors", text, source=name, own=True)


def test_the_text_is_shown_with_the_sentence_marked(view: View, shelf: Shelf, tmp_path: Path) -> None:
    put(shelf, "ann", tmp_path, "doors.md", f"# Doors\n\n{OATS}\n\n{KEY}")
    waiting, shown = opened(view, shelf, asked(view, "ann", own("doors.md", KEY), own("doors.md", OATS, 2)))
    assert "Opening the document…" in waiting
    assert f'<mark id="at">{KEY}</mark>' in shown
    assert '<h3 dir="auto">Doors</h3>' in shown
    assert "Next citation" in shown
    assert "Previous citation" not in shown
    assert 'href="original/doors.md" download' in shown


def test_what_is_not_found_is_not_marked_and_it_says_so(view: View, shelf: Shelf, tmp_path: Path) -> None:
    put(shelf, "ann", tmp_path, "doors.txt", OATS)
    shown = opened(view, shelf, asked(view, "ann", own("doors.txt", KEY)))[-1]
    assert "nothing is marked" in shown
    assert OATS in shown
    assert "<mark" not in shown


def test_it_is_nobody_elses(view: View, shelf: Shelf, tmp_path: Path) -> None:
    put(shelf, "ann", tmp_path, "doors.txt", KEY)
    hers = asked(view, "ann", own("doors.txt", KEY))
    with pytest.raises(LibraryError, match="reload the page"):
        opened(view, shelf, Tab("bob", data={**hers.data}))
    shown = opened(view, shelf, asked(view, "bob", own("doors.txt", "The key")))[-1]
    assert NOT_KEPT in shown
    assert "green door" not in shown


def test_what_is_not_ones_own_is_not_opened(view: View, shelf: Shelf) -> None:
    with pytest.raises(LibraryError, match="not shown any more") as error:
        opened(view, shelf, asked(view, "ann", Passage("starter-1", "Doors", KEY)))
    assert str(error.value) == SOURCE_GONE


def test_hostile_documents_are_only_text(view: View, shelf: Shelf, tmp_path: Path) -> None:
    put(shelf, "ann", tmp_path, "doors.txt", f"{HOSTILE}\n\n{KEY}")
    shown = opened(view, shelf, asked(view, "ann", own("doors.txt", KEY)))[-1]
    assert "&lt;script&gt;window.hacked=1&lt;/script&gt;" in shown
    assert "<script" not in shown
    assert "<img" not in shown
    assert "<a " not in shown.replace('<a class="quiet" href="original/doors.txt"', "")


def test_a_document_that_cannot_be_read_is_told_in_a_sentence(view: View, shelf: Shelf, tmp_path: Path) -> None:
    put(shelf, "ann", tmp_path, "doors.docx", "no Word")
    shown = opened(view, shelf, asked(view, "ann", own("doors.docx", KEY)))[-1]
    assert "The document can&#39;t be shown: it is not a Word document that can be read." in shown
    shelf.remove("ann", "doors.docx")
    assert NOT_KEPT in opened(view, shelf, asked(view, "ann", own("doors.docx", KEY)))[-1]
