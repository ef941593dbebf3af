"""vLLM: prompts are counted, choices are exact in releases from 0.30 on, and a given text has a likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from math import exp
from typing import Literal, Self

from assistant.errors import ModelError
from assistant.llm.servers.openai_compatible import TOP, TRIED, UNTHOUGHT, Tokenizing, first, said
from assistant.llm.servers.top_tokens import weighed
from assistant.llm.servers.wire import Json, RefusedError, Wire
from assistant.llm.thoughts import opens
from assistant.llm.word_choice import normalised
from assistant.types import Choice, Messages, Options

_TOKEN = "token_id:"  # noqa: S105 - how vLLM writes a token's number
# Tokens that "<think>" and what follows it in a prompt have at most.
_LAST = 16
_LIKELIEST: Json = {"top_logprobs": TOP}


class Vllm(Tokenizing):
    """A model of vLLM. What its makers set for sampling is overridden, so that temperature alone counts."""

    KIND, PORT, CANCELS = "vLLM", 8000, True
    salt = ""

    @classmethod
    async def recognises(cls, wire: Wire, listed: Sequence[Json]) -> bool:  # noqa: ARG003
        """It says so of every model that it lists."""
        return any(one.get("owned_by") == "vllm" for one in listed)

    def salted(self, salt: str) -> Self:
        """The same with a salt in each request, so that nobody learns by timing what others have asked."""
        view = copy(self)
        view.salt = salt
        return view

    async def choose(self, messages: Messages, words: tuple[str, ...]) -> Choice:
        """The model's own probabilities; in old releases, of the words among the 20 likeliest tokens.

        Raises:
            ChoiceError: the words begin alike, or an old release tells too little of them.
        """
        if self.abilities.choose == "none":
            return await super().choose(messages, words)
        tokens, exact = await self._first_tokens(words), self.abilities.choose == "exact"
        odds, prompt_tokens = await self._odds(messages, self._asked(tokens) if exact else _LIKELIEST)
        masses = {word: sum(odds.get(token, 0.0) for token in of_word) for word, of_word in tokens.items()}
        if not exact:
            weighed(masses, self.name)
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
        reply = await self.wire.post("completions", {"model": self.model, **asked, **self._salted()})
        told = (first(reply.get("choices")).get("logprobs") or {}).get("token_logprobs") or []
        of_text = told[len(prompt) : len(prompt) + len(tokens)]
        if len(of_text) != len(tokens):
            raise ModelError(f"{self.wire.root} told no probabilities of a given text; take a newer release of vLLM.")
        return float(sum(of_text))

    def _extra(self) -> Json:
        return {"top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0, **UNTHOUGHT, **self._salted()}

    def _salted(self) -> Json:
        return {"cache_salt": self.salt} if self.salt else {}

    def _usage(self) -> Json:
        return {"include_usage": True, "continuous_usage_stats": True}

    def _asked(self, tokens: dict[str, list[int]]) -> Json:
        return {"logprob_token_ids": sorted(token for of_word in tokens.values() for token in of_word)}

    async def _odds(self, messages: Messages, of: Json) -> tuple[dict[int, float], int]:
        """How likely each token is `of` those that are asked about, and how many tokens were read."""
        body = {
            **self._body(messages, Options(max_tokens=1)),
            "logprobs": True,
            "return_tokens_as_token_ids": True,
            **of,
        }
        reply = await self.wire.post("chat/completions", body)
        content = (first(reply.get("choices")).get("logprobs") or {}).get("content")
        top = first(content).get("top_logprobs") or []
        odds = {int(one["token"].removeprefix(_TOKEN)): exp(one["logprob"]) for one in top}
        return odds, (reply.get("usage") or {}).get("prompt_tokens") or 0

    async def _chooses(self) -> Literal["exact", "top 20", "none"]:
        tokens = await self._first_tokens(("yes", "no"))
        with suppress(RefusedError):
            odds, _ = await self._odds(TRIED, self._asked(tokens))
            if all(token in odds for of_word in tokens.values() for token in of_word):
                return "exact"
        with suppress(RefusedError):
            odds, _ = await self._odds(TRIED, _LIKELIEST)
            if odds:
                return "top 20"
        self._tells_logprobs = False
        return "none"

    async def _scores(self) -> bool:
        try:
            await self._scored(TRIED, "Yes.")
        except ModelError:
            return False
        return True

    async def _prompt(self, messages: Messages) -> list[int]:
        return await self._tokenized({"messages": said(messages), "add_generation_prompt": True, **UNTHOUGHT})

    async def _opens_thoughts(self, text: str) -> bool | None:  # noqa: ARG002 - the prompt itself is told
        last = (await self._prompt(TRIED))[-_LAST:]
        told = await self.wire.glance("/detokenize", {"model": self.model, "tokens": last})
        return opens(str(told["prompt"])) if "prompt" in told else None

    async def _tokens(self, text: str) -> list[int]:
        return await self._tokenized({"prompt": text, "add_special_tokens": False})

    async def _tokenized(self, asked: Json) -> list[int]:
        tokens: list[int] = (await self.wire.quickly("/tokenize", {"model": self.model, **asked}))["tokens"]
        return tokens
