"""A reply as it is written, token by token, until an end, a stop string or the end of its room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import torch
from torch import Tensor

from assistant.types import Completion, Options


class Reply:
    """One reply.

    Args:
        prompt_tokens: the length of its prompt.
        room: tokens that it may have.
        options: as asked for.
        decode: the text of tokens, without special ones.
        ends: tokens that end it.
    """

    def __init__(
        self, prompt_tokens: int, room: int, options: Options, decode: Callable[[list[int]], str], ends: set[int]
    ) -> None:
        self.room = room
        self._prompt_tokens, self._options = prompt_tokens, options
        self._decode, self._ends = decode, ends
        self._random = torch.Generator().manual_seed(options.seed)
        self.ids: list[int] = []
        self.logprobs: list[float] = []
        self.text = ""
        self.finish: Literal["", "stop", "length", "cancelled"] = ""

    def add(self, logits: Tensor) -> None:
        """Draw the next token from logits (vocabulary)."""
        token = self._draw(logits)
        self.take(token, float(logits.log_softmax(-1)[token]))

    def take(self, token: int, logprob: float) -> None:
        """Add a token and see whether the reply is over."""
        self.ids.append(token)
        self.logprobs.append(logprob)
        whole = self._decode(self.ids)
        cut = min((at for at in (whole.find(text) for text in self._options.stop if text) if at >= 0), default=-1)
        if cut >= 0 or token in self._ends:
            self.finish = "stop"
        elif len(self.ids) >= self.room:
            self.finish = "length"
        self.text = self._shown(whole if cut < 0 else whole[:cut])

    def completion(self) -> Completion:
        """What there is of it."""
        return Completion(self.text, self._prompt_tokens, len(self.ids), tuple(self.logprobs), self.finish)

    def _draw(self, logits: Tensor) -> int:
        if not self._options.temperature:
            return int(logits.argmax())
        odds = (logits / self._options.temperature).softmax(-1)
        return int(torch.multinomial(odds, 1, generator=self._random))

    def _shown(self, text: str) -> str:
        # The bytes of a character may be spread over tokens: until all are there it decodes to the replacement mark.
        text = text.rstrip("\ufffd")
        if self.finish:
            return text
        held = max((_held(text, mark) for mark in self._options.stop), default=0)
        return text[: len(text) - held]


def growing(steps: Iterator[list[Reply]]) -> Iterator[Completion]:
    """The completion of the only reply, each time that its text has grown, and when it is over."""
    shown = None
    for (reply,) in steps:
        completion = reply.completion()
        if reply.finish or completion.text != shown:
            shown = completion.text
            yield completion
        if reply.finish:
            return


def _held(text: str, mark: str) -> int:
    """How many characters at the end of the text may be the beginning of a stop string."""
    return next((size for size in range(min(len(mark) - 1, len(text)), 0, -1) if text.endswith(mark[:size])), 0)
