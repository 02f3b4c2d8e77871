"""Convolutions."""

from typing import Any

import numpy as np
from support.onnx_case import OnnxCase

_RNG = np.random.default_rng(2)


def _floats(*shape: int) -> np.ndarray:
    return _RNG.standard_normal(shape).astype(np.float32)


def _conv(
    x: tuple[int, ...], w: tuple[int, ...], bias: bool = True, **attributes: Any
) -> tuple[list[np.ndarray | None], dict[str, Any]]:
    inputs: list[np.ndarray | None] = [_floats(*x), _floats(*w)]
    return [*inputs, _floats(w[0])] if bias else inputs, attributes


_WAYS = [
    _conv((1, 3, 9, 11), (4, 3, 3, 3)),
    _conv((2, 3, 9, 11), (4, 3, 3, 3), bias=False, pads=[1, 1, 1, 1], strides=[2, 2]),
    _conv((1, 3, 9, 11), (4, 3, 3, 3), pads=[1, 0, 2, 1]),
    _conv((1, 4, 9, 11), (8, 1, 3, 3), group=4, pads=[1, 1, 1, 1]),
    _conv((1, 4, 9, 11), (8, 2, 3, 2), group=2, strides=[2, 1]),
    _conv((1, 3, 12, 12), (4, 3, 3, 3), dilations=[2, 3], pads=[2, 2, 2, 2]),
    _conv((1, 3, 9, 11), (4, 3, 3, 3), auto_pad="SAME_UPPER", strides=[2, 2]),
    _conv((1, 3, 9, 11), (4, 3, 2, 4), auto_pad="SAME_LOWER"),
    _conv((1, 3, 9, 11), (4, 3, 2, 4), auto_pad="VALID", kernel_shape=[2, 4]),
    _conv((2, 3, 12), (4, 3, 3), pads=[1, 2], strides=[2]),
    _conv((2, 4, 12), (8, 1, 3), group=4, dilations=[2], bias=False),
    _conv((1, 2, 5, 6, 7), (3, 2, 2, 3, 3), pads=[0, 1, 1, 1, 0, 2], strides=[1, 2, 1]),
    _conv((1, 2, 5, 6, 7), (3, 2, 2, 3, 3), bias=False, auto_pad="SAME_UPPER"),
]


def _transposed(
    x: tuple[int, ...], w: tuple[int, ...], bias: bool = True, **attributes: Any
) -> tuple[list[np.ndarray | None], dict[str, Any]]:
    inputs: list[np.ndarray | None] = [_floats(*x), _floats(*w)]
    results = w[1] * attributes.get("group", 1)
    return [*inputs, _floats(results)] if bias else inputs, attributes


_BACK = [
    _transposed((1, 3, 4, 5), (3, 4, 3, 3)),
    _transposed((2, 3, 4, 5), (3, 4, 2, 2), strides=[2, 2], bias=False),
    _transposed((1, 3, 4, 5), (3, 4, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1]),
    _transposed((1, 3, 4, 5), (3, 4, 3, 3), strides=[2, 2], pads=[1, 0, 0, 1]),
    _transposed(
        (1, 3, 4, 5), (3, 4, 3, 3), strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1]
    ),
    _transposed((1, 3, 4, 5), (3, 4, 3, 3), strides=[3, 2], output_padding=[2, 1]),
    _transposed((1, 4, 4, 5), (4, 2, 3, 3), group=2, strides=[2, 2]),
    _transposed((1, 3, 4, 5), (3, 2, 2, 2), dilations=[2, 2]),
    _transposed((1, 3, 4, 5), (3, 4, 3, 3), auto_pad="SAME_UPPER", strides=[2, 2]),
    _transposed((1, 3, 4, 5), (3, 4, 3, 3), auto_pad="SAME_LOWER", strides=[2, 2]),
    _transposed((1, 3, 4, 5), (3, 4, 1, 2), auto_pad="SAME_UPPER", strides=[2, 3]),
    _transposed((1, 3, 4, 5), (3, 4, 1, 2), auto_pad="SAME_LOWER", strides=[2, 3]),
    _transposed((1, 3, 4, 5), (3, 4, 3, 3), output_shape=[10, 8], strides=[3, 2]),
    _transposed((1, 3, 4, 5), (3, 4, 3, 3), output_shape=[13, 12], strides=[3, 2]),
    _transposed((1, 3, 6), (3, 4, 3), strides=[2], pads=[1, 1], output_padding=[1]),
    _transposed((1, 2, 3, 4, 5), (2, 3, 3, 3, 3), strides=[2, 2, 2], pads=[1] * 6),
    _transposed((1, 2, 3, 4, 5), (2, 3, 2, 2, 2), bias=False),
]
_REFUSED = {
    "SAME_LOWER with strides": _conv(
        (1, 1, 6, 6), (1, 1, 3, 3), auto_pad="SAME_LOWER", strides=[2, 2]
    ),
    "strides beyond the window": _conv(
        (1, 1, 6, 6), (1, 1, 1, 1), auto_pad="SAME_UPPER", strides=[2, 2]
    ),
}

CASES = [
    *[OnnxCase("Conv", inputs, how, constants=(1, 2)) for inputs, how in _WAYS],
    *[
        OnnxCase("Conv", inputs, how, constants=(1, 2), open_dims=True, note="open")
        for inputs, how in _WAYS
    ],
    OnnxCase("Conv", *_WAYS[0], note="computed", primitives={"Conv2D", "BiasAdd"}),
    *[
        OnnxCase("Conv", inputs, how, constants=(1, 2), custom=reason)
        for reason, (inputs, how) in _REFUSED.items()
    ],
    *[OnnxCase("ConvTranspose", inputs, how, constants=(1, 2)) for inputs, how in _BACK],
    *[
        OnnxCase("ConvTranspose", inputs, how, constants=(1, 2), open_dims=True, note="open")
        for inputs, how in _BACK
        if "output_shape" not in how
    ],
    OnnxCase(
        "ConvTranspose",
        *_transposed((1, 3, 4, 5), (3, 4, 3, 3), output_shape=[10, 8], strides=[2, 2]),
        constants=(1, 2),
        open_dims=True,
        custom="run time",
    ),
]
