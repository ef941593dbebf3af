"""The KV caches of recent prompts, reused by prompts that begin with the same tokens."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from assistant.llm.word_choice import common_length

_CAPACITY = 4
_MIN_PREFIX = 16


@dataclass
class CachedPrompt:
    """The KV cache of one prompt, and the tokens it was made from; the cache may also hold later ones."""

    cache: Any = field(default_factory=DynamicCache)
    tokens: list[int] = field(default_factory=list)

    def cut(self, length: int) -> None:
        """Forget all but the first tokens."""
        if not length:
            self.cache = DynamicCache()
        elif length < self.cache.get_seq_length():
            self.cache.crop(length - self.cache.get_seq_length())  # what to remove, as a negative number

    def repeated(self, times: int) -> Any:
        """A copy of the cache for so many sequences that begin with it."""
        if not self.cache.get_seq_length():
            return DynamicCache()
        batch_cache = copy.deepcopy(self.cache)
        batch_cache.batch_repeat_interleave(times)
        return batch_cache


@dataclass
class State:
    """A batch in generation: its KV cache, the attention mask (batch, length), and the next token's logits."""

    cache: Any
    mask: Tensor
    logits: Tensor = field(default_factory=lambda: torch.empty(0))

    def select(self, rows: list[int]) -> None:
        """Go on with these rows only."""
        index = torch.tensor(rows, device=self.mask.device)
        self.cache.batch_select_indices(index)
        self.mask = self.mask[index]


class PrefixCache:
    """The caches of the last few prompts, the most recently used at the end."""

    def __init__(self) -> None:
        self._cached_prompts: list[CachedPrompt] = []

    def nearest(self, tokens: list[int]) -> tuple[CachedPrompt, list[int]]:
        """The cache with the longest common prefix, cut to that, and the tokens that are still to be read."""
        cached_prompt = max(
            self._cached_prompts, key=lambda candidate: common_length(candidate.tokens, tokens), default=None
        )
        if cached_prompt is None or common_length(cached_prompt.tokens, tokens) < _MIN_PREFIX:
            cached_prompt = CachedPrompt()
            self._cached_prompts = [*self._cached_prompts[-_CAPACITY + 1 :], cached_prompt]
        else:
            self._cached_prompts = [
                *(candidate for candidate in self._cached_prompts if candidate is not cached_prompt),
                cached_prompt,
            ]
        cached_length = min(common_length(cached_prompt.tokens, tokens), cached_prompt.cache.get_seq_length())
        cached_prompt.cut(cached_length)
        cached_prompt.tokens = tokens
        return cached_prompt, tokens[cached_length:]

    def clear(self) -> None:
        """Forget all."""
        self._cached_prompts.clear()


def common_prefix(prompts: Sequence[list[int]]) -> list[int]:
    """The common prefix of all prompts, without the last token of the shortest: its logits are still needed."""
    prefix = prompts[0][: min(map(len, prompts)) - 1]
    return prefix[: min(common_length(prefix, prompt) for prompt in prompts)]
