"""Finds the user who sends a request, with one look into the database for each request, outside the event loop.

Gradio asks its mapping of log-ins several times a request, in the middle of the event loop. There, a database that
doesn't answer would hold up everybody, and also what watches over the process.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

from starlette.requests import HTTPConnection
from starlette.types import Scope

from assistant.errors import StoreError
from assistant.store.sessions import Sessions
from assistant.store.users import DEFAULT_USER

DATABASE_SECONDS = 10.0  # seconds for which the database is waited for
DATABASE_SILENT = "The database doesn't answer; check that its server runs. Nothing that was saved is lost."

# What a browser holds of its log-in, and whose that is: of the request that is being served.
_REQUEST_LOGIN: ContextVar[tuple[str | None, str | None] | None] = ContextVar("found", default=None)


class LoginTokens:
    """Stands in the place of the mapping that Gradio asks who is logged in."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    @property
    def name(self) -> str:
        """What tells the log-ins of this database from those of others at the same address."""
        return self._sessions.name

    async def find(self, secret: str | None) -> str | None:
        """Whose secret this is, if anybody's who is logged in; for the rest of the request `get` knows it.

        Raises:
            StoreError: the database can't be read, or doesn't answer within `DATABASE_SECONDS`.
        """
        try:
            user = await asyncio.wait_for(asyncio.to_thread(self._sessions.get, secret), DATABASE_SECONDS)
        except TimeoutError as error:
            raise StoreError(DATABASE_SILENT) from error
        _REQUEST_LOGIN.set((secret, user))
        return user

    def get(self, secret: str | None) -> str | None:
        """The same, from memory where this request has been asked about already.

        Raises:
            StoreError: the database can't be read.
        """
        login = _REQUEST_LOGIN.get()
        return login[1] if login and login[0] == secret else self._sessions.get(secret)

    def __setitem__(self, secret: str, typed_name: str) -> None:
        # in the event loop, where Gradio notes a log-in; the password was checked in the same database just before
        self._sessions[secret] = typed_name

    def end(self, user: str) -> None:
        """Log the user out everywhere."""
        self._sessions.end(user)


async def find_user(scope: Scope) -> str | None:
    """Who sends a request: the user who is logged in, None if nobody is, `DEFAULT_USER` where there are no logins.

    Raises:
        StoreError: the database can't tell.
    """
    app = scope["app"]
    user: str | None = DEFAULT_USER if app.auth is None else await app.tokens.find(_secret_of(scope))
    return user


def user_of(scope: Scope) -> str | None:
    """The same, once `find_user` has found it out for this request."""
    app = scope["app"]
    user: str | None = DEFAULT_USER if app.auth is None else app.tokens.get(_secret_of(scope))
    return user


def _secret_of(scope: Scope) -> str | None:
    """What the browser holds of its log-in, under the names that Gradio gives to its cookies."""
    cookies, name = HTTPConnection(scope).cookies, scope["app"].cookie_id
    kinds = ("access-token", "access-token-unsecure")
    return next(filter(None, (cookies.get(f"{kind}-{name}") for kind in kinds)), None)
