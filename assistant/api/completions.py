"""`/v1` as OpenAI's clients know it: models and chat completions, for whoever has a user's token."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from pydantic import ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from assistant.api.answers import Answers, follow, progress
from assistant.api.messages import ChatRequest
from assistant.api.replies import MODEL, Refusal, ReplyFormat, models
from assistant.chat import INTERNAL_ERROR
from assistant.errors import (
    BusyError,
    CollectionError,
    EndingError,
    LibraryError,
    LimitError,
    SequiturError,
    StoreError,
    UtteranceError,
)
from assistant.runs import Run
from assistant.types import Turn

_LOG = logging.getLogger(__name__)
_UNCACHED = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
MAX_BODY_BYTES = 1_000_000  # bytes of a request's body
RETRY_SOON, RETRY_LATER = 2, 10  # seconds until a client should try again
Endpoint = Callable[[Request], Awaitable[Response]]


class Loading(Protocol):
    """What is still being made ready, as `assistant.parts.Loader` tells it."""

    @property
    def ready(self) -> bool:
        """Whether questions can be answered."""
        ...

    @property
    def error(self) -> str:
        """Why loading failed, or ""."""
        ...


@dataclass(frozen=True)
class Completions:
    """The routes. `holder` gives the user whose token it is, "" for a token that lets nobody in."""

    answers: Answers
    loading: Loading
    holder: Callable[[str], str]

    def routes(self) -> list[Route]:
        """All of them; what there is not is told in the same form, too."""
        return [
            Route("/models", _with_error_responses(self._models), methods=["GET"]),
            Route("/chat/completions", _with_error_responses(self._complete), methods=["POST"]),
            Route("/{path:path}", _with_error_responses(_not_found), methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
        ]

    async def _models(self, request: Request) -> Response:
        await self._user(request)
        return JSONResponse(models())

    async def _complete(self, request: Request) -> Response:
        user = await self._user(request)
        chat_request = _parsed(await _body(request))
        self._check(chat_request)
        run = await self._start_run(user, chat_request)
        if chat_request.stream:
            with_usage = chat_request.stream_options is not None and chat_request.stream_options.include_usage
            return _Stream(run, with_usage)
        return JSONResponse(ReplyFormat().whole(await _finished_turn(run, request)))

    async def _user(self, request: Request) -> str:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        user = await asyncio.to_thread(self.holder, token.strip()) if scheme.lower() == "bearer" else ""
        if not user:
            raise Refusal(
                401,
                "A token of yours is needed: make one with `python -m assistant users token NAME`, and send it as the "
                "API key.",
                "invalid_api_key",
            )
        return user

    def _check(self, chat_request: ChatRequest) -> None:
        if chat_request.model != MODEL:
            raise Refusal(
                404, f"There is no model '{chat_request.model[:100]}'; the one here is '{MODEL}'.", "model_not_found"
            )
        if self.loading.error:
            raise Refusal(503, self.loading.error, "not_loaded")
        if not self.loading.ready:
            raise Refusal(503, "Sequitur is still loading; try again in a moment.", "loading", RETRY_LATER)

    async def _start_run(self, user: str, chat_request: ChatRequest) -> Run:
        try:
            return await self.answers.begin(user, chat_request.utterance, chat_request.history, chat_request.collection)
        except BusyError as error:
            raise Refusal(429, str(error), "rate_limit_exceeded", RETRY_SOON) from error
        except LimitError as error:
            raise Refusal(429, str(error), "insufficient_quota") from error
        except EndingError as error:
            raise Refusal(503, str(error), "ending", RETRY_LATER) from error
        except CollectionError as error:
            raise Refusal(422, str(error), "invalid_collection") from error
        except LibraryError as error:
            raise Refusal(503, str(error), "library_unavailable", RETRY_LATER) from error
        except UtteranceError as error:
            raise Refusal(422, str(error), "invalid_message") from error


class _Stream(StreamingResponse):
    """A reply as a stream; however it ends, as when the client goes away, nothing goes on being written."""

    def __init__(self, run: Run, with_usage: bool) -> None:
        super().__init__(_events(run, with_usage), headers=_UNCACHED, media_type="text/event-stream")
        self._run = run

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve it, as ASGI has it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._run.stop.set()


def _with_error_responses(endpoint: Endpoint) -> Endpoint:
    """The endpoint, whose errors are told as OpenAI tells them."""

    async def respond(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Refusal as refusal:
            return refusal.response()
        except StoreError as error:
            return Refusal(503, str(error), "unavailable", RETRY_LATER).response()
        except SequiturError as error:
            return Refusal(500, str(error), "failed").response()
        except ClientDisconnect:
            raise
        except Exception:  # noqa: BLE001 - the client must be told, and the log has the details
            _LOG.exception("a request of the API failed")
            return Refusal(500, INTERNAL_ERROR, "failed").response()

    return respond


async def _not_found(request: Request) -> Response:
    raise Refusal(404, f"There is no {request.method} {request.url.path[:100]} here.", "not_found")


async def _body(request: Request) -> bytes:
    """The body, of which no more is read than is allowed."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BODY_BYTES:
            raise Refusal(413, f"The request is larger than {MAX_BODY_BYTES:,} bytes; shorten it.", "too_large")
    return bytes(body)


def _parsed(body: bytes) -> ChatRequest:
    try:
        return ChatRequest.model_validate_json(body)
    except ValidationError as error:
        first_error = error.errors(include_url=False, include_input=False)[0]
    if first_error["type"] == "json_invalid":
        raise Refusal(400, "The request's body is not JSON.", "invalid_json")
    location = ".".join(str(part) for part in first_error["loc"]) or "the body"
    raise Refusal(422, f"The request can't be read at {location}: {first_error['msg']}.", "invalid_request")


async def _finished_turn(run: Run, request: Request) -> Turn:
    """The turn when it is done; a client that goes away meanwhile stops it."""
    async for _ in follow(run):
        if await request.is_disconnected():
            run.stop.set()
    if refusal := _refusal_of(run.turn):
        raise refusal
    return run.turn


async def _events(run: Run, with_usage: bool) -> AsyncIterator[str]:
    """A stream: what is being done, and the reply once it is settled; what is written before that may be set aside."""
    reply_format, last_line = ReplyFormat(), ""
    yield reply_format.first()
    async for turn in follow(run):
        line = progress(turn)
        if turn.status == "running" and line != last_line:
            yield reply_format.progress(last_line := line)
    if refusal := _refusal_of(run.turn):
        yield reply_format.failed(refusal)
        return
    for event in reply_format.settled(run.turn, with_usage):
        yield event


def _refusal_of(turn: Turn) -> Refusal | None:
    """Why a turn that is over has no reply to give."""
    if turn.status == "failed":
        return Refusal(500, turn.error, "failed")
    if turn.status == "stopped":
        return Refusal(503, "The answer was stopped before it was done.", "stopped")
    return None
