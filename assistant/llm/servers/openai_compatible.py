"""What every OpenAI-compatible server can do, by `/chat/completions` alone; other kinds build on it.

Nobody tells how many tokens a prompt has, so it is estimated, rather too high. Choices come from the 20 likeliest
tokens, where the server tells them.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from math import ceil, inf
from pathlib import PurePath
from time import monotonic
from typing import Any, ClassVar, Literal, Self

from assistant.errors import ChoiceError, ModelError
from assistant.llm.control_tokens import chat_messages
from assistant.llm.servers.reply_stream import Finish, Piece
from assistant.llm.servers.top_tokens import check_first_words, choice_from_top_tokens
from assistant.llm.servers.wire import Json, RefusedError, Wire
from assistant.llm.thoughts import THINKING_OFF, began_in_thought
from assistant.llm.word_choice import first_tokens, forms
from assistant.settings import MIN_CONTEXT
from assistant.types import Choice, Message, Messages, Options

TOP_LOGPROBS = 20
# Bytes a token: English has more, few languages have less. Of each message, tokens of the template come on top.
_BYTES_PER_TOKEN, _TEMPLATE_TOKENS = 3, 8
# A token has hardly ever more bytes than that; where words are set apart, each has a token of its own.
_MAX_TOKEN_BYTES = 12
TRIAL_PROMPT = (Message("user", "Is water wet? Answer yes or no."),)
# Where servers list the context of a model: vLLM and SGLang, OpenRouter, Groq.
_CONTEXTS = ("max_model_len", "context_length", "context_window")
# What servers with templates of their own are told, so that no reply is spent on thinking.
THINKING_OFF_FIELDS: Json = {"chat_template_kwargs": THINKING_OFF}
_COUNT_PROMPT = (Message("user", "Count from one to three."),)
# Seconds that a first reply may be written, which is over at once unless the model thinks.
PATIENCE = 20.0


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a server can do, as it was found when it was met.

    `choose` says how it tells the probabilities of words: of any ("exact"), of the 20 likeliest tokens, or not at all.
    `cancel` says whether it is known to stop writing when a request is closed, `unopened` whether replies begin within
    a thought that its template has opened; None where that isn't known.
    """

    choose: Literal["exact", "top 20", "none"] = "none"
    score: bool = False
    stream: bool = True
    cancel: bool = False
    context: int = 0
    unopened: bool | None = None


def display_name(model: str) -> str:
    """What people call a model that a server lists so; some list the path of its file."""
    return PurePath(model).stem if model.endswith(".gguf") else model


