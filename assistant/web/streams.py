"""Which tabs hear of what they asked for: each does by one stream, which Gradio waits for before it sends anything."""

from __future__ import annotations

from collections import Counter
from urllib.parse import parse_qs

from starlette.types import ASGIApp, Receive, Scope, Send

from assistant.web.owners import DATA


class Streams:
    """The streams that are open, by the id of the tab's session.

    Gradio runs an event to its end though nobody ever asked for its stream, and drops it only once a stream was closed.
    """

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()

    def is_open(self, session: str) -> bool:
        """Whether the tab hears of what happens."""
        return session in self._open

    def counted(self, app: ASGIApp) -> ASGIApp:
        """ASGI middleware: a stream is open for as long as its request is served."""

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            session = _session(scope)
            self._open.update(session)
            try:
                await app(scope, receive, send)
            finally:
                self._open -= Counter(session)  # drops those that have none any more

        return serve


def _session(scope: Scope) -> list[str]:
    """The id of the session whose stream a request asks for; none of other requests."""
    if scope["type"] != "http" or scope["path"].rstrip("/") != DATA:
        return []
    query = parse_qs(scope["query_string"].decode("latin-1"))
    return query.get("session_hash", [])[-1:]  # of several Gradio takes the last
