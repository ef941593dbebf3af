"""llama.cpp's `llama-server`: prompts are counted, choices are exact, and it tells how far it has read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal
from urllib.parse import quote

from assistant.llm.control_tokens import chat_messages
from assistant.llm.servers import logit_bias
from assistant.llm.servers.openai_compatible import (
    THINKING_OFF_FIELDS,
    TRIAL_PROMPT,
    Tokenizing,
    first_object,
)
from assistant.llm.servers.reply_stream import Piece
from assistant.llm.servers.wire import Json, Wire
from assistant.llm.thoughts import opens_thought
from assistant.types import Choice, Messages


class LlamaServer(Tokenizing):
    """A model of llama-server. It is sampled as in this program: by temperature alone."""

    KIND, PORT, CANCELS = "llama-server", 8080, True

    @classmethod
    async def recognises(cls, wire: Wire, listed: Sequence[Json]) -> bool:  # noqa: ARG003
        """Only llama-server has these properties."""
        return "default_generation_settings" in await wire.glance("/props")

    async def max_context(self) -> int | None:
        """Tokens of one of its slots; of the model's own, where it runs several."""
        props = await self.wire.glance(f"/props?model={quote(self.model, safe='')}")
        return int(props.get("default_generation_settings", {}).get("n_ctx", 0)) or None

    async def choose(self, messages: Messages, words: tuple[str, ...]) -> Choice:
        """The model's own probabilities, whatever is likelier than these words."""
        tokens = await self._first_tokens(words)
        prompt = await self._prompt(messages)
        body = {"model": self.model, "prompt": prompt, "cache_prompt": True, **logit_bias.request(tokens)}
        reply = await self.wire.post("completions", body)
        pieces = (first_object(reply.get("choices")).get("logprobs") or {}).get("content") or []
        return logit_bias.choice(pieces, tokens, len(prompt))

    def _extra(self) -> Json:
        return {
            "samplers": ["temperature"],
            "cache_prompt": True,
            "return_progress": True,
            "timings_per_token": True,
            **THINKING_OFF_FIELDS,
        }

    def _piece(self, event: Json) -> Piece:
        piece, timings = super()._piece(event), event.get("timings") or {}
        if (progress := event.get("prompt_progress")) and progress["processed"]:
            return Piece(prompt_tokens=progress["total"], read=progress["processed"])
        cached_tokens, written_tokens = timings.get("cache_n", 0), timings.get("predicted_n", 0)
        prompt_tokens = piece.prompt_tokens or cached_tokens + timings.get("prompt_n", 0)
        return replace(piece, prompt_tokens=prompt_tokens, completion_tokens=written_tokens, cached=cached_tokens)

    async def _chooses(self) -> Literal["exact", "top 20", "none"]:
        await self.choose(TRIAL_PROMPT, ("yes", "no"))
        return "exact"

    async def _prompt(self, messages: Messages) -> list[int]:
        return await self._tokens(await self._rendered(messages), add_special=True)

    async def _rendered(self, messages: Messages) -> str:
        body = {"model": self.model, "messages": chat_messages(messages), **THINKING_OFF_FIELDS}
        prompt: str = (await self.wire.quickly("/apply-template", body))["prompt"]
        return prompt

    async def _opens_thoughts(self, text: str) -> bool:  # noqa: ARG002 - the prompt itself is told
        return opens_thought(await self._rendered(TRIAL_PROMPT))

    async def _tokens(self, text: str, *, add_special: bool = False) -> list[int]:
        body = {"model": self.model, "content": text, "add_special": add_special, "parse_special": True}
        tokens: list[int] = (await self.wire.quickly("/tokenize", body))["tokens"]
        return tokens
