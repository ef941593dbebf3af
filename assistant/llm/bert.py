"""BERTs run by OpenVINO: a turn's small models on a CPU, without torch, which takes seconds and half a gigabyte.

The network of Devlin et al., "BERT", NAACL 2019, is built from the weights when they are loaded, in a second: nothing
is converted beforehand. In float32 it gives what transformers does to five digits; where the processor multiplies bf16,
that is used, as torch is told to. What isn't a plain BERT is left to torch, and so is everything on a GPU.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assistant.llm.mapped_tensors import MappedTensors
from assistant.llm.processor import cores, sees_gpu
from assistant.llm.shortest_first import ShortestFirst

# Of a matrix in int8: the scale of each row, which it is multiplied by.
SCALE = ".scale"
# A masked token's attention; what is added to it before the softmax.
_MASKED = -1e4
# The engine keeps what it prepared for a few shapes of inputs, as hardly one comes twice. Left to itself, it would also
# round what goes into matrices in int8, where logits move by 0.09.
_OPTIONS = {"PERFORMANCE_HINT": "LATENCY", "CPU_RUNTIME_CACHE_CAPACITY": "32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
# Tokens read at once after which the engine lets go of its working memory, some 60 MB.
_LARGE = 2048
# Networks that read at once. Each uses all cores, so with few of these more would only delay each other, and the one
# sentence of somebody who has just asked would share them with what the judges of others read.
_TURNS = ShortestFirst(max(1, cores() // 2))

Tensors = Mapping[str, NDArray[Any]]
# The last hidden states, shape (texts, tokens, width), and the mask, shape (texts, tokens) -> a row for each text.
Head = Callable[["Network", Any, Any], Any]


class UnfitError(Exception):
    """This model isn't one that OpenVINO can run here; the message says why."""


