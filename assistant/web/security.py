"""What the browser and other sites are allowed: a content security policy, known hosts, own origin only."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assistant.web.owners import PASSAGE, SEARCH

# Of the page, and of the log-in at the same address: gradio compiles its templates in the browser, hence 'unsafe-eval';
# its styles and start-up script are inline.
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
# Of pages of their own: no script but our files, and no style or picture but what stands in them.
STANDALONE_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'unsafe-inline'",
        "img-src 'self' data:",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
# Of all else: opened by itself, none of it acts, loads or shows anything.
DENY_ALL_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
PAGE = "/"
POLICIES = {PAGE: POLICY, SEARCH: STANDALONE_POLICY, PASSAGE: STANDALONE_POLICY}
# What is the same for everybody, and may be kept by browsers.
PUBLIC = ("/js/", "/assets/", "/svelte/", "/static/", "/theme.css", "/favicon.ico")
MALFORMED = "The request names its host or its origin in no way that is known."
# Of what may stand in these, all that servers and browsers write.
_HOST = re.compile(r"(?:[A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?")
_ORIGIN = re.compile(rf"null|[a-z][a-z0-9+.-]{{0,20}}://{_HOST.pattern}")
# Who asks could say with these that the page is another host's; a proxy passes on the host itself.
_UNTRUSTED_HEADERS = {b"x-forwarded-host", b"x-gradio-server", b"forwarded"}
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # without any, the button for logging out would come from nowhere
    "X-Frame-Options": "DENY",
}
# For a year browsers ask this host by HTTPS alone; its subdomains may be somebody else's.
HTTPS_ONLY = "max-age=31536000"


def is_loopback(host: str) -> bool:
    """Whether `host` is an address of this computer's loopback, or its name, so that no other computer is meant."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Guard:
    """ASGI middleware: refuses unknown hosts (DNS rebinding) and other sites' requests, adds the headers.

    It stands before all else, so that nothing else answers other sites, as Gradio would their preflights.

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
        headers, policy = Headers(scope=scope), POLICIES.get(scope["path"], DENY_ALL_POLICY)
        is_tls = scope.get("scheme") == "https"  # a proxy on this computer says so, whatever it asks the server by
        # Whoever tries a proxy with TLS on localhost still reaches all else there.
        is_malformed = malformed(headers)
        is_host_bound = is_tls and not is_malformed and not _is_for_loopback(headers)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                response_headers = MutableHeaders(scope=message)
                response_headers.update(HEADERS | {"Content-Security-Policy": policy})
                if not scope["path"].startswith(PUBLIC):
                    response_headers.setdefault("Cache-Control", "no-store")
                if is_host_bound:
                    response_headers["Strict-Transport-Security"] = HTTPS_ONLY
                message["headers"] = restricted_cookies(message["headers"], is_tls)
            await send(message)

        if is_malformed:
            responder: ASGIApp = PlainTextResponse(MALFORMED, 400)
        elif refusal := refusal_reason(headers, self._local):
            responder = PlainTextResponse(refusal, 403)
        else:
            responder = self._app
            scope = {
                **scope,
                "headers": [header for header in scope["headers"] if header[0].lower() not in _UNTRUSTED_HEADERS],
            }
        await responder(scope, receive, send_with_headers)


def restricted_cookies(headers: Iterable[tuple[bytes, bytes]], is_tls: bool) -> list[tuple[bytes, bytes]]:
    """A response's headers; no other site's page sends its cookies along, and where the page has TLS, all need it.

    Gradio sends the token of a log-in twice: with Secure and SameSite=None, and, for plain HTTP, with neither.
    """
    return [
        (name, _restricted_cookie(value, is_tls) if name.lower() == b"set-cookie" else value) for name, value in headers
    ]


def _restricted_cookie(cookie: bytes, is_tls: bool) -> bytes:
    own_site = re.sub(rb"(?i)(; *samesite)=none", rb"\1=lax", cookie)
    return own_site + b"; Secure" if is_tls and not re.search(rb"(?i); *secure\b", own_site) else own_site


def malformed(headers: Headers) -> bool:
    """Whether the host or the origin of a request, each of which there is one at most, is none that can be read."""
    hosts, origins = headers.getlist("host"), headers.getlist("origin")
    if len(hosts) > 1 or len(origins) > 1:
        return True
    try:
        for url in (*(f"//{host}" for host in hosts), *origins):
            urlsplit(url)
    except ValueError:  # what stands in brackets is no address
        return True
    return not all(map(_HOST.fullmatch, filter(None, hosts))) or not all(map(_ORIGIN.fullmatch, origins))


def refusal_reason(headers: Headers, local: bool) -> str:
    """Why a request is refused, or ""."""
    host, origin = headers.get("host", ""), headers.get("origin")
    if not host:
        return "A request must say which host it is meant for."
    if local and not _is_for_loopback(headers):
        return "This page answers only to the address that it printed."
    if origin is not None and urlsplit(origin).netloc != host:
        return "Requests from other sites are refused."
    return ""


def _is_for_loopback(headers: Headers) -> bool:
    """Whether the host that a request names is of loopback, whatever its port."""
    return is_loopback(urlsplit(f"//{headers.get('host', '')}").hostname or "")
