"""Documents that a user adds: what the page is told of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from threading import Event, Thread

import pytest

from assistant.errors import LibraryError
from assistant.library.arrivals import Arrivals
from assistant.protocols import Progress, silent
from assistant.runs import Runs
from assistant.settings import Settings
from assistant.store.conversations import Conversations
from assistant.store.database import connect
from assistant.web.library import Document, DocumentPanel, OwnDocuments
from assistant.web.tab import Tab, Updates
from assistant.web.view import Pieces, View
from ptkb.store import Ptkb


@pytest.mark.lucene
def test_only_what_was_not_there_yet_counts_as_added(settings: Settings, tmp_path: Path) -> None:
    documents, file = OwnDocuments(settings), tmp_path / "key.txt"
    for text, problems in (
        ("The key hangs behind the door.", []),
        ("The key hangs behind the door.", ["key.txt: it was there already and has not changed"]),
        ("The key hangs in the shed.", []),
    ):
        file.write_text(text)
        assert documents.add("ann", [file], silent, Event()) == problems
    assert [one.name for one in documents.list("ann")] == ["key.txt"]


@pytest.mark.lucene
def test_what_was_added_and_what_was_replaced_is_told(settings: Settings, tmp_path: Path) -> None:
    engine = connect("sqlite://")
    view = View(Pieces(*(one.name for one in fields(Pieces))), Conversations(engine), Ptkb(engine), Runs())
    library = DocumentPanel(view, OwnDocuments(settings), Arrivals())

    def bring(**texts: str) -> tuple[str, str]:
        """What the notice and the list of documents say after an upload of files, named by their folder and name."""
        files = [tmp_path / place / f"{place.split('_')[-1]}.txt" for place in texts]
        for file, text in zip(files, texts.values(), strict=True):
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        updates = library.bring("ann", files)
        assert not any(file.exists() for file in files)
        return str(updates.get("notice", "")), str(updates["documents"])

    assert "Documents: 1 added." in bring(key="The key is here.")[0]
    assert "Documents: 1 added, 1 replaced." in bring(key="The key is there.", car="The car is old.")[0]
    note, shown = bring(a_car="The car is new.", b_car="The car is red.")
    assert "Documents: 1 replaced." in note
    assert "car.txt: another file of this name is in the same upload" in shown
    assert bring(car="The car is new.")[0] == ""


@pytest.mark.lucene
def test_documents_are_known_to_arrive_until_they_are_in(settings: Settings, tmp_path: Path) -> None:
    engine, arrivals = connect("sqlite://"), Arrivals()
    view = View(Pieces(*(one.name for one in fields(Pieces))), Conversations(engine), Ptkb(engine), Runs())
    file, told = tmp_path / "key.txt", []
    documents = OwnDocuments(settings, lambda user: told.append(arrivals.wait(user)))
    file.write_text("The key hangs behind the door.")
    DocumentPanel(view, documents, arrivals).bring("ann", [file])
    assert [one and one.kind for one in told] == ["documents"]
    assert arrivals.wait("ann") is None


@pytest.mark.lucene
def test_a_file_that_did_not_arrive_is_told_by_its_name_and_the_others_are_added(
    settings: Settings, tmp_path: Path
) -> None:
    engine = connect("sqlite://")
    view = View(Pieces(*(one.name for one in fields(Pieces))), Conversations(engine), Ptkb(engine), Runs())
    (tmp_path / "here.txt").write_text("The key is here.")
    files = [tmp_path / "gone.txt", tmp_path / "here.txt"]
    updates = DocumentPanel(view, OwnDocuments(settings), Arrivals()).bring("ann", files)
    assert "gone.txt: it did not arrive; choose it again." in str(updates["documents"])
    assert str(tmp_path) not in str(updates["documents"])
    assert "Documents: 1 added." in str(updates["notice"])


def test_a_users_documents_are_read_one_upload_at_a_time_and_can_be_stopped(tmp_path: Path) -> None:
    begun, ended = Event(), []

    class Slow:
        def list(self, _user: str) -> list[Document]:
            return []

        def mark(self, _user: str) -> str:
            return ""

        def add(
            self, _user: str, files: Sequence[Path], _progress: Progress, stop: Event, _names: object = None
        ) -> list[str]:
            begun.set()
            ended.append(stop.wait(10))
            return [f"{file.name}: its reading was stopped" for file in files]

        def remove(self, _user: str, _document: str) -> None:
            raise AssertionError

    engine = connect("sqlite://")
    view = View(Pieces(*(one.name for one in fields(Pieces))), Conversations(engine), Ptkb(engine), Runs())
    library, files = DocumentPanel(view, Slow(), Arrivals()), [tmp_path / "a.txt", tmp_path / "b.txt"]
    for file in files:
        file.write_text("Oats.")
    told: list[Updates] = []
    reading = Thread(target=lambda: told.append(library.bring("ann", files[:1])))
    reading.start()
    assert begun.wait(10)
    with pytest.raises(LibraryError, match="still being read; wait for them or stop them first"):
        library.bring("ann", files[1:])
    assert 'data-event="halt"' in library.show("ann")["documents"]
    assert 'data-event="halt"' not in library.show("bob")["documents"]
    library.halt(Tab("bob"))
    library.halt(Tab("ann"))
    reading.join(10)
    assert ended == [True]
    assert "a.txt: its reading was stopped" in told[0]["documents"]
    assert 'data-event="halt"' not in library.show("ann")["documents"]


@pytest.mark.lucene
def test_a_pasted_text_is_a_document_and_a_second_copy_is_told(settings: Settings) -> None:
    engine = connect("sqlite://")
    view = View(Pieces(*(one.name for one in fields(Pieces))), Conversations(engine), Ptkb(engine), Runs())
    documents = OwnDocuments(settings)
    library = DocumentPanel(view, documents, Arrivals())
    assert "Documents: 1 added." in library.bring_text("ann", "Keys / doors", "The key hangs here.")["notice"]
    shown = library.bring_text("ann", "مفاتيح", "The key hangs here.")["documents"]
    assert "it is already here as “Keys / doors”" in shown
    assert "Documents: 1 added." in library.bring_text("ann", "مفاتيح", "The key hangs there.")["notice"]
    assert {one.name for one in documents.list("ann")} == {"Keys / doors", "مفاتيح"}
    for title, text in (("", "Text."), ("Title", " "), ("t" * 201, "Text."), ("Title", "x" * 500_001)):
        with pytest.raises(LibraryError):
            library.bring_text("ann", title, text)
    with pytest.raises(LibraryError, match="private network"):
        library.bring_page("ann", "http://127.0.0.1/")


@pytest.mark.lucene
def test_names_that_look_alike_are_told_apart(settings: Settings, tmp_path: Path) -> None:
    documents, names = OwnDocuments(settings), ["ke y.txt", "ke\x07y.txt", "ke!y.txt"]
    for n, name in enumerate(names):
        (tmp_path / name).write_text(f"Key {n} hangs here.")
        assert documents.add("ann", [tmp_path / name], silent, Event()) == []
    assert [one.name for one in documents.list("ann")] == ["ke y.txt", "ke y.txt (2)", "ke!y.txt"]