class Bert:
    """A BERT with what stands on it. Threads take turns.

    Args:
        folder: has `config.json` and `tokenizer.json`.
        tensors: its weights by their names in transformers, in floats, or in int8 with `NAME.scale` for each row.
        length: tokens that are read of a text, or of a pair of which the longer one is cut first.
        head: what is made of the hidden states.

    Raises:
        UnfitError: it is another kind of network, something is missing or broken, there is a GPU, or no OpenVINO.
    """

    def __init__(self, folder: Path, tensors: Tensors, length: int, head: Head) -> None:
        with errors_as_unfit():
            self._texts = TextInputs(folder, length, Network)
            self.length, self.width = self._texts.length, int(self._texts.config["hidden_size"])
            self._network = CompiledNetwork(Network(tensors, self._texts.config).compiled(head), tensors)

    def __call__(self, texts: Sequence[str] | Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """A row for each text or pair, shape (len(texts), width of the head); all are read at once."""
        return self._network(self._texts(texts))

    def count(self, text: str) -> int:
        """Tokens of a text, its own marks included."""
        return self._texts.count(text)


@contextmanager
def errors_as_unfit() -> Iterator[None]:
    """Raise any error inside the block as an `UnfitError`."""
    try:
        yield
    except Exception as error:  # tokenizers raises nothing narrower
        raise UnfitError(str(error)) from error


class CompiledNetwork:
    """A network, ready to run, and the weights it was made of. Of all, the one with the fewest tokens reads next."""

    def __init__(self, compiled: Any, tensors: Tensors) -> None:
        self._compiled = compiled
        self._drop_pages = tensors.drop_pages if isinstance(tensors, MappedTensors) else lambda: None

    def __call__(self, inputs: Sequence[NDArray[Any]]) -> NDArray[np.float32]:
        """A row for each text; the first of the inputs are the tokens' numbers."""
        with _TURNS.hold(inputs[0].size, self):
            # a copy: the engine uses its memory again
            rows = np.array(self._compiled(inputs, share_inputs=True)[0], dtype=np.float32)
            if inputs[0].size > _LARGE:
                self._compiled.release_memory()
            self._drop_pages()
        return rows


class TextInputs:
    """Makes the inputs of texts for a network of this kind, from the `config.json` and `tokenizer.json` of a folder.

    Raises:
        ValueError: the folder's is another kind of network, there is a GPU, or no OpenVINO.
    """

    def __init__(self, folder: Path, length: int, network: type[Network]) -> None:
        self.config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        _check(self.config, network)
        self.length = min(length, int(self.config["max_position_embeddings"]) - network.first_place)
        self._file = folder / "tokenizer.json"
        self._tokenizer = _cutting(self._file, self.length, self.config)

    def __call__(self, texts: Sequence[str] | Sequence[tuple[str, str]]) -> list[NDArray[np.int32]]:
        """Numbers of tokens, the text of the pair that they stand in, and the mask, each (texts, tokens)."""
        encodings = self._tokenizer.encode_batch(list(texts))
        columns = (
            [encoding.ids for encoding in encodings],
            [encoding.type_ids for encoding in encodings],
            [encoding.attention_mask for encoding in encodings],
        )
        return [np.array(column, dtype=np.int32) for column in columns]

    def count(self, text: str) -> int:
        """Tokens of a text, its own marks included."""
        return len(self._counter.encode(text).ids)

    @cached_property
    def _counter(self) -> Any:
        """A tokenizer that doesn't cut; most networks are never asked to count, and it takes 6 MB."""
        from tokenizers import Tokenizer  # noqa: PLC0415

        tokenizer = Tokenizer.from_file(str(self._file))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer


class Network:
    """A BERT as OpenVINO's graph of operations.

    Args:
        tensors: see `Bert`.
        config: what transformers keeps as `config.json`.
    """

    title = "BERT"
    # The number of a text's first token.
    first_place = 0
    # What its layers of attention are called.
    query, key, value, joined, attended = (
        "attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
        "attention.output.LayerNorm",
    )  # fmt: skip

    def __init__(self, tensors: Tensors, config: Mapping[str, Any]) -> None:
        import openvino.opset13 as ops  # noqa: PLC0415 - not on every machine

        self.ops: Any = ops
        self._tensors, self._config = tensors, config
        prefix = f"{self.title.lower()}."
        self._prefix = prefix if any(name.startswith(prefix) for name in tensors) else ""
        self.extra_inputs: dict[str, Any] = {}  # further inputs by their names

    def compiled(self, head: Head) -> Any:
        """The network under this head, ready to run: (ids, kinds, mask), each (texts, tokens) in int32 -> rows.

        Behind these three come the inputs that are in `extra_inputs` by then, in their order.
        """
        from openvino import Core, Model  # noqa: PLC0415

        ids, kinds, mask = (self.ops.parameter([-1, -1], np.int32) for _ in range(3))
        states = self._embedded(ids, kinds)
        attention_bias = self._attention_bias(ids, mask)
        for n in range(self._config["num_hidden_layers"]):
            states = self._layer(states, attention_bias, f"{self._prefix}encoder.layer.{n}.")
        rows = head(self, states, mask)
        model = Model([rows], [ids, kinds, mask, *self.extra_inputs.values()])
        return Core().compile_model(model, "CPU", _OPTIONS)

    def linear(self, states: Any, name: str) -> Any:
        """The layer of this name, from its weight and its bias."""
        return self.ops.add(
            self.ops.matmul(states, self._matrix(f"{name}.weight"), transpose_a=False, transpose_b=True),
            self._tensors[f"{name}.bias"],
        )

    def _embedded(self, ids: Any, kinds: Any) -> Any:
        """The normalised sum of the embeddings of words, of the text of the pair they stand in, and of positions."""
        words, kind, position = (
            self.rows(f"{self._prefix}embeddings.{table}_embeddings.weight", indices)
            for table, indices in (("word", ids), ("token_type", kinds), ("position", self.position_ids(ids)))
        )
        return self.normalised(self.ops.add(self.ops.add(words, kind), position), f"{self._prefix}embeddings.LayerNorm")

    def position_ids(self, ids: Any) -> Any:
        """The number of each token of a text: shape (tokens,)."""
        ops, first = self.ops, np.int32(self.first_place)
        return ops.range(first, ops.add(ops.gather(ops.shape_of(ids, "i32"), 1, 0), first), 1, "i32")

    def _attention_bias(self, ids: Any, mask: Any) -> Any:  # noqa: ARG002 - other networks need them
        """The bias added to each token's attention to each other, broadcast to (texts, heads, tokens, tokens)."""
        ops = self.ops
        masked = ops.subtract(ops.convert(mask, "f32"), np.float32(1))
        return ops.unsqueeze(ops.multiply(masked, np.float32(-_MASKED)), [1, 2])

    def _layer(self, states: Any, attention_bias: Any, name: str) -> Any:
        ops = self.ops
        query, key, value = (
            self._heads(self.linear(states, f"{name}{part}")) for part in (self.query, self.key, self.value)
        )
        attention = ops.transpose(ops.scaled_dot_product_attention(query, key, value, attention_bias), [0, 2, 1, 3])
        joined = self.linear(ops.reshape(attention, [0, 0, -1], special_zero=True), f"{name}{self.joined}")
        states = self.normalised(ops.add(joined, states), f"{name}{self.attended}")
        intermediate = ops.gelu(self.linear(states, f"{name}intermediate.dense"), "erf")
        return self.normalised(
            ops.add(self.linear(intermediate, f"{name}output.dense"), states), f"{name}output.LayerNorm"
        )

    def _heads(self, states: Any) -> Any:
        heads, width = self._config["num_attention_heads"], self._config["hidden_size"]
        shaped = self.ops.reshape(states, [0, 0, heads, width // heads], special_zero=True)
        return self.ops.transpose(shaped, [0, 2, 1, 3])

    def normalised(self, states: Any, name: str) -> Any:
        """The states through the layer normalisation of this name."""
        ops = self.ops
        standardised = ops.mvn(states, ops.constant([-1]), True, self._config["layer_norm_eps"], "inside_sqrt")
        return ops.add(ops.multiply(standardised, self._tensors[f"{name}.weight"]), self._tensors[f"{name}.bias"])

    def _matrix(self, name: str) -> Any:
        weight = self._tensors[name]
        if weight.dtype != np.int8:
            return self._constant(weight.astype(np.float32, copy=False))
        return self.ops.multiply(self.ops.convert(self._constant(weight), "f32"), self._tensors[name + SCALE])

    def rows(self, name: str, indices: Any) -> Any:
        """Rows of a table, which stays in int8 where it is."""
        ops, table = self.ops, self._tensors[name]
        if table.dtype != np.int8:
            return ops.gather(self._constant(table.astype(np.float32, copy=False)), indices, 0)
        rows, scale = (
            ops.gather(self._constant(self._tensors[tensor_name]), indices, 0) for tensor_name in (name, name + SCALE)
        )
        return ops.multiply(ops.convert(rows, "f32"), scale)

    def _constant(self, values: NDArray[Any]) -> Any:
        """Values that are part of a file stay there; others are copied."""
        return self.ops.constant(values, shared_memory=isinstance(self._tensors, MappedTensors))


def logit(network: Network, states: Any, mask: Any) -> Any:  # noqa: ARG001 - a `Head`
    """The logit of a classifier with one output, on BERT's pooler: shape (texts, 1)."""
    first_state = network.ops.gather(states, 0, 1)
    return network.linear(network.ops.tanh(network.linear(first_state, "bert.pooler.dense")), "classifier")


def mean(network: Network, states: Any, mask: Any) -> Any:
    """The mean over each text's tokens, in length 1: shape (texts, width)."""
    ops = network.ops
    weights = ops.unsqueeze(ops.convert(mask, "f32"), -1)
    return ops.normalize_l2(ops.reduce_sum(ops.multiply(states, weights), 1), [-1], 1e-12, "max")


def _check(config: Mapping[str, Any], network: type[Network]) -> None:
    if not find_spec("openvino"):
        raise ValueError("OpenVINO isn't installed")
    if sees_gpu():
        raise ValueError("there is a GPU")
    kind = config["model_type"], config["hidden_act"], config.get("position_embedding_type", "absolute")
    if kind != (network.title.lower(), "gelu", "absolute"):
        raise ValueError(f"it is no plain {network.title}")


def _cutting(path: Path, length: int, config: Mapping[str, Any]) -> Any:
    """A tokenizer that cuts what is too long and fills up what is shorter than others."""
    from tokenizers import Tokenizer  # noqa: PLC0415

    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.enable_truncation(length)
    tokenizer.enable_padding(pad_id=config.get("pad_token_id") or 0)
    return tokenizer
