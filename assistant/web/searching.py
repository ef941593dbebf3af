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
from assistant.library.finding import EVERYTHING, MOST, Found, find
from assistant.settings import Settings
from assistant.web import render
from assistant.web.entered import user_of
from assistant.web.look import style
from assistant.web.original import opened
from assistant.web.owners import PASSAGE, SEARCH
from assistant.web.page import House

A_PAGE = 10
LAST = MOST // A_PAGE
QUERY_CHARS = 500
STYLES = ("theme", "parts", "notices", "panel", "viewer", "searching")
GONE = "There is no such passage any more; its document was removed, or is another one by now."


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person searches for, where, and which page of it, from 1, they look at."""

    words: str = ""
    library: str = EVERYTHING
    page: int = 1

    @classmethod
    def of(cls, query: QueryParams) -> Asked:
        """What an address says; what can't be a number is the first page."""
        page = query.get("page", "")
        number = int(page) if page.isdecimal() and page.isascii() and len(page) < 4 else 1
        words = " ".join(query.get("words", "").split())[:QUERY_CHARS]
        return cls(words, query.get("library", EVERYTHING), min(max(number, 1), LAST))


@dataclass(frozen=True, slots=True)
class Results:
    """A page of what was found: from the passage of the number `start`, counted from 0, and whether there are more."""

    found: Sequence[Found]
    start: int
    more: bool


def searching(house: House) -> list[Route]:
    """The routes of both pages, each user's to that user alone."""

    def search(request: Request) -> Response:
        user, asked = user_of(request.scope) or "", Asked.of(request.query_params)
        places, results, problem = libraries(user, house.settings), None, ""
        try:
            results = results_of(asked, user, places, house.settings) if asked.words else None
        except LibraryError as error:
            problem = str(error)
        changing = tuple(told(user, asked.library, places, house))
        values = {"asked": asked, "places": places, "results": results, "problem": problem, "changing": changing}
        return _page("searching", {**values, "last": LAST, "most": MOST})

    def passage(request: Request) -> Response:
        from assistant.library.shelves import is_library, library_folder, open_library, own_library  # noqa: PLC0415

        user, name = user_of(request.scope) or "", request.query_params.get("id", "")[:200]
        own = own_library(user)
        has_own = is_library(library_folder(own, house.settings))
        [found] = open_library(own, house.settings).get([name]) if has_own and name else [None]
        shown = opened(house.documents.list(user), found, found.text) if found else None
        values = {"passage": found, "opened": shown, "gone": GONE, "asked": Asked.of(request.query_params)}
        return _page("passage", values, 200 if found else 404)

    return [Route(SEARCH, search, methods=["GET"]), Route(PASSAGE, passage, methods=["GET"])]


def libraries(user: str, settings: Settings) -> dict[str, str]:
    """What people read of each library and collection that this user may search, by its name."""
    from assistant.library.shelves import library_names, own_library  # noqa: PLC0415 - imports Lucene's Python

    own = own_library(user)
    names = dict.fromkeys([settings.library, *library_names(settings, user)])
    titles = {name: "My documents" if name == own else f"{name.capitalize()} library" for name in names}
    marked = {MARK + name: f"Collection {MARK}{name}" for name in collections(user, settings)}
    return {EVERYTHING: "Everything", **titles, **marked}


def results_of(asked: Asked, user: str, places: dict[str, str], settings: Settings) -> Results:
    """The page of results that was asked for.

    Raises:
        LibraryError: it is none of the `places` that is searched, there is nothing in it, or it can't be read.
    """
    if asked.library not in places:
        raise LibraryError("There is no such library or collection here; choose one of those in the menu.")
    start = A_PAGE * (asked.page - 1)
    found = find(asked.words, asked.library, user, settings, start + A_PAGE + 1)
    return Results(found[start : start + A_PAGE], start, len(found) > start + A_PAGE)


def told(user: str, library: str, places: dict[str, str], house: House) -> Iterator[str]:
    """A sentence for each library searched that is being made or changed, since not all is found in it yet."""
    from assistant.library.shelves import is_changing, own_library  # noqa: PLC0415

    own = own_library(user)
    searched = {own if one.startswith(MARK) else one for one in (places if library == EVERYTHING else [library])}
    arriving = house.chat.arrivals.wait(user)
    for name in sorted({*searched, own} if library == EVERYTHING else searched):
        if name == own and arriving:
            far = f" ({arriving.done} %)" if arriving.total else ""
            yield f"Documents of yours are being added{far}; what they say is found when that is done."
        elif name in places and is_changing(name, house.settings):
            yield f"{places[name]}: it is being indexed; what comes in now is found when that is done."


def _page(name: str, values: Mapping[str, object], status: int = 200) -> Response:
    return HTMLResponse(render.render(name, style=style(STYLES), **values), status)
