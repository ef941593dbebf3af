"""Keys and values of what a model has read: kept from prompt to prompt, and shared where prompts begin alike."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache

from assistant.llm.words import overlap

_KEPT = 4
_WORTH_KEEPING = 16


@dataclass
class Kept:
    """A cache of one sequence and the tokens it was made from; the cache may hold more than these."""

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
        several = copy.deepcopy(self.cache)
        several.batch_repeat_interleave(times)
        return several


@dataclass
class State:
    """What the model has read: its cache, which columns count (batch, length), and logits of what comes next."""

    cache: Any
    mask: Tensor
    logits: Tensor = field(default_factory=lambda: torch.empty(0))

    def select(self, rows: list[int]) -> None:
        """Go on with these rows only."""
        index = torch.tensor(rows, device=self.mask.device)
        self.cache.batch_select_indices(index)
        self.mask = self.mask[index]


class Prefixes:
    """The caches of the last few prompts, the one used last at the end."""

    def __init__(self) -> None:
        self._kept: list[Kept] = []

    def nearest(self, tokens: list[int]) -> tuple[Kept, list[int]]:
        """The cache to go on with, cut to what it has in common with the tokens, and those that it lacks."""
        kept = max(self._kept, key=lambda one: overlap(one.tokens, tokens), default=None)
        if kept is None or overlap(kept.tokens, tokens) < _WORTH_KEEPING:
            kept = Kept()
            self._kept = [*self._kept[-_KEPT + 1 :], kept]
        else:
            self._kept = [*(one for one in self._kept if one is not kept), kept]
        have = min(overlap(kept.tokens, tokens), kept.cache.get_seq_length())
        kept.cut(have)
        kept.tokens = tokens
        return kept, tokens[have:]

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()


def common(prompts: Sequence[list[int]]) -> list[int]:
    """What all prompts begin with, short of the last token of the shortest, which is needed for its logits."""
    first = prompts[0][: min(map(len, prompts)) - 1]
    return first[: min(overlap(first, prompt) for prompt in prompts)]
