"""vLLM: prompts are counted, choices are exact in releases from 0.30 on, and a given text has a likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from math import exp
from typing import Literal, Self

from assistant.errors import ModelError
from assistant.llm.control_tokens import chat_messages
from assistant.llm.servers.openai_compatible import (
    THINKING_OFF_FIELDS,
    TOP_LOGPROBS,
    TRIAL_PROMPT,
    Tokenizing,
    first_object,
)
from assistant.llm.servers.top_tokens import check_mass
from assistant.llm.servers.wire import Json, RefusedError, Wire
from assistant.llm.thoughts import opens_thought
from assistant.llm.word_choice import normalised
from assistant.types import Choice, Messages, Options

_TOKEN_PREFIX = "token_id:"  # noqa: S105 - how vLLM writes a token's number
# Tokens that "<think>" and what follows it in a prompt have at most.
_LAST_TOKENS = 16
_TOP_QUERY: Json = {"top_logprobs": TOP_LOGPROBS}


class Vllm(Tokenizing):
    """A model of vLLM. What its makers set for sampling is overridden, so that temperature alone counts."""

    KIND, PORT, CANCELS = "vLLM", 8000, True
    salt = ""

    @classmethod
    async def recognises(cls, wire: Wire, listed: Sequence[Json]) -> bool:  # noqa: ARG003
        """It says so of every model that it lists."""
        return any(model.get("owned_by") == "vllm" for model in listed)

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
        tokens, is_exact = await self._first_tokens(words), self.abilities.choose == "exact"
        probabilities, prompt_tokens = await self._probabilities(
            messages, self._token_query(tokens) if is_exact else _TOP_QUERY
        )
        masses = {
            word: sum(probabilities.get(token, 0.0) for token in word_tokens) for word, word_tokens in tokens.items()
        }
        if not is_exact:
            check_mass(masses, self.name)
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
        body = {"prompt": [*prompt, *tokens], "max_tokens": 1, "echo": True, "logprobs": 1, "temperature": 0.0}
        reply = await self.wire.post("completions", {"model": self.model, **body, **self._salted()})
        logprobs = (first_object(reply.get("choices")).get("logprobs") or {}).get("token_logprobs") or []
        text_logprobs = logprobs[len(prompt) : len(prompt) + len(tokens)]
        if len(text_logprobs) != len(tokens):
            raise ModelError(f"{self.wire.root} told no probabilities of a given text; take a newer release of vLLM.")
        return float(sum(text_logprobs))

    def _extra(self) -> Json:
        return {"top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0, **THINKING_OFF_FIELDS, **self._salted()}

    def _salted(self) -> Json:
        return {"cache_salt": self.salt} if self.salt else {}

    def _usage(self) -> Json:
        return {"include_usage": True, "continuous_usage_stats": True}

    def _token_query(self, tokens: dict[str, list[int]]) -> Json:
        return {"logprob_token_ids": sorted(token for word_tokens in tokens.values() for token in word_tokens)}

    async def _probabilities(self, messages: Messages, query: Json) -> tuple[dict[int, float], int]:
        """The probability of each token that `query` asks about, and how many tokens were read."""
        body = {
            **self._body(messages, Options(max_tokens=1)),
            "logprobs": True,
            "return_tokens_as_token_ids": True,
            **query,
        }
        reply = await self.wire.post("chat/completions", body)
        content = (first_object(reply.get("choices")).get("logprobs") or {}).get("content")
        top = first_object(content).get("top_logprobs") or []
        probabilities = {int(entry["token"].removeprefix(_TOKEN_PREFIX)): exp(entry["logprob"]) for entry in top}
        return probabilities, (reply.get("usage") or {}).get("prompt_tokens") or 0

    async def _chooses(self) -> Literal["exact", "top 20", "none"]:
        tokens = await self._first_tokens(("yes", "no"))
        with suppress(RefusedError):
            probabilities, _ = await self._probabilities(TRIAL_PROMPT, self._token_query(tokens))
            if all(token in probabilities for word_tokens in tokens.values() for token in word_tokens):
                return "exact"
        with suppress(RefusedError):
            probabilities, _ = await self._probabilities(TRIAL_PROMPT, _TOP_QUERY)
            if probabilities:
                return "top 20"
        self._tells_logprobs = False
        return "none"

    async def _scores(self) -> bool:
        try:
            await self._scored(TRIAL_PROMPT, "Yes.")
        except ModelError:
            return False
        return True

    async def _prompt(self, messages: Messages) -> list[int]:
        return await self._tokenized(
            {"messages": chat_messages(messages), "add_generation_prompt": True, **THINKING_OFF_FIELDS}
        )

    async def _opens_thoughts(self, text: str) -> bool | None:  # noqa: ARG002 - the prompt itself is told
        last_tokens = (await self._prompt(TRIAL_PROMPT))[-_LAST_TOKENS:]
        reply = await self.wire.glance("/detokenize", {"model": self.model, "tokens": last_tokens})
        return opens_thought(str(reply["prompt"])) if "prompt" in reply else None

    async def _tokens(self, text: str) -> list[int]:
        return await self._tokenized({"prompt": text, "add_special_tokens": False})

    async def _tokenized(self, body: Json) -> list[int]:
        tokens: list[int] = (await self.wire.quickly("/tokenize", {"model": self.model, **body}))["tokens"]
        return tokens
