"""A reply as a server sends it: pieces, folded into the completion as it grows, without what the model only thought."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Literal

from assistant.errors import ModelError
from assistant.llm.thoughts import Thoughts, all_thought
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


async def paced(pieces: AsyncIterator[Piece], first: float, between: float, root: str) -> AsyncIterator[Piece]:
    """The pieces, of which the first word may take `first` seconds, and all that follows `between` seconds each.

    Raises:
        ModelError: one took longer.
    """
    begun = False
    async with aclosing(pieces):  # type: ignore[type-var]
        while True:
            seconds = between if begun else first
            try:
                async with asyncio.timeout(seconds):
                    piece = await anext(pieces, None)
            except TimeoutError:
                raise ModelError(
                    f"The server at {root} sent nothing for {seconds:g} seconds; see what it does, and ask again."
                ) from None
            if piece is None:
                return
            begun = begun or bool(piece.text or piece.thought)
            yield piece


async def completions(
    pieces: AsyncIterator[Piece], thoughts: Thoughts, broken_off: ModelError
) -> AsyncIterator[Completion]:
    """The completion as it grows; the last one has `finish` set.

    Raises:
        ModelError: the pieces end before the reply does (`broken_off`), or all of it was thought.
    """
    now, whole, thought = Completion(""), "", False
    finish: Finish = ""
    async with aclosing(pieces):  # type: ignore[type-var]
        async for piece in pieces:
            if piece.read and not whole:
                yield Completion("", piece.prompt_tokens, read=piece.read)
                continue
            whole, finish, thought = whole + piece.text, piece.finish or finish, thought or piece.thought
            before, now = now, _grown(now, piece, thoughts.without(whole, over=finish == "stop", apart=thought))
            if now.text != before.text:
                yield now
    if not finish:
        raise broken_off
    if not now.text and (thought or whole.strip()):
        raise all_thought()
    yield replace(now, finish=finish)


def _grown(now: Completion, piece: Piece, text: str) -> Completion:
    counted = now.completion_tokens + max(len(piece.logprobs), bool(piece.text))
    return Completion(
        text,
        piece.prompt_tokens or now.prompt_tokens,
        piece.completion_tokens or counted,
        now.logprobs + piece.logprobs,
        cached=piece.cached or now.cached,
    )
