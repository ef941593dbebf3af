"""Collections of a user's documents: named, asked alone, and nobody else's."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest

from assistant.errors import LibraryError
from assistant.library.collections import collection_documents, collections, make, put, remove, split_mention
from assistant.library.index import add_documents, list_documents, remove_documents
from assistant.library.passages import document_of
from assistant.library.shelves import own_library
from assistant.retrieve.own_documents import DocumentFilter
from assistant.settings import Settings
from assistant.types import Passage
from tests.scripted import FixedRetriever


def refused(act: object, *given: object) -> str:
    assert callable(act)
    with pytest.raises(LibraryError) as error:
        act(*given)
    return str(error.value)


def ids(user: str, settings: Settings) -> dict[str, str]:
    return {one.name: one.id for one in list_documents(own_library(user), settings)}


@pytest.fixture
def documents(settings: Settings, tmp_path: Path) -> dict[str, str]:
    for name in ("oats.txt", "tea.txt"):
        (tmp_path / name).write_text(f"{name} is read.")
    add_documents(own_library("ann"), [tmp_path / "oats.txt", tmp_path / "tea.txt"], settings, uploaded=True)
    return ids("ann", settings)


@pytest.mark.lucene
def test_a_document_is_in_as_many_collections_as_it_is_put_into(settings: Settings, documents: dict[str, str]) -> None:
    for name in ("Food", "work"):
        make("ann", name, settings)
    for name, document in [("food", "oats.txt"), ("Food", "tea.txt"), ("work", "tea.txt"), ("work", "tea.txt")]:
        put("ann", name, documents[document], settings)
    assert collections("ann", settings) == {
        "Food": (documents["oats.txt"], documents["tea.txt"]),
        "work": (documents["tea.txt"],),
    }
    put("ann", "Food", documents["tea.txt"], settings, inside=False)
    assert collection_documents("@food", "ann", settings) == (documents["oats.txt"],)
    assert collection_documents("starter", "ann", settings) is None
    remove_documents(own_library("ann"), ["oats.txt"], settings)
    assert "@Food is empty" in refused(collection_documents, "@Food", "ann", settings)
    remove("ann", "food", settings)
    assert list(collections("ann", settings)) == ["work"]


@pytest.mark.lucene
def test_what_cant_be_is_refused_and_others_see_nothing(settings: Settings, documents: dict[str, str]) -> None:
    make("ann", "Food", settings)
    assert "There is a collection 'Food' already" in refused(make, "ann", "food", settings)
    for name in ("", "all", "a b", "-a", "a" * 41, "../x"):
        assert "can't be named" in refused(make, "ann", name, settings)
    assert "no such document" in refused(put, "ann", "Food", "none", settings)
    assert collections("bob", settings) == {}
    assert "you have none yet" in refused(collection_documents, "@Food", "bob", settings)
    assert "no such document" in refused(put, "bob", "Food", documents["oats.txt"], settings)


def test_a_message_chooses_by_what_it_begins_with(settings: Settings) -> None:
    make("ann", "Food", settings)
    assert split_mention("@food, how long?", "ann", settings) == ("@Food", "how long?")
    assert split_mention("@all how long?", "ann", settings) == ("@all", "how long?")
    assert split_mention("Write to a@b.org or @none", "ann", settings) == ("", "Write to a@b.org or @none")
    assert "yours are @Food" in refused(split_mention, "@none how long?", "ann", settings)
    assert "question behind @Food" in refused(split_mention, "@Food", "ann", settings)


def test_search_within_documents_looks_past_the_others() -> None:
    passages = [Passage(f"{'a' if n % 50 else 'b'}-{n}", "t", "x") for n in range(1, 201)]
    inside = DocumentFilter(FixedRetriever(passages), {"b"}, document_of)
    assert [one.id for one in inside.search("x", 3)] == ["b-50", "b-100", "b-150"]
    assert [one.id for one in inside.search("x", 9)] == ["b-50", "b-100", "b-150", "b-200"]
    assert inside.search("x", 0) == []


@pytest.mark.parametrize("name", ["रेसिपी", "สูตรอาหาร", "été", "食谱"])
def test_names_of_any_script_are_names_however_their_letters_are_put_together(settings: Settings, name: str) -> None:
    make("ann", unicodedata.normalize("NFD", name), settings)
    assert list(collections("ann", settings)) == [unicodedata.normalize("NFC", name)]
    for form in ("NFC", "NFD"):
        mentioned = f"@{unicodedata.normalize(form, name)} how long?"
        assert split_mention(mentioned, "ann", settings) == (f"@{unicodedata.normalize('NFC', name)}", "how long?")
    for wrong in ("\u0301", "a b", "-", "a!"):
        assert "can't be named" in refused(make, "ann", wrong, settings)
