"""MPNet run by OpenVINO: a BERT whose attention is also told how far apart two tokens stand.

Song et al., "MPNet: Masked and Permuted Pre-training for Language Understanding", NeurIPS 2020; distances fall into
buckets as in T5 (Raffel et al. 2020), exact when near and ever wider when far.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assistant.llm.bert import Network, Tensors

# What the low-rank matrices of a layer are called.
DOWN, UP = ".lora_A.weight", ".lora_B.weight"
# Tokens apart from which on all distances are one.
_MAX_DISTANCE = 128


class MPNet(Network):
    """MPNet as OpenVINO's graph of operations; see `Network`."""

    title = "MPNet"
    # behind the number that stands for what fills a text up
    first_place = 2
    query, key, value, joined, attended = (
        "attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o", "attention.LayerNorm",
    )  # fmt: skip

    def _embedded(self, ids: Any, kinds: Any) -> Any:  # noqa: ARG002 - it doesn't tell the texts of a pair apart
        words, position = (
            self.rows(f"{self._prefix}embeddings.{table}_embeddings.weight", indices)
            for table, indices in (("word", ids), ("position", self.position_ids(ids)))
        )
        return self.normalised(self.ops.add(words, position), f"{self._prefix}embeddings.LayerNorm")

    def _attention_bias(self, ids: Any, mask: Any) -> Any:
        ops = self.ops
        bias = self.rows(f"{self._prefix}encoder.relative_attention_bias.weight", self._buckets(ids))
        return ops.add(super()._attention_bias(ids, mask), ops.unsqueeze(ops.transpose(bias, [2, 0, 1]), 0))

    def _buckets(self, ids: Any) -> Any:
        """For each two tokens the bucket of their distance: shape (tokens, tokens)."""
        ops, max_distance = self.ops, self._config["max_position_embeddings"]
        table = buckets(np.arange(-max_distance, max_distance + 1), self._config["relative_attention_num_buckets"])
        positions = self.position_ids(ids)
        distances = ops.subtract(ops.unsqueeze(positions, 0), ops.unsqueeze(positions, 1))
        return ops.gather(table, ops.add(distances, np.int32(max_distance)), 0)


class Adaptable(MPNet):
    """MPNet with what was learned for a task as further inputs, so that one network serves several tasks.

    For a layer this is two low-rank matrices, whose product is added to it (Hu et al. 2022, "LoRA"); a head is given
    whole.

    Args:
        tensors: see `Bert`.
        config: see `Network`.
        learned: the names of the learned tensors.
    """

    def __init__(self, tensors: Tensors, config: Mapping[str, Any], learned: Collection[str]) -> None:
        super().__init__(tensors, config)
        self._learned = learned

    def linear(self, states: Any, name: str) -> Any:
        """The layer of this name, with what was learned for it."""
        if f"{name}.weight" in self._learned:
            return self.ops.add(self._product(states, f"{name}.weight"), self._input(f"{name}.bias", 1))
        output = super().linear(states, name)
        if f"{name}{DOWN}" not in self._learned:
            return output
        return self.ops.add(output, self._product(self._product(states, f"{name}{DOWN}"), f"{name}{UP}"))

    def _product(self, states: Any, name: str) -> Any:
        return self.ops.matmul(states, self._input(name, 2), transpose_a=False, transpose_b=True)

    def _input(self, name: str, dimensions: int) -> Any:
        self.extra_inputs[name] = self.ops.parameter([-1] * dimensions, np.float32)
        return self.extra_inputs[name]


def buckets(distances: NDArray[Any], count: int) -> NDArray[np.int32]:
    """The bucket, of so many, of each distance; half of them are for tokens that stand before."""
    half = count // 2
    exact = half // 2
    steps = np.abs(distances)
    # the logarithm of 0 is never used
    log_steps = (
        np.log(np.maximum(steps, 1).astype(np.float32) / exact)
        / np.log(np.float32(_MAX_DISTANCE / exact))
        * (half - exact)
    )
    far_buckets = np.minimum(exact + log_steps.astype(np.int32), half - 1)
    indices: NDArray[np.int32] = (np.where(steps < exact, steps, far_buckets) + half * (distances > 0)).astype(np.int32)
    return indices


def logit(network: Network, states: Any, mask: Any) -> Any:  # noqa: ARG001 - a `Head`
    """The logit of MPNet's classifier with one output: shape (texts, 1)."""
    first_state = network.ops.gather(states, 0, 1)
    return network.linear(network.ops.tanh(network.linear(first_state, "classifier.dense")), "classifier.out_proj")
