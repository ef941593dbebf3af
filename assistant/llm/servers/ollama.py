"""Ollama by its own API: its OpenAI-compatible one cuts long prompts without a word, and can't set the context."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

from assistant.llm.control_tokens import chat_messages
from assistant.llm.servers.openai_compatible import (
    TOP_LOGPROBS,
    OpenAICompatible,
    finish_of,
    first_object,
)
from assistant.llm.servers.reply_stream import Piece
from assistant.llm.servers.wire import Json, Wire
from assistant.types import Messages, Options

# How long a model stays loaded after a request; Ollama's own 5 minutes are short for somebody who reads.
KEEP_ALIVE = "30m"


class Ollama(OpenAICompatible):
    """A model of Ollama. The context is set with each request, and always the same: another one loads it anew.

    A prompt that is too long is an error; old releases, which don't know `truncate`, cut it, and that is noticed then.
    """

    KIND, PORT, CANCELS = "Ollama", 11434, True

    @classmethod
    async def recognises(cls, wire: Wire, listed: Sequence[Json]) -> bool:  # noqa: ARG003
        """It tells its version."""
        return "version" in await wire.glance("/api/version")

    async def max_context(self) -> int | None:
        """What the model was trained for, but no more than is usual, since memory is taken for all of it."""
        model_info = (await self.wire.glance("/api/show", {"model": self.model})).get("model_info") or {}
        trained_context = next(
            (int(value) for key, value in model_info.items() if key.endswith(".context_length")), None
        )
        return (
            trained_context
            if trained_context is None or self._explicit_context
            else min(trained_context, self._default_context)
        )

    async def _streamed(self, messages: Messages, options: Options) -> AsyncIterator[Piece]:
        body = {**self._body(messages, options), "stream": True}
        async with aclosing(self.wire.lines("/api/chat", body)) as lines:  # type: ignore[type-var]
            async for line in lines:
                yield self._piece(line)

    async def _whole(self, messages: Messages, options: Options) -> AsyncIterator[Piece]:
        yield self._piece(await self.wire.post("/api/chat", {**self._body(messages, options), "stream": False}))

    def _body(self, messages: Messages, options: Options) -> Json:
        body: Json = {
            "model": self.model,
            "messages": chat_messages(messages),
            "think": False,
            "truncate": False,
            "shift": False,
            "keep_alive": KEEP_ALIVE,
            "options": {
                "num_ctx": self.abilities.context,
                "num_predict": options.max_tokens,
                "temperature": options.temperature,
                "seed": options.seed,
                "top_k": 0,
                "top_p": 1.0,
                "min_p": 0.0,
                "repeat_penalty": 1.0,
                "stop": [text for text in options.stop if text],
            },
        }
        if options.schema:
            body["format"] = json.loads(options.schema)
        if self._tells_logprobs:
            body["logprobs"] = True
        return body

    def _piece(self, event: Json) -> Piece:
        message = event.get("message") or {}
        text, thought = message.get("content") or "", bool(message.get("thinking"))
        token_logprobs = event.get("logprobs") or []
        return Piece(
            text,
            thought,
            # while it thinks, a line may hold those of tokens that are not in its text
            () if thought else tuple(entry["logprob"] for entry in token_logprobs),
            event.get("prompt_eval_count") or 0,
            event.get("eval_count") or 0,
            finish_of(event.get("done_reason") or "stop") if event.get("done") else "",
        )

    async def _likeliest(self, messages: Messages) -> tuple[list[tuple[str, float]], int]:
        body = {
            **self._body(messages, Options(max_tokens=1)),
            "stream": False,
            "logprobs": True,
            "top_logprobs": TOP_LOGPROBS,
        }
        reply = await self.wire.post("/api/chat", body)
        top = first_object(reply.get("logprobs")).get("top_logprobs") or []
        return [(entry["token"], entry["logprob"]) for entry in top], reply.get("prompt_eval_count") or 0
