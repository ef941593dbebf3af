"""The parts of the documents' tab beneath the list: search, collections, uses, and work on whole documents."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from assistant.errors import LibraryError
from assistant.library.finding import find, word_spans
from assistant.library.index import add_documents, list_documents
from assistant.library.shelves import own_library
from assistant.llm.models import Models
from assistant.runs import Runs
from assistant.settings import Settings
from assistant.store.conversations import Conversations
from assistant.store.database import connect
from assistant.text.sentences import quote
from assistant.types import Citation, Turn
from assistant.web.chat import ChatHandlers
from assistant.web.collected import CollectionPanel
from assistant.web.library import OwnDocuments
from assistant.web.tab import Tab, Updates
from assistant.web.view import Pieces, View
from assistant.web.whole import WholeWork
from ptkb.store import Ptkb

pytestmark = pytest.mark.lucene


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A library of Ann's with two documents."""
    folder = tmp_path_factory.mktemp("documents")
    texts = {"oats.txt": "Oats are cooked for <ten> minutes.", "tea.txt": "Tea is cooked for five minutes."}
    for name, text in texts.items():
        (folder / name).write_text(text)
    settings = Settings(data_dir=folder / "data", database="")
    add_documents(own_library("ann"), [Path(folder / name) for name in texts], settings, uploaded=True)
    return settings


@pytest.fixture(scope="module")
def view() -> View:
    engine = connect("sqlite://")
    return View(Pieces(*(one.name for one in fields(Pieces))), Conversations(engine), Ptkb(engine), Runs())


@pytest.fixture(scope="module")
def collected(view: View, settings: Settings) -> CollectionPanel:
    return CollectionPanel(view, OwnDocuments(settings), settings)


def tab(user: str = "ann", **data: str) -> Tab:
    return Tab(user, data=data)


def html(updates: Updates) -> str:
    [shown] = updates.values()
    return str(shown)


def document(name: str, settings: Settings) -> str:
    return next(one.id for one in list_documents(own_library("ann"), settings) if one.name == name)


def test_words_of_the_query_are_found_in_their_forms() -> None:
    text = "Oats cooking: cooked oats."
    assert [quote(text, span) for span in word_spans("cooks OATS", text)] == ["Oats", "oats"]
    assert [quote(text, span) for span in word_spans("cooked", text)] == ["cooked"]


def test_documents_are_searched_without_a_model_and_words_are_marked(
    collected: CollectionPanel, settings: Settings
) -> None:
    shown = html(collected.find(tab(query="oats minutes")))
    assert "<mark>Oats</mark> are cooked for &lt;ten&gt; <mark>minutes</mark>." in shown
    assert shown.index("oats.txt</p>") < shown.index("tea.txt</p>")
    assert "No passage has these words." in html(collected.find(tab(query="zebra")))
    with pytest.raises(LibraryError, match="Type the words"):
        collected.find(tab(query=" "))
    with pytest.raises(LibraryError, match="no collection '@Food'"):
        find("oats", "@Food", "ann", settings)


def test_a_collection_is_made_filled_searched_and_removed(collected: CollectionPanel, settings: Settings) -> None:
    oats = document("oats.txt", settings)
    assert "Nothing is in it yet." in html(collected.make(tab(name="@Food")))
    collected.put(tab(name="Food", document=oats))
    shown = html(collected.find(tab(query="minutes", collection="Food")))
    assert "oats.txt</p>" in shown
    assert "tea.txt</p>" not in shown
    assert "Nothing is in it yet." in html(collected.put(tab(name="Food", document=oats, inside="no")))
    with pytest.raises(LibraryError, match="is empty"):
        collected.find(tab(query="minutes", collection="Food"))
    assert "@Food" not in html(collected.unmake(tab(name="Food")))


def test_what_a_document_was_used_for_names_the_conversations_that_cite_it(
    collected: CollectionPanel, view: View, settings: Settings
) -> None:
    oats = document("oats.txt", settings)
    for user in ("ann", "bob"):
        talk = view.conversations.new(user, f"Breakfast of {user}")
        cited = Citation(1, f"{oats}-1", 0, 4, "Oats.", "Oats", 1.0)
        view.conversations.save_turn(user, talk.id, Turn("How long?", citations=(cited,), status="done"))
    shown = html(collected.uses(tab(document=oats)))
    assert "Breakfast of ann" in shown
    assert "How long?" in shown
    assert "bob" not in shown
    assert "No conversation cites it." in html(collected.uses(tab(document=document("tea.txt", settings))))


def test_what_work_takes_is_told_before_it_begins(view: View, settings: Settings) -> None:
    models = cast("Models", SimpleNamespace(running=None))
    work = WholeWork(view, cast("ChatHandlers", None), OwnDocuments(settings), models, settings)
    oats, tea = document("oats.txt", settings), document("tea.txt", settings)
    assert "Summarise oats.txt: 1 passage, 2 calls of the model" in html(work.plan(tab(task="summary", document=oats)))
    assert "compared without the model" in html(work.plan(tab(task="changes", document=oats, other=tea)))
    for asked, reason in (
        ({"task": "compare", "document": oats, "other": oats}, "itself"),
        ({"task": "compare", "document": oats}, "two documents"),
        ({"task": "table", "document": oats, "columns": " , "}, "columns"),
        ({"task": "dance", "document": oats}, "reload the page"),
        ({"task": "summary", "document": "none"}, "no document"),
    ):
        with pytest.raises(LibraryError, match=reason):
            work.plan(Tab("ann", data=asked))
    with pytest.raises(LibraryError, match="no document"):
        work.plan(tab("bob", task="summary", document=oats))
