"""Search without the model, as a page of its own: plain HTML at an address that can be kept, and sent by a form.

Each passage of a user's own document leads to a second page, on which the document is opened at it as a citation's is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from assistant.errors import LibraryError
from assistant.library.collections import MARK, collections
from assistant.library.finding import EVERYTHING, RESULTS_MOST, SearchHit, find
from assistant.library.shelves import (
    is_changing,
    is_library,
    library_folder,
    library_names,
    open_library,
    own_library,
)
from assistant.settings import Settings
from assistant.web import render
from assistant.web.entered import user_of
from assistant.web.look import style
from assistant.web.original import open_document
from assistant.web.owners import PASSAGE, SEARCH
from assistant.web.page import House

PAGE_SIZE = 10
LAST_PAGE = RESULTS_MOST // PAGE_SIZE
QUERY_CHARS = 500
STYLES = ("theme", "parts", "notices", "panel", "viewer", "searching")
PASSAGE_GONE = "There is no such passage any more; its document was removed, or is another one by now."


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What a person searches for, where, and which page of it, from 1, they look at."""

    words: str = ""
    library: str = EVERYTHING
    page: int = 1

    @classmethod
    def of(cls, query: QueryParams) -> SearchRequest:
        """What an address says; what can't be a number is the first page."""
        page = query.get("page", "")
        number = int(page) if page.isdecimal() and page.isascii() and len(page) < 4 else 1
        words = " ".join(query.get("words", "").split())[:QUERY_CHARS]
        return cls(words, query.get("library", EVERYTHING), min(max(number, 1), LAST_PAGE))


@dataclass(frozen=True, slots=True)
class Results:
    """A page of what was found: from the passage of the number `start`, counted from 0, and whether there are more."""

    found: Sequence[SearchHit]
    start: int
    more: bool


def searching(house: House) -> list[Route]:
    """The routes of both pages, each user's to that user alone."""

    def search(request: Request) -> Response:
        user, query = user_of(request.scope) or "", SearchRequest.of(request.query_params)
        titles, results, problem = libraries(user, house.settings), None, ""
        try:
            results = results_of(query, user, titles, house.settings) if query.words else None
        except LibraryError as error:
            problem = str(error)
        changing = tuple(indexing_notes(user, query.library, titles, house))
        values = {"asked": query, "places": titles, "results": results, "problem": problem, "changing": changing}
        return _page("searching", {**values, "last": LAST_PAGE, "most": RESULTS_MOST})

    def passage(request: Request) -> Response:
        user, name = user_of(request.scope) or "", request.query_params.get("id", "")[:200]
        own_name = own_library(user)
        has_own = is_library(library_folder(own_name, house.settings))
        [own_passage] = open_library(own_name, house.settings).get([name]) if has_own and name else [None]
        opened_document = (
            open_document(house.documents.list(user), own_passage, own_passage.text) if own_passage else None
        )
        values = {
            "passage": own_passage,
            "opened": opened_document,
            "gone": PASSAGE_GONE,
            "asked": SearchRequest.of(request.query_params),
        }
        return _page("passage", values, 200 if own_passage else 404)

    return [Route(SEARCH, search, methods=["GET"]), Route(PASSAGE, passage, methods=["GET"])]


def libraries(user: str, settings: Settings) -> dict[str, str]:
    """What people read of each library and collection that this user may search, by its name."""
    own_name = own_library(user)
    names = dict.fromkeys([settings.library, *library_names(settings, user)])
    library_titles = {name: "My documents" if name == own_name else f"{name.capitalize()} library" for name in names}
    collection_titles = {MARK + name: f"Collection {MARK}{name}" for name in collections(user, settings)}
    return {EVERYTHING: "Everything", **library_titles, **collection_titles}


def results_of(query: SearchRequest, user: str, titles: dict[str, str], settings: Settings) -> Results:
    """The page of results that was asked for.

    Raises:
        LibraryError: it is none of the `titles` that is searched, there is nothing in it, or it can't be read.
    """
    if query.library not in titles:
        raise LibraryError("There is no such library or collection here; choose one of those in the menu.")
    start = PAGE_SIZE * (query.page - 1)
    hits = find(query.words, query.library, user, settings, start + PAGE_SIZE + 1)
    return Results(hits[start : start + PAGE_SIZE], start, len(hits) > start + PAGE_SIZE)


def indexing_notes(user: str, library: str, titles: dict[str, str], house: House) -> Iterator[str]:
    """A sentence for each library searched that is being made or changed, since not all is found in it yet."""
    own_name = own_library(user)
    searched_names = {
        own_name if searched_name.startswith(MARK) else searched_name
        for searched_name in (titles if library == EVERYTHING else [library])
    }
    arrival = house.chat.arrivals.wait(user)
    for name in sorted({*searched_names, own_name} if library == EVERYTHING else searched_names):
        if name == own_name and arrival:
            progress = f" ({arrival.done} %)" if arrival.total else ""
            yield f"Documents of yours are being added{progress}; what they say is found when that is done."
        elif name in titles and is_changing(name, house.settings):
            yield f"{titles[name]}: it is being indexed; what comes in now is found when that is done."


def _page(name: str, values: Mapping[str, object], status: int = 200) -> Response:
    return HTMLResponse(render.render(name, style=style(STYLES), **values), status)
