"""8-bit weights of a converted model with one scale for each row, in place of one for every 16 of them.

A Q4_K_M file holds the tensors that matter most in 6 bits and groups of 16, of which the conversion makes 8 bits in the
same groups. With one scale for a whole row the probabilities stay as they were, the engine needs 0.3 GB less for the
default model, and it is faster (docs/results/llm.md).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_LEVELS = 255
_ROWS = 4096  # treated at a time, which bounds the memory that this takes
# How the conversion writes weights in groups: the values less their zero point, times the scale, brought into two
# dimensions.
_CHAIN = ("Reshape", "Multiply", "Subtract", "Convert", "Constant")

Bytes = npt.NDArray[np.uint8]
Halves = npt.NDArray[np.float16]


def scaled_by_rows(source: Path, target: Path) -> None:
    """Write the model of `source` (an .xml, with its .bin beside it) to `target`, its 8-bit weights scaled by rows."""
    import openvino  # noqa: PLC0415 - heavy, and not needed by other backends

    model = openvino.Core().read_model(source)
    for reshape in list(_grouped(model)):
        reshape.output(0).replace(_by_rows(reshape).output(0))
    openvino.save_model(model, target, compress_to_fp16=False)


def by_rows(values: Bytes, zeros: Bytes, scales: Halves) -> tuple[Bytes, Bytes, Halves]:
    """Weights in groups as weights with one zero point and one scale a row.

    Args:
        values: rows by groups by weights of a group.
        zeros: rows by groups by one.
        scales: rows by groups by one; a weight is (value - zero) * scale.

    Returns:
        The values, rows by weights, and the zero points and scales, rows by one.
    """
    weights = ((values.astype(np.float32) - zeros) * scales.astype(np.float32)).reshape(len(values), -1)
    lowest = weights.min(axis=1, keepdims=True).clip(max=0)
    highest = weights.max(axis=1, keepdims=True).clip(min=0)
    # No scale is 0, as that of a row of zeros would be.
    step = np.maximum((highest - lowest) / _LEVELS, np.finfo(np.float16).tiny).astype(np.float16)
    zero = np.rint(-lowest / step).clip(0, _LEVELS)
    return (np.rint(weights / step) + zero).clip(0, _LEVELS).astype(np.uint8), zero.astype(np.uint8), step


def _grouped(model: Any) -> Iterator[Any]:
    """The nodes that end a chain of 8-bit weights in groups."""
    for node in model.get_ops():
        chain = _upwards(node)
        if tuple(chain_node.get_type_name() for chain_node in chain) == _CHAIN:
            weights = chain[-1]
            if weights.get_element_type().get_type_name() == "u8" and len(weights.get_output_shape(0)) == 3:
                yield node


def _upwards(node: Any) -> list[Any]:
    chain = [node]
    while len(chain) < len(_CHAIN) and chain[-1].get_input_size():
        chain.append(chain[-1].input_value(0).get_node())
    return chain


def _by_rows(reshape: Any) -> Any:
    """The node that stands for the same weights, scaled by rows."""
    from openvino import opset13 as ops  # noqa: PLC0415 - as above

    _, multiply, subtract, _, constant = _upwards(reshape)
    grouped = (constant.data, subtract.input_value(1).get_node().input_value(0).get_node().data)
    scales = multiply.input_value(1).get_node().data
    parts = [
        by_rows(*(array[start : start + _ROWS] for array in (*grouped, scales)))
        for start in range(0, len(scales), _ROWS)
    ]
    values, zeros, steps = (np.concatenate(blocks) for blocks in zip(*parts, strict=True))
    weights = ops.subtract(ops.convert(ops.constant(values), "f16"), ops.convert(ops.constant(zeros), "f16"))
    return ops.multiply(weights, ops.constant(steps))


if __name__ == "__main__":
    scaled_by_rows(Path(sys.argv[1]), Path(sys.argv[2]))
