"""A reply as a server sends it: pieces, folded into the completion as it grows, without what the model only thought."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Literal

from assistant.errors import ModelError
from assistant.llm.thoughts import ThoughtFilter, only_thought_error
from assistant.types import Completion

Finish = Literal["", "stop", "length"]


@dataclass(frozen=True, slots=True)
class Piece:
    """What came next of a reply. Numbers of tokens are those so far, 0 where the server doesn't tell.

    `thought` says that the model thought meanwhile; `read` how far it has read the prompt, and `cached` how much of the
    prompt it needn't read.
    """

    text: str = ""
    thought: bool = False
    logprobs: tuple[float, ...] = ()
    prompt_tokens: int = 0
    completion_tokens: int = 0
    finish: Finish = ""
    read: int = 0
    cached: int = 0


async def paced(
    pieces: AsyncIterator[Piece], first_timeout: float, next_timeout: float, root: str
) -> AsyncIterator[Piece]:
    """The pieces, of which the first word may take `first_timeout` seconds, and each that follows `next_timeout`.

    Raises:
        ModelError: one took longer.
    """
    has_begun = False
    async with aclosing(pieces):  # type: ignore[type-var]
        while True:
            seconds = next_timeout if has_begun else first_timeout
            try:
                async with asyncio.timeout(seconds):
                    piece = await anext(pieces, None)
            except TimeoutError:
                raise ModelError(
                    f"The server at {root} sent nothing for {seconds:g} seconds; see what it does, and ask again."
                ) from None
            if piece is None:
                return
            has_begun = has_begun or bool(piece.text or piece.thought)
            yield piece


async def completions(
    pieces: AsyncIterator[Piece], thoughts: ThoughtFilter, broken_off: ModelError
) -> AsyncIterator[Completion]:
    """The completion as it grows; the last one has `finish` set.

    Raises:
        ModelError: the pieces end before the reply does (`broken_off`), or all of it was thought.
    """
    completion, text, has_thought = Completion(""), "", False
    finish: Finish = ""
    async with aclosing(pieces):  # type: ignore[type-var]
        async for piece in pieces:
            if piece.read and not text:
                yield Completion("", piece.prompt_tokens, read=piece.read)
                continue
            text, finish, has_thought = text + piece.text, piece.finish or finish, has_thought or piece.thought
            previous, completion = (
                completion,
                _grown(completion, piece, thoughts.reply_text(text, over=finish == "stop", apart=has_thought)),
            )
            if completion.text != previous.text:
                yield completion
    if not finish:
        raise broken_off
    if not completion.text and (has_thought or text.strip()):
        raise only_thought_error()
    yield replace(completion, finish=finish)


def _grown(completion: Completion, piece: Piece, text: str) -> Completion:
    counted_tokens = completion.completion_tokens + max(len(piece.logprobs), bool(piece.text))
    return Completion(
        text,
        piece.prompt_tokens or completion.prompt_tokens,
        piece.completion_tokens or counted_tokens,
        completion.logprobs + piece.logprobs,
        cached=piece.cached or completion.cached,
    )
