"""Attention of replies that are written side by side."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from llm_contract import ask
from torch import Tensor
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from assistant.llm import packed_attention
from assistant.llm.engines.transformers import Transformers
from assistant.llm.packed_attention import packed_attention_forward
from assistant.settings import LLMSettings
from assistant.types import Options

ASKED, HELD = (1, 5, 3, 1), (7, 5, 9, 1)  # one goes on, one is new, one is read in pieces, one has a single token


class Pages:
    """Stands for the pages of continuous batching: what they hold is given."""

    def __init__(self, key: Tensor, value: Tensor) -> None:
        self._held = key, value

    def update(self, *, key_states: Tensor, value_states: Tensor, layer_idx: int, kwargs: dict[str, Any]) -> Any:
        kwargs["cu_seq_lens_k"] = kwargs["cu_seq_lens_k"]["full_attention"]
        return self._held


def ends(lengths: tuple[int, ...]) -> Tensor:
    return torch.tensor([0, *lengths]).cumsum(0)


def only_their_own() -> Tensor:
    mask = torch.full((1, 1, sum(ASKED), sum(HELD)), torch.finfo(torch.float32).min)
    for (a, asks), (h, holds) in zip(
        zip(ends(ASKED).tolist(), ASKED, strict=False), zip(ends(HELD).tolist(), HELD, strict=False), strict=False
    ):
        mask[..., a : a + asks, h : h + holds].triu_(holds - asks + 1)
    return mask


@pytest.mark.parametrize("groups", [1, 3])
def test_packed_requests_get_what_they_get_behind_a_mask(groups: int) -> None:
    torch.manual_seed(1)
    query = torch.randn(1, 6, sum(ASKED), 8)
    key, value = torch.randn(2, 1, 6 // groups, sum(HELD), 8)
    layer = SimpleNamespace(layer_idx=0, num_key_value_groups=groups)
    mask = only_their_own()
    together, _ = sdpa_attention_forward(layer, query, key, value, mask, scaling=0.5)  # type: ignore[arg-type]
    apart, _ = packed_attention_forward(
        layer, query, key[..., :0, :], value[..., :0, :], mask,  # type: ignore[arg-type]
        cache=Pages(key, value), scaling=0.5,
        cu_seq_lens_q=ends(ASKED), cu_seq_lens_k={"full_attention": ends(HELD)},
    )  # fmt: skip
    torch.testing.assert_close(apart, together)


def test_without_pages_it_is_what_it_was() -> None:
    torch.manual_seed(1)
    query, key, value = torch.randn(3, 1, 2, 4, 8)
    layer = SimpleNamespace(is_causal=True)
    plain, _ = sdpa_attention_forward(layer, query, key, value, None)  # type: ignore[arg-type]
    torch.testing.assert_close(packed_attention_forward(layer, query, key, value, None)[0], plain)  # type: ignore[arg-type]


@pytest.mark.model
def test_no_request_looks_at_the_tokens_of_another(smollm_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = Transformers(smollm_folder, LLMSettings(context=2048, slots=3))
    longest = []

    def watched(module: Any, query: Tensor, key: Tensor, *rest: Any, **more: Any) -> Any:
        longest.append(key.shape[2])
        return sdpa_attention_forward(module, query, key, *rest, **more)

    monkeypatch.setattr(packed_attention, "sdpa_attention_forward", watched)
    prompts = [ask(f"Tell a story of {n} ships. " + "They sailed for days. " * 10) for n in range(3)]
    people = [Thread(target=lambda p=prompt: list(llm.stream(p, Options(8), Event()))) for prompt in prompts]  # type: ignore[misc]
    for one in people:
        one.start()
    for one in people:
        one.join()
    assert 0 < max(longest) < max(map(llm.count, prompts)) + 8
    llm.close()
