"""llama.cpp's `llama-server`: prompts are counted, choices are exact, and it tells how far it has read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal
from urllib.parse import quote

from assistant.llm.servers import logit_bias
from assistant.llm.servers.openai_compatible import TRIED, UNTHOUGHT, Tokenizing, first, said
from assistant.llm.servers.reply_stream import Piece
from assistant.llm.servers.wire import Json, Wire
from assistant.llm.thoughts import opens
from assistant.types import Choice, Messages


class LlamaServer(Tokenizing):
    """A model of llama-server. It is sampled as in this program: by temperature alone."""

    KIND, PORT, CANCELS = "llama-server", 8080, True

    @classmethod
    async def recognises(cls, wire: Wire, listed: Sequence[Json]) -> bool:  # noqa: ARG003
        """Only llama-server has these properties."""
        return "default_generation_settings" in await wire.glance("/props")

    async def longest(self) -> int | None:
        """Tokens of one of its slots; of the model's own, where it runs several."""
        props = await self.wire.glance(f"/props?model={quote(self.model, safe='')}")
        return int(props.get("default_generation_settings", {}).get("n_ctx", 0)) or None

    async def choose(self, messages: Messages, words: tuple[str, ...]) -> Choice:
        """The model's own probabilities, whatever is likelier than these words."""
        tokens = await self._first_tokens(words)
        prompt = await self._prompt(messages)
        body = {"model": self.model, "prompt": prompt, "cache_prompt": True, **logit_bias.request(tokens)}
        reply = await self.wire.post("completions", body)
        pieces = (first(reply.get("choices")).get("logprobs") or {}).get("content") or []
        return logit_bias.choice(pieces, tokens, len(prompt))

    def _extra(self) -> Json:
        return {
            "samplers": ["temperature"],
            "cache_prompt": True,
            "return_progress": True,
            "timings_per_token": True,
            **UNTHOUGHT,
        }

    def _piece(self, event: Json) -> Piece:
        piece, timings = super()._piece(event), event.get("timings") or {}
        if (reading := event.get("prompt_progress")) and reading["processed"]:
            return Piece(prompt_tokens=reading["total"], read=reading["processed"])
        cached, written = timings.get("cache_n", 0), timings.get("predicted_n", 0)
        read = piece.prompt_tokens or cached + timings.get("prompt_n", 0)
        return replace(piece, prompt_tokens=read, completion_tokens=written, cached=cached)

    async def _chooses(self) -> Literal["exact", "top 20", "none"]:
        await self.choose(TRIED, ("yes", "no"))
        return "exact"

    async def _prompt(self, messages: Messages) -> list[int]:
        return await self._tokens(await self._rendered(messages), add_special=True)

    async def _rendered(self, messages: Messages) -> str:
        asked = {"model": self.model, "messages": said(messages), **UNTHOUGHT}
        prompt: str = (await self.wire.quickly("/apply-template", asked))["prompt"]
        return prompt

    async def _opens_thoughts(self, text: str) -> bool:  # noqa: ARG002 - the prompt itself is told
        return opens(await self._rendered(TRIED))

    async def _tokens(self, text: str, *, add_special: bool = False) -> list[int]:
        asked = {"model": self.model, "content": text, "add_special": add_special, "parse_special": True}
        tokens: list[int] = (await self.wire.quickly("/tokenize", asked))["tokens"]
        return tokens