class OpenAICompatible:
    """The model `model` of a server.

    Args:
        wire: a client of the server.
        model: the name that it lists the model by.
        listed: what it lists of the model.
        context: tokens that a request may use; None for what the server has.
        default_context: what to take where the server doesn't tell.
    """

    KIND: ClassVar[str] = "OpenAI-compatible"
    PORT: ClassVar[int] = 0
    CANCELS: ClassVar[bool] = False
    COUNTS: ClassVar[bool] = False
    # Tokens of a first reply: so many that a thought comes to its end, where nothing else tells of it.
    TRIAL: ClassVar[int] = 300

    def __init__(self, wire: Wire, model: str, listed: Json, context: int | None, default_context: int) -> None:
        self.wire, self.model, self.listed = wire, model, listed
        self.name = display_name(model)
        self._explicit_context, self._default_context = context, default_context
        self._tells_logprobs = True
        self.abilities = Abilities(context=context or default_context)

    @classmethod
    async def recognises(cls, wire: Wire, listed: Sequence[Json]) -> bool:  # noqa: ARG003
        """Whether the server, which lists these models, is of this kind."""
        return True

    @classmethod
    async def writers(cls, wire: Wire, listed: Sequence[Json]) -> Sequence[Json]:  # noqa: ARG003
        """Those of the listed models that can write."""
        return listed

    def salted(self, salt: str) -> Self:  # noqa: ARG002 - other kinds keep what prompts begin with
        """The same for prompts that share what the server keeps of them with those of an equal salt alone."""
        return self

    async def probe(self) -> None:
        """Find out what the server can do, by asking it for a word or two.

        Raises:
            ModelError: it can't answer at all, or has less context than is set.
        """
        self.abilities = Abilities(cancel=self.CANCELS, context=await self._context())
        self.abilities = replace(self.abilities, choose=await self._chooses())
        stream, text = await self._trial_reply()
        self.abilities = replace(self.abilities, score=await self._scores(), stream=stream)
        self.abilities = replace(self.abilities, unopened=await self._opens_thoughts(text))

    async def max_context(self) -> int | None:
        """Tokens that the server gives a request, prompt and reply together; None where it doesn't tell."""
        return next((int(self.listed[key]) for key in _CONTEXTS if self.listed.get(key)), None)

    async def count(self, messages: Messages) -> int:
        """Tokens of the prompt that these messages make."""
        return estimated_tokens(messages)

    async def stream(self, messages: Messages, options: Options) -> AsyncIterator[Piece]:
        """The reply, piece by piece.

        Raises:
            ModelError: the server refused, failed or broke off, or has read but a part of the prompt.
        """
        send, read_tokens = self._streamed if self.abilities.stream else self._whole, 0
        async with aclosing(send(messages, options)) as pieces:  # type: ignore[type-var]
            async for piece in pieces:
                read_tokens = piece.prompt_tokens or read_tokens
                yield piece
        if not self.COUNTS:
            await self._check_read(read_tokens, messages)

    async def choose(self, messages: Messages, words: tuple[str, ...]) -> Choice:
        """How likely each word is to begin the reply, normalised over the words.

        Raises:
            ChoiceError: the server tells no probabilities, or none of enough weight for these words.
        """
        check_first_words(words)
        if self.abilities.choose == "none":
            raise ChoiceError(
                f"{self.wire.root} tells no probabilities, so that {self.name} can't be asked to choose between"
                f" {', '.join(words)}."
            )
        top, prompt_tokens = await self._likeliest(messages)
        return choice_from_top_tokens(words, top, prompt_tokens, self.name)

    async def score(self, messages: Messages, text: str) -> float:  # noqa: ARG002 - other kinds can
        """The sum of the text's log-probabilities.

        Raises:
            ModelError: the server tells none of a given text.
        """
        raise ModelError(
            f"{self.wire.root} can't tell how likely a text of {self.name} is; set llm.backend to transformers."
        )

    # --- what is asked for, and what comes back -----------------------------------------------------------------

    def _extra(self) -> Json:
        """What only this kind understands."""
        return {}

    def _usage(self) -> Json:
        return {"include_usage": True}

    def _body(self, messages: Messages, options: Options) -> Json:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": chat_messages(messages),
            # vLLM refuses to write more than fits
            "max_tokens": min(options.max_tokens, self.abilities.context),
            "temperature": options.temperature,
            "top_p": 1.0,
            "seed": options.seed,
            **self._extra(),
        }
        if stop := [text for text in options.stop if text]:
            body["stop"] = stop
        if options.schema:
            schema = {"name": "reply", "strict": True, "schema": json.loads(options.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        if self._tells_logprobs:
            body["logprobs"] = True
        return body

    def _piece(self, event: Json) -> Piece:
        choice, usage = first_object(event.get("choices")), event.get("usage") or {}
        message = choice.get("delta") or choice.get("message") or {}
        thought = bool(message.get("reasoning") or message.get("reasoning_content"))
        return Piece(
            message.get("content") or "",
            thought,
            () if thought else logprobs(choice),
            usage.get("prompt_tokens") or 0,
            usage.get("completion_tokens") or 0,
            finish_of(choice.get("finish_reason")),
        )

    async def _streamed(self, messages: Messages, options: Options) -> AsyncIterator[Piece]:
        body = {**self._body(messages, options), "stream": True, "stream_options": self._usage()}
        async with aclosing(self.wire.events("chat/completions", body)) as events:  # type: ignore[type-var]
            async for event in events:
                yield self._piece(event)

    async def _whole(self, messages: Messages, options: Options) -> AsyncIterator[Piece]:
        yield self._piece(await self.wire.post("chat/completions", self._body(messages, options)))

    async def _likeliest(self, messages: Messages) -> tuple[list[tuple[str, float]], int]:
        """The likeliest first tokens as texts, with their log-probabilities, and how many tokens were read."""
        body = {**self._body(messages, Options(max_tokens=1)), "logprobs": True, "top_logprobs": TOP_LOGPROBS}
        reply = await self.wire.post("chat/completions", body)
        content = (first_object(reply.get("choices")).get("logprobs") or {}).get("content")
        top = first_object(content).get("top_logprobs") or []
        return [(row["token"], row["logprob"]) for row in top], (reply.get("usage") or {}).get("prompt_tokens") or 0

    async def _check_read(self, read_tokens: int, messages: Messages) -> None:
        estimate = await self.count(messages)
        is_too_few = 0 < read_tokens < min_tokens(messages)
        if is_too_few and estimate > MIN_CONTEXT and await self._tells_again(read_tokens, messages):
            raise ModelError(
                f"The server at {self.wire.root} read only {read_tokens:,} of about {estimate:,} tokens, so it cuts"
                " long prompts; start it with more context, or set llm.context to what it has."
            )

    async def _tells_again(self, tokens: int, messages: Messages) -> bool:
        """Whether as many tokens of the prompt are read again; who leaves out what is in the cache tells fewer now."""
        try:
            return [piece.prompt_tokens async for piece in self._whole(messages, Options(max_tokens=1))] == [tokens]
        except ModelError:
            return False

    # --- what it can do -----------------------------------------------------------------------------------------

    async def _context(self) -> int:
        max_context = await self.max_context()
        if max_context and self._explicit_context and self._explicit_context > max_context:
            raise ModelError(
                f"The server at {self.wire.root} gives {self.name} {max_context:,} tokens a request; lower llm.context"
                f" from {self._explicit_context:,}, or start it with more."
            )
        context = self._explicit_context or max_context or self._default_context
        if context < MIN_CONTEXT:
            raise ModelError(
                f"The server at {self.wire.root} gives {self.name} {context:,} tokens a request, and at least"
                f" {MIN_CONTEXT:,} are needed; start it with more."
            )
        return context

    async def _chooses(self) -> Literal["exact", "top 20", "none"]:
        try:
            top, _ = await self._likeliest(TRIAL_PROMPT)
        except RefusedError:
            top = []
        self._tells_logprobs = bool(top)
        return "top 20" if top else "none"

    async def _scores(self) -> bool:
        return False

    async def _trial_reply(self) -> tuple[bool, str]:
        """Whether a reply comes in pieces, and what was written of it until that and where a thought ends is known.

        A server that refuses this and a whole reply, too, can't be used.
        """
        options, texts, deadline = Options(max_tokens=self.TRIAL), list[str](), inf
        try:
            async with aclosing(self._streamed(_COUNT_PROMPT, options)) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    texts += [piece.text] if piece.text or piece.thought else []
                    deadline = min(deadline, monotonic() + PATIENCE)
                    if len(texts) > 1 and (began_in_thought("".join(texts)) or monotonic() > deadline):
                        break
        except RefusedError:
            return False, "".join([piece.text async for piece in self._whole(_COUNT_PROMPT, options)])
        return len(texts) > 1, "".join(texts)

    async def _opens_thoughts(self, text: str) -> bool | None:
        """Whether the template opens a thought; that it does is told by this reply, that it doesn't by none."""
        return began_in_thought(text) or None


class Tokenizing(OpenAICompatible):
    """A kind of server that tells the tokens of a prompt and of a text, and refuses prompts that are too long."""

    COUNTS, TRIAL = True, 12

    def __init__(self, wire: Wire, model: str, listed: Json, context: int | None, default_context: int) -> None:
        super().__init__(wire, model, listed, context, default_context)
        self._words: dict[tuple[str, ...], dict[str, list[int]]] = {}

    async def count(self, messages: Messages) -> int:
        """As the server counts them."""
        return len(await self._prompt(messages))

    @abstractmethod
    async def _prompt(self, messages: Messages) -> list[int]: ...

    @abstractmethod
    async def _tokens(self, text: str) -> list[int]: ...

    async def _first_tokens(self, words: tuple[str, ...]) -> dict[str, list[int]]:
        if words not in self._words:
            tokens_by_form = {form: await self._tokens(form) for word in words for form in forms(word)}
            self._words[words] = first_tokens(words, tokens_by_form.__getitem__)
        return self._words[words]


def estimated_tokens(messages: Messages) -> int:
    """Tokens of the prompt that the messages make, rather too many."""
    return _TEMPLATE_TOKENS + sum(
        ceil(len(message.content.encode("utf-8", "replace")) / _BYTES_PER_TOKEN) + _TEMPLATE_TOKENS
        for message in messages
    )


def min_tokens(messages: Messages) -> int:
    """Tokens that the messages have at least, in whatever language: one a word, or one for so many bytes."""
    words = [word for message in messages for word in message.content.split()]
    return max(len(words), sum(len(word.encode("utf-8", "replace")) for word in words) // _MAX_TOKEN_BYTES)


def first_object(items: object) -> Json:
    """The first object of a list, {} where there is none."""
    return items[0] if isinstance(items, list) and items and isinstance(items[0], dict) else {}


def logprobs(choice: Json) -> tuple[float, ...]:
    """The log-probabilities of the tokens that came."""
    content = (choice.get("logprobs") or {}).get("content") or []
    return tuple(entry["logprob"] for entry in content)


def finish_of(reason: str | None) -> Finish:
    """Why a reply is over, "" as long as it isn't."""
    if not reason:
        return ""
    return "length" if reason == "length" else "stop"
