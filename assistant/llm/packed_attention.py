"""Attention for packed requests in which each request attends only to its own tokens.

Transformers packs all requests of a step into one row and multiplies all keys by all queries, with a mask that leaves
each request its own. Twelve equal requests so cost twelve times as much as they need. Flash attention knows where each
request begins, but there is none for a CPU.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward


def packed_attention_forward(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    cache: Any = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Transformers' "sdpa", but on a CPU with packed requests computed one after the other.

    Args:
        module: the layer.
        query: of all requests, (1, heads, tokens, width).
        key: the same with the model's heads of keys.
        value: as `key`.
        attention_mask: (1, 1, tokens, tokens of the requests with those that were read before).
        cache: the pages of continuous batching; without them this is transformers' function.
        kwargs: cu_seq_lens_q and, by kind of layer, cu_seq_lens_k tell where each request begins and ends.

    Returns:
        (1, tokens, heads, width), and no weights.
    """
    if cache is None or attention_mask is None or query.device.type != "cpu":
        return sdpa_attention_forward(module, query, key, value, attention_mask, cache=cache, **kwargs)
    # this leaves in `kwargs` the ends that hold for this layer
    key, value = cache.update(key_states=key, value_states=value, layer_idx=module.layer_idx, kwargs=kwargs)
    outputs = []
    for query_span, key_span in zip(_spans(kwargs["cu_seq_lens_q"]), _spans(kwargs["cu_seq_lens_k"]), strict=True):
        own_mask = attention_mask[:, :, query_span, key_span]
        output, _ = sdpa_attention_forward(
            module, query[:, :, query_span], key[:, :, key_span], value[:, :, key_span], own_mask, **kwargs
        )
        outputs.append(output)
    return torch.cat(outputs, dim=1), None


def install() -> None:
    """Register this as the "sdpa" of every model of the process."""
    AttentionInterface.register("sdpa", packed_attention_forward)


def _spans(ends: Tensor) -> list[slice]:
    return [slice(start, end) for start, end in pairwise(ends.tolist())]
