"""A watched folder: what comes, changes and goes in it follows into the library, and is told."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from typer.testing import CliRunner

from assistant.__main__ import app
from assistant.errors import LibraryError
from assistant.library.arrivals import Arrivals
from assistant.library.index import add_documents, list_documents
from assistant.library.reading import Content
from assistant.library.shelves import own_library
from assistant.library.watched import Happenings, Watch, chosen_folder
from assistant.protocols import Progress
from assistant.runs import Runs
from assistant.settings import Settings
from assistant.store.conversations import Conversations
from assistant.store.database import connect
from assistant.store.users import DEFAULT_USER
from assistant.upkeep.accounts import Accounts
from assistant.web.account import AccountPanel
from assistant.web.folder import FollowedFolder
from assistant.web.library import DocumentPanel, OwnDocuments
from assistant.web.tab import Tab
from assistant.web.view import Pieces, View
from ptkb.store import Ptkb

pytestmark = pytest.mark.lucene
SECONDS = 60


def until(happens: Callable[[], bool]) -> None:
    end = monotonic() + SECONDS
    while not happens():
        assert monotonic() < end
        sleep(0.1)


@pytest.fixture
def settings(tmp_path) -> Settings:
    (tmp_path / "data").mkdir()
    return Settings(data_dir=tmp_path / "data")


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "key.txt").write_text("The key hangs behind the door.")
    (tmp_path / "docs" / "photo.png").write_bytes(b"\x89PNG")
    return tmp_path / "docs"


@pytest.fixture
def followed(settings, folder) -> Iterator[Settings]:
    watching = Watch(folder, "docs", settings)
    yield settings
    watching.close()


def latest(settings: Settings) -> dict[str, tuple[str, str]]:
    return {one.name: (one.what, one.why) for one in reversed(Happenings(settings).all())}


def test_files_that_come_change_and_go_are_followed_and_told(followed, folder):
    def names() -> set[str]:
        return {one.name for one in list_documents("docs", followed)}

    until(lambda: names() == {"docs/key.txt"})
    until(lambda: "kind of file" in latest(followed).get("docs/photo.png", ("", ""))[1])
    (folder / "car.txt").write_text("The car is old.")
    until(lambda: latest(followed).get("docs/car.txt") == ("added", ""))
    (folder / "car.txt").write_text("The car is new.")
    until(lambda: latest(followed).get("docs/car.txt") == ("replaced", ""))
    (folder / "car.txt").unlink()
    until(lambda: latest(followed)["docs/car.txt"] == ("removed", "it is gone from the folder"))
    shutil.move(folder, folder.with_name("away"))
    until(lambda: "its documents stay" in latest(followed).get(str(folder), ("", ""))[1])
    assert names() == {"docs/key.txt"}
    (folder.with_name("away") / "boat.txt").write_text("The boat is red.")
    shutil.move(folder.with_name("away"), folder)
    until(lambda: names() == {"docs/key.txt", "docs/boat.txt"})
    assert [one.name for one in Happenings(followed).all()].count("docs/photo.png") == 1


def test_a_second_copy_is_told_and_takes_the_place_of_the_first_when_that_goes(followed, folder):
    until(lambda: "docs/key.txt" in latest(followed))
    shutil.copy(folder / "key.txt", folder / "a copy.txt")
    until(lambda: latest(followed).get("docs/a copy.txt") == ("skipped", "it is already here as “docs/key.txt”"))
    (folder / "key.txt").unlink()
    until(lambda: latest(followed)["docs/a copy.txt"] == ("added", ""))
    assert [one.name for one in list_documents("docs", followed)] == ["docs/a copy.txt"]


def test_what_sequitur_writes_is_not_followed(settings, tmp_path):
    for folder in (tmp_path, settings.data_dir, settings.data_dir / "libraries"):
        with pytest.raises(LibraryError, match="writes itself"):
            Watch(folder, "docs", settings)


def test_a_file_that_changes_while_it_is_read_is_told_and_the_rest_is_added(settings, folder, monkeypatch):
    from assistant.library import index

    read = index.read_here

    def reading(path: Path, document: str, source: str, progress: Progress) -> Content:
        content = read(path, document, source, progress)
        if path.name == "key.txt":
            path.write_text("The key was moved.")
        return content

    (folder / "car.txt").write_text("The car is old.")
    monkeypatch.setattr(index, "read_here", reading)
    outcomes = {one.name: (one.status, one.reason) for one in add_documents("docs", [folder], settings)}
    assert outcomes["docs/car.txt"][0] == "added"
    assert outcomes["docs/key.txt"] == (
        "skipped",
        "it changed while it was read; add it again when it is finished",
    )


def test_what_comes_while_the_folder_is_read_for_the_first_time_is_not_missed(settings, folder, monkeypatch):
    from assistant.library import index

    read = index.read_apart

    def reading(path: Path, *rest: Any) -> Content:
        if path.name == "key.txt":
            (folder / "car.txt").write_text("The car is old.")
            sleep(0.5)
        return read(path, *rest)

    monkeypatch.setattr(index, "read_apart", reading)
    watching = Watch(folder, "docs", settings)
    until(lambda: latest(settings).get("docs/car.txt") == ("added", ""))
    watching.close()


def test_a_damaged_list_of_happenings_is_read_as_far_as_it_can_be(settings):
    happenings = Happenings(settings)
    happenings.add([("a.txt", "added", "")])
    file = settings.data_dir / "watched.jsonl"
    file.write_text(file.read_text() + "{broken\n")
    happenings.add([("b.txt", "added", "")])
    assert [one.name for one in happenings.all()] == ["b.txt", "a.txt"]


def test_who_is_alone_follows_a_folder_and_sees_what_came_of_it(settings, folder):
    engine, alone = connect("sqlite://"), [True]
    arrivals, changed = Arrivals(), list[str]()
    view = View(Pieces(*(one.name for one in fields(Pieces))), Conversations(engine), Ptkb(engine), Runs())
    followed = FollowedFolder(settings, lambda _user: alone[0], arrivals, changed.append)
    library = DocumentPanel(view, OwnDocuments(settings), arrivals, followed)
    for user, where in ((DEFAULT_USER, "docs"), (DEFAULT_USER, str(folder / "none")), ("ann", str(folder))):
        with pytest.raises(LibraryError):
            library.follow(Tab(user, data={"folder": where}))
    library.follow(Tab(DEFAULT_USER, data={"folder": str(folder)}))
    until(lambda: "docs/photo.png" in str(library.show(DEFAULT_USER)["documents"]))
    assert "docs/key.txt" in library.show(DEFAULT_USER)["documents"]
    assert str(folder) not in library.show("ann")["documents"]
    assert changed == [DEFAULT_USER]
    followed.close()
    again = FollowedFolder(settings, lambda _user: alone[0], arrivals)
    again.start()
    assert again.folder == str(folder)
    library.follow(Tab(DEFAULT_USER, data={"folder": ""}))
    again.close()
    again.start()
    assert not again.folder
    alone[0] = False
    with pytest.raises(LibraryError, match="nobody needs to log in"):
        again.choose(DEFAULT_USER, str(folder))


def test_a_deleted_account_follows_no_folder_and_forgets_its_files(settings, folder):
    engine, arrivals = connect("sqlite://"), Arrivals()
    conversations = Conversations(engine)
    view = View(Pieces(*(one.name for one in fields(Pieces))), conversations, Ptkb(engine), Runs())
    followed = FollowedFolder(settings, lambda _user: True, arrivals)
    followed.choose(DEFAULT_USER, str(folder))
    until(lambda: "docs/key.txt" in latest(settings))
    panel = AccountPanel(view, Accounts(settings, engine, conversations), followed)
    panel.remove(Tab(DEFAULT_USER, data={"word": "delete"}))
    assert (followed.folder, followed.happenings(), chosen_folder(settings)) == ("", [], None)
    (folder / "later.txt").write_text("Oats are a cereal.")
    again = FollowedFolder(settings, lambda _user: True, arrivals)
    again.start()
    assert not again.folder
    assert not list_documents(own_library(DEFAULT_USER), settings)


def test_the_setting_names_a_folder_and_the_command_lists_what_came_of_it(settings, folder):
    followed = FollowedFolder(settings.model_copy(update={"library_folder": folder}), lambda _user: True, Arrivals())
    followed.start()
    until(lambda: "docs/key.txt" in latest(settings))
    followed.close()
    listed = CliRunner().invoke(app, ["index", "--list", "--data-dir", str(settings.data_dir)])
    assert listed.exit_code == 0
    assert "docs/key.txt" in listed.output
