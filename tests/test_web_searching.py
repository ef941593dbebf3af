"""The pages of search: what each user finds there, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Event

import httpx
import pytest
from starlette.datastructures import QueryParams

from assistant.library.collections import FILE, make
from assistant.library.finding import RESULTS_MOST, find, word_spans
from assistant.library.index import add_documents
from assistant.library.shelves import library_folder, own_library
from assistant.settings import Settings
from assistant.text.sentences import quote
from assistant.web.library import OwnDocuments
from assistant.web.searching import LAST_PAGE, PAGE_SIZE, SearchRequest
from assistant.web.server import Server, serve
from tests.browser.fake import HOSTILE, Loaded, Script, house

pytestmark = pytest.mark.lucene

PASSWORD = "correct horse"


@dataclass(frozen=True)
class Site:
    server: Server

    @property
    def settings(self) -> Settings:
        return self.server.house.settings

    @contextmanager
    def of(self, user: str) -> Iterator[httpx.Client]:
        """A browser in which this user is logged in; nobody is where there is no name."""
        with httpx.Client(base_url=self.server.url, timeout=60) as client:
            if user:
                assert client.post("login", data={"username": user, "password": PASSWORD}).status_code == 200
            yield client


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Ann and Bob have a document each, and there is a library of all."""
    folder = tmp_path_factory.mktemp("searching")
    built, logins = house(folder / "data", Script(), Loaded())
    texts = {
        "ann.txt": f"Oats of Ann are cooked. {HOSTILE}",
        "bob.txt": "Oats of Bob are cooked.",
        "all.txt": "Oats of all are cooked.",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    for user in ("ann", "bob"):
        logins.add(user, PASSWORD)
        documents = OwnDocuments(built.settings)
        assert documents.add(user, [folder / f"{user}.txt"], lambda *_: None, Event()) == []
    add_documents("common", [folder / "all.txt"], built.settings)
    server = serve(replace(built, documents=documents), logins)
    yield Site(server)
    server.close()


def test_each_user_searches_what_is_theirs_and_what_is_everybodys(site: Site) -> None:
    with site.of("ann") as ann:
        said = ann.get("search", params={"words": "cooked"}).text
        assert "of Ann" in said
        assert "of all" in said
        assert "of Bob" not in said
        assert "<script>window" not in said
        assert said.count('href="passage?') == 1
        assert ">Common library<" in said
        assert "of Ann" not in ann.get("search", params={"words": "cooked", "library": "common"}).text
        for other in (own_library("bob"), "@homes", "none", "../data"):
            refused = ann.get("search", params={"words": "cooked", "library": other})
            assert "There is no such library or collection here" in refused.text
            assert "of Bob" not in refused.text


def test_a_passage_is_opened_for_its_owner_alone(site: Site) -> None:
    [found] = find("Bob", own_library("bob"), "bob", site.settings)
    with site.of("bob") as bob, site.of("ann") as ann, site.of("") as stranger:
        asked = {"id": found.passage.id}
        mine = bob.get("passage", params=asked)
        assert mine.status_code == 200
        assert '<mark id="at">Oats of Bob are cooked.</mark>' in mine.text
        assert ann.get("passage", params=asked).status_code == 404
        assert bob.get("passage").status_code == 404
        assert "There is no such passage any more" in ann.get("passage", params=asked).text
        for page in ("passage", "search"):
            refused = stranger.get(page, params=asked)
            assert (refused.status_code, refused.headers["location"]) == (303, "/")
            assert bob.post(page, data=asked).status_code in {403, 405}


def test_the_pages_run_no_script_that_is_not_a_file_of_ours(site: Site) -> None:
    with site.of("ann") as ann:
        for page in ("search?words=cooked", "passage?id=x"):
            answer = ann.get(page)
            assert "script-src 'self';" in answer.headers["Content-Security-Policy"]
            assert answer.headers["Cache-Control"] == "no-store"
            assert answer.text.count("<script") == 1


def test_an_empty_collection_and_no_words_are_told(site: Site) -> None:
    make("ann", "Empty", site.settings)
    with site.of("ann") as ann:
        assert "Type words, and the passages" in ann.get("search", params={"words": " "}).text
        assert "is empty" in ann.get("search", params={"words": "oats", "library": "@Empty"}).text


def test_a_file_that_cannot_be_read_is_told(site: Site) -> None:
    file = library_folder(own_library("ann"), site.settings) / FILE
    file.write_text("{")
    try:
        with site.of("ann") as ann:
            answer = ann.get("search", params={"words": "cooked"})
            assert answer.status_code == 503
            assert "can't be read; repair the file, or remove it." in answer.text
    finally:
        file.unlink()


@pytest.mark.parametrize(("said", "page"), [("2", 2), ("0", 1), ("-1", 1), ("x", 1), ("999", LAST_PAGE), ("9" * 99, 1)])
def test_a_page_that_cannot_be_is_another(said: str, page: int) -> None:
    assert SearchRequest.of(QueryParams({"words": " a \n b ", "page": said})) == SearchRequest("a b", page=page)
    assert LAST_PAGE * PAGE_SIZE == RESULTS_MOST


def test_words_that_search_passes_over_are_not_marked_unless_there_are_no_others() -> None:
    text = "The oats are on the table."
    assert [quote(text, span) for span in word_spans("what are the oats", text)] == ["oats"]
    assert [quote(text, span) for span in word_spans("The", text)] == ["The", "the"]
