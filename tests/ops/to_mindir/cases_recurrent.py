"""Recurrent layers."""

from typing import Any

import numpy as np
from support.onnx_case import OnnxCase

_RNG = np.random.default_rng(8)
_STEPS, _BATCH, _WIDTH, _HIDDEN = 4, 2, 3, 5


def _floats(*shape: int) -> np.ndarray:
    return _RNG.standard_normal(shape).astype(np.float32)


def _layer(
    gates: int, direction: str = "forward", bias: bool = True, states: int = 0, layout: int = 0
) -> tuple[list[np.ndarray | None], dict[str, Any]]:
    ways, rows = 2 if direction == "bidirectional" else 1, gates * _HIDDEN
    x = (_BATCH, _STEPS, _WIDTH) if layout else (_STEPS, _BATCH, _WIDTH)
    state = (_BATCH, ways, _HIDDEN) if layout else (ways, _BATCH, _HIDDEN)
    inputs: list[np.ndarray | None] = [_floats(*x), _floats(ways, rows, _WIDTH)]
    inputs += [_floats(ways, rows, _HIDDEN), _floats(ways, 2 * rows) if bias else None, None]
    inputs += [_floats(*state) for _ in range(states)]
    how: dict[str, Any] = {"hidden_size": _HIDDEN, "direction": direction}
    return inputs, {**how, "layout": layout} if layout else how


def _with(
    layer: tuple[list[np.ndarray | None], dict[str, Any]],
    sequence_lens: tuple[int, ...] | None = None,
    **attributes: Any,
) -> tuple[list[np.ndarray | None], dict[str, Any]]:
    inputs, how = layer
    if sequence_lens is not None:
        inputs[4] = np.asarray(sequence_lens, np.int32)
    return inputs, {**how, **attributes}


_WEIGHTS = (1, 2, 3)

CASES = [
    *[
        OnnxCase(
            "LSTM",
            *_layer(4, direction, bias, states),
            outputs=3,
            constants=_WEIGHTS,
            primitives={"LSTM"},
            note=f"bias {bias}, {states} states",
            open_dims=is_open,
        )
        for direction in ("forward", "reverse", "bidirectional")
        for bias, states in [(True, 0), (False, 2)]
        for is_open in (False, True)
    ],
    OnnxCase("LSTM", *_layer(4), outputs=3, note="computed weights"),
    OnnxCase("GRU", *_layer(3), outputs=2, constants=_WEIGHTS, custom="on Ascend alone"),
    *[
        OnnxCase(
            "LSTM",
            *_with(_layer(4), sequence_lens=lengths),
            constants=(*_WEIGHTS, 4),
            custom=why,
        )
        for lengths, why in [((4, 4), ""), ((4, 2), "different lengths")]
    ],
    OnnxCase("LSTM", *_with(_layer(4), clip=1.0), constants=_WEIGHTS, custom="clip"),
    OnnxCase("LSTM", *_with(_layer(4), input_forget=1), constants=_WEIGHTS, custom="input_forget"),
    OnnxCase(
        "LSTM",
        *_with(_layer(4), activations=["Sigmoid", "Tanh", "Relu"]),
        constants=_WEIGHTS,
        custom="activations sigmoid, tanh, relu",
    ),
]
