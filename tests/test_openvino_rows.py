"""8-bit weights in groups become 8-bit weights with one scale a row, and stay what they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from assistant.llm.engines.openvino_rows import by_rows, scaled_by_rows

openvino = pytest.importorskip("openvino")
GROUPS, WIDTH = 6, 16


def _weights(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random weights as a conversion writes them: values, zero points and scales of groups."""
    draw = np.random.default_rng(7)
    values = draw.integers(0, 256, (rows, GROUPS, WIDTH), dtype=np.uint8)
    zeros = draw.integers(96, 160, (rows, GROUPS, 1), dtype=np.uint8)
    return values, zeros, draw.uniform(0.001, 0.002, (rows, GROUPS, 1)).astype(np.float16)


def _plain(values: np.ndarray, zeros: np.ndarray, scales: np.ndarray) -> np.ndarray:
    return ((values.astype(np.float32) - zeros) * scales).reshape(len(values), -1)


def _saved(path: Path, rows: int) -> np.ndarray:
    """Write a model that multiplies by such weights; returns them as they are meant."""
    from openvino import opset13 as ops

    grouped = _weights(rows)
    values, zeros, scales = map(ops.constant, grouped)
    weights = ops.multiply(ops.subtract(ops.convert(values, "f16"), ops.convert(zeros, "f16")), scales)
    flat = ops.convert(ops.reshape(weights, ops.constant(np.array([rows, GROUPS * WIDTH])), False), "f32")
    given = ops.parameter([-1, GROUPS * WIDTH], np.float32)
    model = openvino.Model([ops.matmul(given, flat, False, True)], [given])
    openvino.save_model(model, path, compress_to_fp16=False)
    return _plain(*grouped)


def test_weights_are_off_by_half_a_step_at_most() -> None:
    before = _weights(20)
    values, zeros, steps = by_rows(*before)
    assert (values.shape, zeros.shape, steps.shape) == ((20, GROUPS * WIDTH), (20, 1), (20, 1))
    off = np.abs((values.astype(np.float32) - zeros) * steps - _plain(*before))
    assert (off <= steps * 1.01).all()  # values and zero points are rounded, half a step each
    assert off.mean() < steps.mean() * 0.4


def test_a_row_of_zeros_stays_one() -> None:
    values, zeros, scales = _weights(2)
    values[0] = zeros[0]
    made, zero, step = by_rows(values, zeros, scales)
    assert (((made.astype(np.float32) - zero) * step)[0] == 0).all()


@pytest.mark.parametrize("rows", [3, 5000])  # the second takes more than one part
def test_a_model_multiplies_as_before_and_holds_no_groups(tmp_path: Path, rows: int) -> None:
    weights = _saved(tmp_path / "grouped.xml", rows)
    scaled_by_rows(tmp_path / "grouped.xml", tmp_path / "rows.xml")
    model = openvino.Core().read_model(tmp_path / "rows.xml")
    sizes = [
        tuple(node.get_output_shape(0))
        for node in model.get_ops()
        if node.get_type_name() == "Constant" and node.get_element_type() == openvino.Type.u8
    ]
    assert sorted(sizes) == [(rows, 1), (rows, GROUPS * WIDTH)]
    asked = np.random.default_rng(3).normal(size=(4, GROUPS * WIDTH)).astype(np.float32)
    given = openvino.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(asked)[0]
    wanted = asked @ weights.T
    assert np.abs(given - wanted).max() < 0.02 * np.abs(wanted).max()


def test_what_has_no_groups_stays_as_it_is(tmp_path: Path) -> None:
    _saved(tmp_path / "grouped.xml", 3)
    scaled_by_rows(tmp_path / "grouped.xml", tmp_path / "once.xml")
    scaled_by_rows(tmp_path / "once.xml", tmp_path / "twice.xml")
    assert (tmp_path / "once.bin").read_bytes() == (tmp_path / "twice.bin").read_bytes()
