"""What the browser and other sites are allowed: a content security policy, known hosts, own origin only."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assistant.store.users import kept_name

# gradio compiles its templates in the browser, hence 'unsafe-eval'; its styles and start-up script are inline.
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "frame-src 'none'",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}


def is_loopback(host: str) -> bool:
    """Whether `host` is an address of this computer's loopback, or its name, so that no other computer is meant."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Guard:
    """ASGI middleware: refuses unknown hosts (DNS rebinding) and other sites' requests, adds the headers.

    With `local` only this computer's loopback is a known host: any of its addresses, which no site can rebind, and
    localhost. Otherwise any address and name is, since the logins guard the page, but the origin of a request must
    still be the host it goes to.
    """

    def __init__(self, app: ASGIApp, local: bool) -> None:
        self._app, self._local = app, local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, as ASGI has it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = refused(Headers(scope=scope), self._local)
        if refusal:
            await PlainTextResponse(refusal, status_code=403)(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self._app(scope, receive, send_with_headers)


class Leavers:
    """ASGI middleware: ends the log-ins of users who were removed, or whose password was changed, at the next request.

    `hashes` gives each user's hash as it is now. Gradio asks for a password only at the log-in, and keeps who is logged
    in as `tokens` of its app; there a name is put as it is kept, however it was typed.
    """

    def __init__(self, app: ASGIApp, hashes: Callable[[], Mapping[str, str]]) -> None:
        self._app, self._hashes = app, hashes
        self._at_login: dict[str, str] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, as ASGI has it."""
        http = scope["type"] == "http"
        if http and (tokens := scope["app"].tokens):
            self._end(tokens)
        await self._app(scope, receive, send)
        if http and scope["path"].endswith("/login"):
            self._end(scope["app"].tokens)  # remembers the hash that this log-in was with

    def _end(self, tokens: dict[str, str]) -> None:
        now = self._hashes()
        for token, typed in list(tokens.items()):
            user = tokens[token] = kept_name(typed)
            if now.get(user) is None or self._at_login.setdefault(token, now[user]) != now[user]:
                tokens.pop(token, None)
        self._at_login = {token: kept for token, kept in self._at_login.items() if token in tokens}


def refused(headers: Headers, local: bool) -> str:
    """Why a request is refused, or ""."""
    host, origin = headers.get("host", ""), headers.get("origin")
    if local and not is_loopback(urlsplit(f"//{host}").hostname or ""):
        return "This page answers only to the address that it printed."
    if origin is not None and urlsplit(origin).netloc != host:
        return "Requests from other sites are refused."
    return ""
