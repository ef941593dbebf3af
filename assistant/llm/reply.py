"""A reply as it is written, token by token, until an end token, a stop string or its limit of tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Literal

from assistant.types import Completion, Options

if TYPE_CHECKING:
    from torch import Generator, Tensor


class Reply:
    """One reply.

    Args:
        prompt_tokens: the length of its prompt.
        max_tokens: the most tokens of the reply.
        options: as asked for.
        decode: the text of tokens, without special ones.
        ends: tokens that end it.
    """

    def __init__(
        self, prompt_tokens: int, max_tokens: int, options: Options, decode: Callable[[list[int]], str], ends: set[int]
    ) -> None:
        self.max_tokens = max_tokens
        self._prompt_tokens, self._options = prompt_tokens, options
        self._decode, self._ends = decode, ends
        self._random: Generator | None = None
        self.ids: list[int] = []
        self.logprobs: list[float] = []
        self.text = ""
        self.read = 0
        self.finish: Literal["", "stop", "length", "cancelled"] = ""

    def add(self, logits: Tensor) -> None:
        """Draw the next token from logits (vocabulary)."""
        token = self._draw(logits)
        self.take(token, float(logits.log_softmax(-1)[token]))

    def take(self, token: int, logprob: float) -> None:
        """Add a token and see whether the reply is over."""
        self.ids.append(token)
        self.logprobs.append(logprob)
        decoded = self._decode(self.ids)
        stop_position = min(
            (position for position in (decoded.find(text) for text in self._options.stop if text) if position >= 0),
            default=-1,
        )
        if stop_position >= 0 or token in self._ends:
            self.finish = "stop"
        elif len(self.ids) >= self.max_tokens:
            self.finish = "length"
        self.text = self._shown(decoded if stop_position < 0 else decoded[:stop_position])

    def completion(self) -> Completion:
        """What there is of it."""
        read = 0 if self.ids or self.finish else self.read
        return Completion(self.text, self._prompt_tokens, len(self.ids), tuple(self.logprobs), self.finish, read)

    def _draw(self, logits: Tensor) -> int:
        if not self._options.temperature:
            return int(logits.argmax())
        import torch  # noqa: PLC0415 - engines that draw by themselves need none

        self._random = self._random or torch.Generator().manual_seed(self._options.seed)
        probabilities = (logits / self._options.temperature).softmax(-1)
        return int(torch.multinomial(probabilities, 1, generator=self._random))

    def _shown(self, text: str) -> str:
        # The bytes of a character may be spread over tokens: until all are there it decodes to the replacement mark.
        text = text.rstrip("\ufffd")
        if self.finish:
            return text
        held_length = max((_partial_stop_length(text, stop_string) for stop_string in self._options.stop), default=0)
        return text[: len(text) - held_length]


def reply_steps(reply: Reply, tokens: Iterable[tuple[int, float] | int]) -> Iterator[list[Reply]]:
    """The reply after each of the tokens (with its log-probability) that somebody else draws, until it is over.

    A number among them says how many tokens of the prompt are read by then. Where they end before the reply does,
    somebody has stopped it.
    """
    for token in tokens:
        if isinstance(token, int):
            reply.read = token
        else:
            reply.take(*token)
        yield [reply]
        if reply.finish:
            return
    reply.finish = "cancelled"
    yield [reply]


def growing_completions(steps: Iterator[list[Reply]]) -> Iterator[Completion]:
    """The completion of the only reply, each time that more is read or written, and when it is over."""
    last_shown = None
    for (reply,) in steps:
        completion = reply.completion()
        if reply.finish or (completion.text, completion.read) != last_shown:
            last_shown = completion.text, completion.read
            yield completion
        if reply.finish:
            return


def _partial_stop_length(text: str, stop_string: str) -> int:
    """How many characters at the end of the text may be the beginning of a stop string."""
    return next(
        (size for size in range(min(len(stop_string) - 1, len(text)), 0, -1) if text.endswith(stop_string[:size])), 0
    )
