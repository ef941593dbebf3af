"""The probabilities of every token after a prompt, read off the converted model itself.

Continuous batching tells only of the token that it wrote. To choose between words, or to say how likely a given text
is, takes all of them, so the model is loaded a second time, when first asked. What the last prompt left is kept, and
the next is read from where it differs.
"""

from __future__ import annotations

from pathlib import Path
from threading import Event, Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from assistant.llm.engines.openvino_model import MODEL
from assistant.llm.word_choice import common_length

_PIECE = 256
_POSITIONS_INPUT = "kept"


class Logits:
    """One copy of the weights, used by one caller at a time."""

    def __init__(self, folder: Path, threads: int) -> None:
        import openvino  # noqa: PLC0415 - not needed by other backends

        self._tensor = openvino.Tensor
        self._request = _compiled(openvino.Core(), folder, threads).create_infer_request()
        self._tokens: list[int] = []
        self._lock = Lock()

    def after(self, prompt: list[int], text: list[int], stop: Event) -> NDArray[np.float32] | None:
        """Natural-log probabilities of what comes after the prompt, and after each token of the text but the last.

        Returns:
            Shape (max(len(text), 1), vocabulary); None if `stop` came first.
        """
        tokens, row_count = [*prompt, *text[:-1]], max(len(text), 1)
        with self._lock:
            # the last tokens are read again, since their logits are not kept
            cached_length = min(common_length(self._tokens, tokens), len(tokens) - row_count)
            self._cut(cached_length)
            rows: list[NDArray[np.float32]] = []
            for start in range(cached_length, len(tokens), _PIECE):
                if stop.is_set():
                    return None
                piece = tokens[start : start + _PIECE]
                first_index = max(0, len(tokens) - row_count - start)
                rows.append(self._read(piece, start, np.arange(min(first_index, len(piece)), len(piece))))
        return np.asarray(log_softmax(np.concatenate(rows), axis=-1))

    def _read(self, piece: list[int], start: int, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Read tokens at position `start`, and return the logits after those at `positions` in the piece."""
        end = start + len(piece)
        logit_positions = positions if len(positions) else np.array([len(piece) - 1])
        self._request.infer(
            {
                "input_ids": np.array([piece], np.int64),
                "attention_mask": np.ones((1, end), np.int64),
                "position_ids": np.arange(start, end, dtype=np.int64)[None],
                "beam_idx": np.zeros(1, np.int32),
                _POSITIONS_INPUT: logit_positions.astype(np.int64),
            }
        )
        self._tokens = [*self._tokens[:start], *piece]
        logits: NDArray[np.float32] = np.array(self._request.get_output_tensor(0).data[0], np.float32)
        return logits[: len(positions)]

    def _cut(self, length: int) -> None:
        """Forget all but the first tokens."""
        if not length:
            self._request.reset_state()
        elif length < len(self._tokens):
            for state in self._request.query_state():
                state.state = self._tensor(np.ascontiguousarray(state.state.data[:, :, :length]))
        self._tokens = self._tokens[:length]


def _compiled(core: Any, folder: Path, threads: int) -> Any:
    """The model, changed to return only the logits of the tokens that are asked for."""
    import openvino  # noqa: PLC0415
    from openvino import opset13 as ops  # noqa: PLC0415

    model = core.read_model(folder / MODEL)
    head = model.get_results()[0].input_value(0).get_node()
    while head.get_type_name() != "MatMul":
        head = head.input_value(0).get_node()
    positions = ops.parameter([-1], openvino.Type.i64, name=_POSITIONS_INPUT)
    positions.output(0).get_tensor().set_names({_POSITIONS_INPUT})
    hidden = ops.gather(head.input_value(0), positions, ops.constant(np.array(1, np.int64)))
    head.input(0).replace_source_output(hidden.output(0))
    model.add_parameters([positions])
    model.validate_nodes_and_infer_types()
    # Rounding, of which there is more where text is written, would make a score depend on what was read before.
    properties: dict[str, Any] = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
        "KV_CACHE_PRECISION": "f32",
    }
    if threads:
        properties["INFERENCE_NUM_THREADS"] = threads
    return core.compile_model(model, "CPU", properties)
