"""What of Gradio can be reached, and by whom: a tab's session belongs to the login that used it first.

Gradio asks for a login, not for whose: whoever knew the id of a tab's session could read and steer that tab, and some
of its routes ask for nothing. Here only the routes that the page needs are reached, none of which takes the id of an
event, and a session is nobody's but its user's.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from assistant.errors import StoreError
from assistant.web.bodies import API, JOIN, LOGIN, UPLOAD, replayed
from assistant.web.entered import find_user

_LOG = logging.getLogger(__name__)
LOGOUT, MARK, DOCUMENTS_MARK = "/logout", "/model-mark", "/documents-mark"
HEALTH, READINESS, METRICS = "/healthz", "/readyz", "/metrics"
DATA, PROGRESS = "/gradio_api/queue/data", "/gradio_api/upload_progress"
# Reached without a login: the page on which to log in, with what it is made of, and what the programs of users ask,
# who show a token. The page asks the others whether the server is there and lets it in.
PUBLIC_PATHS = {"", LOGIN, "/favicon.ico", "/theme.css", "/gradio_api/app_id", "/gradio_api/login_check"}
PUBLIC_PATHS |= {"/gradio_api/startup-events"}
MONITORING_PATHS = {HEALTH, READINESS, METRICS}  # asked by what watches over the process; they tell nothing of anybody
PUBLIC_PATHS |= MONITORING_PATHS
PUBLIC_FOLDERS = ("/js/", "/assets/", "/svelte/", "/static/", API)
PAGES = SEARCH, PASSAGE = "/search", "/passage"  # pages of their own
ORIGINALS = "/original"  # the files that users uploaded, each under the id of its document
PAGE_PATHS = {"/config", SEARCH, PASSAGE, LOGOUT, MARK, DOCUMENTS_MARK, UPLOAD, PROGRESS, JOIN, DATA}
MAX_SESSIONS_PER_USER = 1000
NO_LOGIN = "Nobody is logged in here; log in first."
NOT_THERE = "There is nothing here."
OTHERS_TAB = "This tab belongs to another login; reload the page."
NO_UPLOAD = "This file was not uploaded here; choose it again."
NO_EVENT = "This is no event of the page; reload the page."


class AccessGuard:
    """ASGI middleware: refuses what the page doesn't need, strangers, and users who name another's session."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._sessions = TabSessions()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, as ASGI has it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"].rstrip("/")
        try:
            user = None if path in MONITORING_PATHS or path.startswith(PUBLIC_FOLDERS) else await find_user(scope)
        except StoreError as error:
            _LOG.error("%s", error)
            await PlainTextResponse(str(error), 503)(scope, receive, send)
            return
        refusal = path_refusal(path, scope["method"], user)
        if not refusal and user:
            if path == JOIN:
                body = await Request(scope, receive).body()
                refusal, receive = self._event_refusal(scope, user, body), replayed(body, receive)
            else:
                refusal = self._query_refusal(scope, user)
        if refusal:
            await _refusal_response(scope, path, *refusal)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _event_refusal(self, scope: Scope, user: str, body: bytes) -> tuple[int, str] | None:
        """Why an event is refused, if it is."""
        try:
            event = json.loads(body)
        except (ValueError, RecursionError):
            return 400, NO_EVENT
        session = event.get("session_hash") if isinstance(event, dict) else None
        if not isinstance(session, str):
            return 400, NO_EVENT
        if not self._sessions.claim(session, user):
            return 403, OTHERS_TAB
        folder = scope["app"].uploaded_file_dir
        return None if all(is_inside(path, folder) for path in files(event)) else (403, NO_UPLOAD)

    def _query_refusal(self, scope: Scope, user: str) -> tuple[int, str] | None:
        """Why a request that names a session or an upload in its address is refused, if it is."""
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        names = [name for key in ("session_hash", "upload_id") for name in query.get(key, ())]
        return None if all(self._sessions.claim(name, user) for name in names) else (403, OTHERS_TAB)


def _refusal_response(scope: Scope, path: str, code: int, sentence: str) -> Response:
    """The refusal; who opens a page of its own without a login is led to where one logs in."""
    if sentence == NO_LOGIN and path in PAGES:
        return RedirectResponse(f"{scope.get('root_path', '')}/", 303)
    return PlainTextResponse(sentence, code)


class TabSessions:
    """Whose the ids are that browsers make up: theirs who used them first. Of each user the newest are known."""

    def __init__(self) -> None:
        self._owner_by_session: dict[str, str] = {}
        self._sessions_by_user: dict[str, OrderedDict[str, None]] = {}

    def claim(self, session: str, user: str) -> bool:
        """Whether it is this user's, which it is from now on if it was nobody's."""
        owner = self._owner_by_session.setdefault(session, user)
        if owner != user:
            return False
        own_sessions = self._sessions_by_user.setdefault(user, OrderedDict())
        own_sessions[session] = None
        own_sessions.move_to_end(session)
        if len(own_sessions) > MAX_SESSIONS_PER_USER:
            del self._owner_by_session[own_sessions.popitem(last=False)[0]]
        return True


def path_refusal(path: str, method: str, user: str | None) -> tuple[int, str] | None:
    """Why a path (without a slash at its end) is not reached by `user`, who may be nobody: a status and a sentence."""
    if path in PUBLIC_PATHS or path.startswith(PUBLIC_FOLDERS) or method == "OPTIONS":
        return None
    if user is None:
        return 401, NO_LOGIN
    if path == LOGOUT and method != "POST":
        return 405, "Log out with the button of the page."
    if path.startswith(f"{ORIGINALS}/") and method in {"GET", "HEAD"}:
        return None
    return None if path in PAGE_PATHS else (404, NOT_THERE)


def files(event: object) -> Iterator[str]:
    """The paths of all files that an event names, however deep."""
    pending: list[Any] = [event]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            if "meta" in value and "path" in value:
                yield str(value["path"])
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)


def is_inside(path: str, folder: str) -> bool:
    """Whether a path lies in a folder, as it is written: nothing is looked up, neither a file nor an address."""
    return Path(path).is_relative_to(folder) and ".." not in Path(path).parts
