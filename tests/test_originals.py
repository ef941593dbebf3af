"""The originals of uploaded documents: kept, replaced and removed with them, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.errors import LibraryError
from assistant.library.index import add_documents, list_documents, originals_of, remove_documents
from assistant.library.originals import FOLDER, Originals, is_intact
from assistant.library.shelves import library_folder, open_library
from assistant.settings import Settings
from tests.test_readers import make_pdf

MINE = "user-0123456789abcdef"
DIGEST = "0" * 64


def kept(settings: Settings) -> list[bytes]:
    folder = library_folder(MINE, settings) / FOLDER
    return sorted(path.read_bytes() for path in folder.iterdir()) if folder.is_dir() else []


def add(settings: Settings, *files: Path, uploaded: bool = True) -> list[str]:
    return [one.status for one in add_documents(MINE, files, settings, uploaded=uploaded)]


@pytest.mark.lucene
def test_they_come_change_and_go_with_their_documents(settings: Settings, tmp_path: Path) -> None:
    key, car = tmp_path / "key.txt", tmp_path / "car.txt"
    key.write_text("The key is here.")
    car.write_text("The car is old.")
    assert add(settings, key, car) == ["added", "added"]
    assert kept(settings) == [b"The car is old.", b"The key is here."]
    key.write_text("The key is there.")
    assert add(settings, key) == ["replaced"]
    assert kept(settings) == [b"The car is old.", b"The key is there."]
    assert add(settings, key) == ["unchanged"]
    remove_documents(MINE, ["key.txt"], settings)
    assert kept(settings) == [b"The car is old."]
    assert [one.text for one in open_library(MINE, settings).search("car", 3)] == ["The car is old."]


@pytest.mark.lucene
def test_what_was_added_before_originals_were_kept_is_added_anew_with_its_pages(
    settings: Settings, tmp_path: Path
) -> None:
    file = make_pdf(tmp_path / "a.pdf", "Oats are a cereal.", "The key hangs behind the door.")
    add(settings, file)
    [document] = list_documents(MINE, settings)
    path = originals_of(MINE, settings).path(document.hash)
    assert path
    assert path.read_bytes() == file.read_bytes()
    path.unlink()
    assert add(settings, file) == ["replaced"]
    assert originals_of(MINE, settings).path(document.hash) == path
    found = open_library(MINE, settings).search("key door", 1)[0]
    assert found.page in {1, 2}
    assert found.source == f"a.pdf, page {found.page}"


@pytest.mark.lucene
def test_of_files_that_stay_where_they_are_no_copy_is_kept(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "key.txt").write_text("The key is here.")
    assert add(settings, tmp_path / "key.txt", uploaded=False) == ["added"]
    assert kept(settings) == []


@pytest.mark.lucene
def test_what_cannot_be_read_is_not_kept(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"no PDF")
    assert add(settings, tmp_path / "a.pdf") == ["skipped"]
    assert kept(settings) == []


def test_a_copy_that_breaks_off_is_no_original_and_is_swept_away(tmp_path: Path) -> None:
    originals = Originals(tmp_path)
    with pytest.raises(LibraryError, match="no copy of it can be kept"):
        originals.store(tmp_path / "gone.txt", DIGEST)
    assert originals.path(DIGEST) is None
    originals.sweep(())
    assert list((tmp_path / FOLDER).iterdir()) == []


def test_nothing_is_found_under_no_hash(tmp_path: Path) -> None:
    assert Originals(tmp_path).path("") is None
    Originals(tmp_path).sweep(())


@pytest.mark.lucene
def test_a_copy_that_was_damaged_is_told_from_a_whole_one_and_made_anew(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "key.txt"
    file.write_text("The key is here.")
    add(settings, file)
    [document] = list_documents(MINE, settings)
    path = originals_of(MINE, settings).path(document.hash)
    assert path
    assert is_intact(path)
    path.write_text("The key is")
    assert not is_intact(path)
    assert add(settings, file) == ["replaced"]
    assert is_intact(path)
    path.unlink()
    assert not is_intact(path)
