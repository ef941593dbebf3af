"""The HTTP client of a server: when a request is sent again, and its errors as sentences.

What is sent again is only what was refused, or met a closed connection, before a byte of the reply came; one that
breaks off is never begun anew.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import httpx2
import openai
from openai import AsyncOpenAI, AsyncStream, DefaultAsyncHttpxClient

from assistant.errors import ModelError
from assistant.llm.servers.address import root_of

Json = dict[str, Any]
T = TypeVar("T")

CONNECT = 5.0
# Seconds for what a server does at once, such as counting tokens.
_QUICK = 60.0
# Seconds before what was refused is sent again, if the server doesn't name them; nobody waits longer than `_PATIENCE`.
_WAITS = (0.5, 1.0, 2.0)
_PATIENCE = 20.0
_BUSY = {429, 500, 502, 503, 504, 529}
# A connection that nobody uses is given up before the server does so, which would meet the next request with silence.
_IDLE = 2.0
# What a connection that the server has closed fails with.
_CLOSED = (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError)
_MAX_MESSAGE = 200
_TOO_LONG = ("context", "too long", "exceed", "maximum length", "prompt length")
# Fields that some models refuse, and what is sent in their place; None for nothing.
_REPLACEMENTS = {"max_tokens": "max_completion_tokens", "temperature": None, "top_p": None, "seed": None}


class RefusedError(ModelError):
    """A request that the server doesn't know or doesn't allow, so that another one may do."""


class UnlistedError(ModelError):
    """No list of models where servers have theirs, so that what answers may be no such server at all."""


class Wire:
    """A client of the server at `address`, with or without "/v1"; for one event loop.

    Args:
        address: where the server is.
        key: what it wants to be shown; it is never part of a message.
        first: seconds that the first word may take, since a model may have to be loaded for it.
        connect: seconds that a connection may take.

    Raises:
        ModelError: the address is none.
    """

    def __init__(self, address: str, key: str = "", first: float = 600.0, connect: float = CONNECT) -> None:
        self.root = root_of(address)
        self._key, self._connect = key, connect
        self._replacements: dict[str, str | None] = {}
        timeout = openai.Timeout(first, connect=connect)
        http = DefaultAsyncHttpxClient(timeout=timeout, limits=httpx2.Limits(keepalive_expiry=_IDLE))
        self._api = f"{self.root}/v1"
        self._client = AsyncOpenAI(
            base_url=self._api, api_key=key or "none", max_retries=0, timeout=timeout, http_client=http
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def models(self) -> list[Json]:
        """What the server lists, looked for under "/v1" and without.

        Raises:
            UnlistedError: it has no list.
            ModelError: it can't be asked.
        """
        unlisted = True
        for api in (f"{self.root}/v1", self.root):
            with self._errors_as_sentences():
                try:
                    reply = await self._with_retries(partial(self._get, f"{api}/models"))
                except openai.NotFoundError:
                    continue
                unlisted = False
                if isinstance(reply, dict) and isinstance(reply.get("data"), list):
                    self._api = api
                    return [model for model in reply["data"] if isinstance(model, dict) and model.get("id")]
        raise self._unlisted_error() if unlisted else self._foreign_error()

    async def glance(self, path: str, body: Json | None = None) -> Json:
        """What lies at a path of the server's own, {} where there is nothing of the kind."""
        try:
            reply = await (self._get(self.root + path) if body is None else self._post(self.root + path, body, _QUICK))
        except (openai.APIError, httpx2.HTTPError, ValueError):
            return {}
        return reply if isinstance(reply, dict) else {}

    async def quickly(self, path: str, body: Json) -> Json:
        """The answer to what a server does at once, at a path of its own."""
        with self._errors_as_sentences():
            return self._object(await self._with_retries(partial(self._post, self.root + path, body, _QUICK)))

    async def post(self, path: str, body: Json) -> Json:
        """The whole answer to a request, at a path that begins with "/" or one of the OpenAI-compatible ones."""
        with self._errors_as_sentences():
            return self._object(await self._without_refused_fields(partial(self._post, self._url(path)), body))

    async def events(self, path: str, body: Json) -> AsyncIterator[Json]:
        """What the server sends of a reply, event by event; leaving closes the request."""
        with self._errors_as_sentences():
            async with await self._without_refused_fields(partial(self._open_stream, path), body) as stream:
                async for event in stream:
                    yield self._object(event)

    async def lines(self, path: str, body: Json) -> AsyncIterator[Json]:
        """The same of a server that sends an object a line."""
        with self._errors_as_sentences():
            async with await self._with_retries(partial(self._open_stream, path, body)) as stream:
                async for line in stream.response.aiter_lines():
                    if line.strip():
                        yield self._object(json.loads(line))

    def broken_off(self) -> ModelError:
        """The sentence for a reply that ends before it is over."""
        return ModelError(f"The server at {self.root} broke off its reply; see whether it still runs, and ask again.")

    def _url(self, path: str) -> str:
        return self.root + path if path.startswith("/") else f"{self._api}/{path}"

    async def _get(self, url: str) -> object:
        return await self._client.get(
            url, cast_to=object, options={"timeout": openai.Timeout(_QUICK, connect=self._connect)}
        )

    async def _post(self, url: str, body: Json, seconds: float | None = None) -> object:
        options: Any = {"timeout": openai.Timeout(seconds, connect=self._connect)} if seconds else {}
        return await self._client.post(url, cast_to=object, body=body, options=options)

    async def _open_stream(self, path: str, body: Json) -> AsyncStream[object]:
        return await self._client.post(
            self._url(path), cast_to=object, body=body, stream=True, stream_cls=AsyncStream[object]
        )

    async def _without_refused_fields(self, send: Callable[[Json], Awaitable[T]], body: Json) -> T:
        """What comes of a request without the fields that the server refuses, which later ones are sent without."""
        replacements = dict(self._replacements)
        while True:
            sent_body = {name: value for key, value in body.items() if (name := replacements.get(key, key))}
            try:
                reply = await self._with_retries(partial(send, sent_body))
            except openai.APIStatusError as error:
                if not (field := _refused_field(error, sent_body)):
                    raise
                replacements[field] = _REPLACEMENTS[field]
            else:
                self._replacements = replacements  # only now it is known that it helps
                return reply

    async def _with_retries(self, send: Callable[[], Awaitable[T]]) -> T:
        for wait in _WAITS:
            try:
                return await self._with_reconnect(send)
            except openai.APIStatusError as error:
                delay = _retry_delay(error.response.headers.get("retry-after"), wait)
                if error.status_code not in _BUSY or delay > _PATIENCE:
                    raise
            await asyncio.sleep(delay)
        return await self._with_reconnect(send)

    async def _with_reconnect(self, send: Callable[[], Awaitable[T]]) -> T:
        """What comes of a request, once more on a new connection where the server had closed the one in use."""
        try:
            return await send()
        except openai.APIConnectionError as error:
            if not any(isinstance(cause, _CLOSED) for cause in _causes(error)):
                raise
        return await send()

    def _object(self, reply: object) -> Json:
        if not isinstance(reply, dict):
            raise self._foreign_error()
        if error := reply.get("error"):
            raise self._server_error(_error_message(error))
        return reply

    # --- what went wrong, as a sentence --------------------------------------------------------------------------

    @contextmanager
    def _errors_as_sentences(self) -> Iterator[None]:
        try:
            yield
        except openai.APIStatusError as error:
            raise self._status_error(
                error.status_code, _error_message(error.body) or error.response.reason_phrase
            ) from error
        except (openai.APIConnectionError, httpx2.HTTPError) as error:
            raise self._connection_error(error) from error
        except openai.APIError as error:  # sent in the middle of a reply
            raise self._server_error(_error_message(error.body) or error.message) from error
        except ValueError as error:
            raise self._foreign_error() from error

    def _status_error(self, status: int, message: str) -> ModelError:
        server, detail = f"The server at {self.root}", f"({status}: {self._clean(message)})"
        if status in {401, 403}:
            problem = "refuses the key" if self._key else "wants a key"
            return ModelError(f"{server} {problem}; give it one that it knows (llm.api_key, or SEQUITUR_LLM__API_KEY).")
        if status == 404:
            return ModelError(
                f"{server} has no such model any more, or no such address {detail}; choose another (llm.model)."
            )
        if status == 429:
            return ModelError(f"{server} takes no more requests just now {detail}; wait a moment, and ask again.")
        if status >= 500:
            return self._server_error(f"{status}: {message}")
        if _is_too_long(message):
            return _too_long(server, detail)
        return RefusedError(f"{server} refused the request {detail}; choose another server, or a newer release of it.")

    def _server_error(self, message: str) -> ModelError:
        server, detail = f"The server at {self.root}", f"({self._clean(message)})"
        if _is_too_long(message):
            return _too_long(server, detail)
        return ModelError(f"{server} failed {detail}; its log has the details; ask again.")

    def _connection_error(self, error: BaseException) -> ModelError:
        causes = list(_causes(error))
        if tls_error := next((cause for cause in causes if isinstance(cause, ssl.SSLError)), None):
            reason = getattr(tls_error, "verify_message", "") or tls_error.reason or "no TLS"
            return ModelError(
                f"The certificate of {self.root} can't be trusted ({reason}); give the server a valid one, or put the"
                " file of the one that signed it into SSL_CERT_FILE."
            )
        if any(isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout) for cause in causes):
            return ModelError(f"No server answers at {self.root}; start it, or correct its address (llm.server).")
        if any(isinstance(cause, httpx2.TimeoutException) for cause in causes):
            return ModelError(f"The server at {self.root} sent nothing for too long; see what it does, and ask again.")
        return self.broken_off()

    def _foreign_error(self) -> ModelError:
        return ModelError(
            f"What answers at {self.root} doesn't speak as an OpenAI-compatible server does; correct its address"
            " (llm.server)."
        )

    def _unlisted_error(self) -> UnlistedError:
        return UnlistedError(
            f"What answers at {self.root} doesn't speak as an OpenAI-compatible server does, or lists no models;"
            " correct its address (llm.server), or name the model (llm.model)."
        )

    def _clean(self, message: str) -> str:
        """What the server said, short, in one line, without the key."""
        line = " ".join((message.replace(self._key, "...") if self._key else message).split()).rstrip(".")
        return line if len(line) <= _MAX_MESSAGE else f"{line[:_MAX_MESSAGE]}..."


def _too_long(server: str, detail: str) -> ModelError:
    return ModelError(
        f"{server} can't take a prompt as long as this {detail}; lower llm.context, or start it with more context."
    )


def _is_too_long(message: str) -> bool:
    return any(phrase in message.lower() for phrase in _TOO_LONG)


def _error_message(body: object) -> str:
    """What an error says, wherever servers put it."""
    if isinstance(body, dict):
        return _error_message(body.get("message") or body.get("error") or body.get("detail") or "")
    return body if isinstance(body, str) else ""


def _refused_field(error: openai.APIStatusError, sent_body: Json) -> str:
    """The field of the request that the error names, "" if it isn't one that can go by another name or be left out."""
    message = _error_message(error.body)
    if error.status_code not in {400, 422} or _is_too_long(message):
        return ""
    named_fields = (
        [error.param] if error.param else [name for name in _REPLACEMENTS if re.search(rf"\b{name}\b", message)]
    )
    return next((name for name in named_fields if name in _REPLACEMENTS and name in sent_body), "")


def _retry_delay(header: str | None, default: float) -> float:
    """The seconds that a server wants to be left alone."""
    try:
        return max(float(header or ""), 0.0)
    except ValueError:
        return default


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
