"""vLLM: prompts are counted, choices are exact in releases from 0.30 on, and a given text has a likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import Any, Literal

from assistant.errors import ChoiceError, ModelError
from assistant.llm.servers.openai_compatible import TOP, TRIED, UNTHOUGHT, Tokenizing, first, said
from assistant.llm.servers.surface import LEAST
from assistant.llm.servers.wire import Json, Wire
from assistant.llm.words import normalised
from assistant.types import Choice, Messages, Options

_TOKEN = "token_id:"  # noqa: S105 - how vLLM writes a token's number


class Vllm(Tokenizing):
    """A model of vLLM. What its makers set for sampling is overridden, so that temperature alone counts."""

    KIND, PORT, CANCELS = "vLLM", 8000, True

    @classmethod
    async def recognises(cls, wire: Wire, listed: Sequence[Json]) -> bool:  # noqa: ARG003
        """It says so of every model, with its context."""
        return any(one.get("owned_by") == "vllm" or "max_model_len" in one for one in listed)

    async def longest(self) -> int | None:
        """As it lists it."""
        return int(self.listed.get("max_model_len") or 0) or None

    async def choose(self, messages: Messages, words: tuple[str, ...]) -> Choice:
        """The model's own probabilities; in old releases, of the words among the 20 likeliest tokens.

        Raises:
            ChoiceError: the words begin alike, or an old release tells too few of them.
        """
        tokens = await self._first_tokens(words)
        odds, prompt_tokens = await self._odds(messages, tokens)
        masses = {word: sum(odds.get(token, 0.0) for token in of_word) for word, of_word in tokens.items()}
        if self.abilities.choose != "exact" and sum(masses.values()) < LEAST:
            raise ChoiceError(
                f"{self.name} is unsure: none of {', '.join(words)} is likely enough to choose between them."
            )
        return normalised(masses, prompt_tokens)

    async def score(self, messages: Messages, text: str) -> float:
        """The sum of the text's log-probabilities; the whole prompt is read for it, whatever was read before.

        Raises:
            ModelError: this server tells none.
        """
        if not self.abilities.score:
            return await super().score(messages, text)
        return await self._scored(messages, text)

    async def _scored(self, messages: Messages, text: str) -> float:
        prompt, tokens = await self._prompt(messages), await self._tokens(text)
        asked = {"prompt": [*prompt, *tokens], "max_tokens": 1, "echo": True, "logprobs": 1, "temperature": 0.0}
        reply = await self.wire.post("completions", {"model": self.model, **asked})
        told = (first(reply.get("choices")).get("logprobs") or {}).get("token_logprobs") or []
        of_text = told[len(prompt) : len(prompt) + len(tokens)]
        if len(of_text) != len(tokens):
            raise ModelError(f"{self.wire.root} told no probabilities of a given text; take a newer release of vLLM.")
        return float(sum(of_text))

    def _extra(self) -> Json:
        return {"top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0, **UNTHOUGHT}

    def _usage(self) -> Json:
        return {"include_usage": True, "continuous_usage_stats": True}

    async def _odds(self, messages: Messages, tokens: dict[str, list[int]]) -> tuple[dict[int, float], int]:
        """How likely each token is that the server tells of: those that are asked for, or the 20 likeliest."""
        body: dict[str, Any] = {
            **self._body(messages, Options(max_tokens=1)),
            "logprobs": True,
            "top_logprobs": TOP,
            "logprob_token_ids": sorted(token for of_word in tokens.values() for token in of_word),
            "return_tokens_as_token_ids": True,
        }
        reply = await self.wire.post("chat/completions", body)
        content = (first(reply.get("choices")).get("logprobs") or {}).get("content")
        top = first(content).get("top_logprobs") or []
        odds = {int(one["token"].removeprefix(_TOKEN)): exp(one["logprob"]) for one in top}
        return odds, (reply.get("usage") or {}).get("prompt_tokens") or 0

    async def _chooses(self) -> Literal["exact", "top 20", "none"]:
        tokens = await self._first_tokens(("yes", "no"))
        odds, _ = await self._odds(TRIED, tokens)
        return "exact" if all(token in odds for of_word in tokens.values() for token in of_word) else "top 20"

    async def _scores(self) -> bool:
        try:
            await self._scored(TRIED, "Yes.")
        except ModelError:
            return False
        return True

    async def _prompt(self, messages: Messages) -> list[int]:
        return await self._tokenized({"messages": said(messages), "add_generation_prompt": True, **UNTHOUGHT})

    async def _tokens(self, text: str) -> list[int]:
        return await self._tokenized({"prompt": text, "add_special_tokens": False})

    async def _tokenized(self, asked: Json) -> list[int]:
        tokens: list[int] = (await self.wire.quickly("/tokenize", {"model": self.model, **asked}))["tokens"]
        return tokens
