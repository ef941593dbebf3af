"""Limits what may be sent, before anything parses it: a body that is too large is refused as soon as that is seen."""

from __future__ import annotations

from contextlib import suppress

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assistant.api.replies import Refusal

MEGABYTE = 2**20
LOGIN_BYTES = 8 * 2**10  # a form with a name and a password
EVENT_BYTES = 3 * MEGABYTE  # the longest text that is pasted, in any script, and all that an event names beside it
OTHER_BYTES = MEGABYTE
MAX_FILES = 10  # of the largest size that may come at once
UPLOAD, LOGIN, JOIN = "/gradio_api/upload", "/login", "/gradio_api/queue/join"
API = "/v1/"


class BodyLimits:
    """ASGI middleware: refuses bodies that are too large, with 413 and a sentence.

    What announces its length is refused before any of it is read, what comes in chunks is counted as it comes.
    `max_upload_mb` is the largest document.
    """

    def __init__(self, app: ASGIApp, max_upload_mb: int) -> None:
        self._app, self._max_upload_mb = app, max_upload_mb

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, as ASGI has it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"].rstrip("/")
        max_bytes = self.max_bytes(path)
        refusal = self._refusal(path)
        length = Headers(scope=scope).get("content-length", "0")
        if not length.isascii() or not length.isdigit() or len(length) > 15 or int(length) > max_bytes:
            await refusal(scope, receive, send)
            return
        counted = _LimitedRequest(receive, send, max_bytes)
        with suppress(BodyTooLargeError):
            await self._app(scope, counted.receive, counted.send)
        if counted.refused:
            await refusal(scope, receive, send)

    def max_bytes(self, path: str) -> int:
        """How many bytes may be sent there."""
        if path == UPLOAD:
            return (MAX_FILES * self._max_upload_mb + 1) * MEGABYTE
        return {LOGIN: LOGIN_BYTES, JOIN: EVENT_BYTES}.get(path, OTHER_BYTES)

    def _refusal(self, path: str) -> Response:
        """The sentence, as the API says it to programs, and else as text."""
        if path.startswith(API):
            return Refusal(413, "The request is too large; shorten it.", "too_large").response()
        return PlainTextResponse(self._sentence(path), 413, {"Connection": "close"})

    def _sentence(self, path: str) -> str:
        if path == UPLOAD:
            return (
                f"These files are too large: a document has at most {self._max_upload_mb} MB, and {MAX_FILES} times "
                "that may come at once; split them up."
            )
        return "This is too long to be read at once; shorten it, or add long text as a document."


class BodyTooLargeError(Exception):
    """A body has more bytes than it may."""


class _LimitedRequest:
    """The two ends of a request, of which no more than `max_bytes` bytes are read.

    Whoever reads on gets an error; what they make of it is held back, so that the refusal alone is sent. Where the
    answer has begun already, it goes on.
    """

    def __init__(self, receive: Receive, send: Send, max_bytes: int) -> None:
        self._receive, self._send, self._remaining_bytes = receive, send, max_bytes
        self._response_begun = False
        self.refused = False

    async def receive(self) -> Message:
        message = await self._receive()
        self._remaining_bytes -= len(message.get("body", b""))
        if self._remaining_bytes < 0:
            self.refused = not self._response_begun
            raise BodyTooLargeError
        return message

    async def send(self, message: Message) -> None:
        if self.refused:
            return
        self._response_begun = True
        await self._send(message)


def replayed(body: bytes, receive: Receive) -> Receive:
    """Gives a body that was read already once more, then what `receive` gives."""
    given = False

    async def receive_again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again
