"""Recurrent layers of ONNX as MindSpore primitives.

LSTM has one; GRU has one for half floats on Ascend alone, and a plain RNN none: see kept.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mindspore_lite.ops.to_mindir.spatial import joined, sizes
from mindspore_lite.ops.to_mindir.table import back
from mindspore_lite.ops.to_mindir.writer import MAX_MADE_UP, Made, MindirWriter, Operand

_WAYS = {"forward": 1, "reverse": 1, "bidirectional": 2}


def _plain(
    p: MindirWriter, lengths: Operand | None, x: Operand, layout: int, **options: Any
) -> None:
    """MindSpore has none of these options."""
    for name, value in options.items():
        p.require(not value, name)
    steps = x.shape[1 if layout else 0]
    if lengths is not None:
        whole = lengths.const is not None and steps is not None
        p.require(whole and set(lengths.numbers()) <= {steps}, "sequences of different lengths")


def _usual(p: MindirWriter, given: Sequence[str] | None, ways: int, usual: Sequence[str]) -> None:
    found = [name.lower() for name in given or list(usual) * ways]
    p.require(found == list(usual) * ways, f"activations {', '.join(found)}")


def _time_first(p: MindirWriter, x: Any, layout: int) -> Any:
    return p.call("Transpose", x, (1, 0, 2)) if layout else x


def _backwards(p: MindirWriter, x: Any, direction: str) -> Any:
    return p.call("ReverseV2", x, (0,)) if direction == "reverse" else x


def _state(
    p: MindirWriter, x: Operand, given: Operand | None, layout: int, ways: int, hidden: int
) -> Any:
    """[directions, batch, hidden]; zeros where none is given."""
    if given is not None:
        return _time_first(p, given, layout)
    shape = [ways, sizes(p, x)[0 if layout else 1], hidden]
    if all(isinstance(n, int) for n in shape) and math.prod(shape) <= MAX_MADE_UP:
        return np.zeros(shape, x.dtype)
    return p.call("FillV2", p.tuple(shape), np.zeros((), x.dtype))


def _cut(p: MindirWriter, x: Any, way: int, begin: int, end: int) -> Made:
    """Rows of one direction's weights [directions, rows, ...] or biases, without that axis."""
    return p.call("StridedSlice", x, (way, begin), (way + 1, end), (1, 1), 0, 0, 0, 0, 1)


def _gates(
    p: MindirWriter, x: Any, way: int, hidden: int, order: Sequence[int], first: int = 0
) -> Made:
    """One direction's weights with their gates in another order."""
    parts = [_cut(p, x, way, (first + g) * hidden, (first + g + 1) * hidden) for g in order]
    return p.call("Concat", p.tuple(parts), 0)


def _outputs(
    p: MindirWriter,
    y: Made,
    ends: Sequence[Made],
    direction: str,
    layout: int,
    hidden: int,
    x: Operand,
) -> tuple[Made, ...]:
    """MindSpore's [T, N, directions * H] as ONNX has it, and the last states."""
    ways = _WAYS[direction]
    y = _backwards(p, y, direction)
    if ways == 1:
        whole = p.call("ExpandDims", y, 2 if layout else 1)
        if layout:
            whole = p.call("Transpose", whole, (1, 0, 2, 3))
    else:
        first, second = sizes(p, x)[:2]
        steps, batch = (second, first) if layout else (first, second)
        apart = p.call("Reshape", y, joined(p, [steps, batch, ways, hidden]))
        whole = p.call("Transpose", apart, (1, 0, 2, 3) if layout else (0, 2, 1, 3))
    return (whole, *(_time_first(p, end, layout) for end in ends))


@back("LSTM")
def lstm(
    p: MindirWriter,
    x: Operand,
    w: Operand,
    r: Operand,
    b: Operand | None = None,
    sequence_lens: Operand | None = None,
    initial_h: Operand | None = None,
    initial_c: Operand | None = None,
    peepholes: Operand | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float = 0.0,
    direction: str = "forward",
    hidden_size: int = 0,
    input_forget: int = 0,
    layout: int = 0,
) -> Any:
    """-> (y, h, c); the gates i, o, f, c become i, f, g, o in one blob of weights."""
    _plain(p, sequence_lens, x, layout, peepholes=peepholes, clip=clip, input_forget=input_forget,
           alpha=activation_alpha, beta=activation_beta)  # fmt: skip
    ways = _WAYS[direction]
    _usual(p, activations, ways, ("sigmoid", "tanh", "tanh"))
    width, hidden = w.shape[2], hidden_size or r.shape[2] or 0
    p.require(width is not None and hidden, "sizes of weights known only at run time")
    order, each = (0, 2, 3, 1), range(ways)
    parts = [_gates(p, v, way, hidden, order) for v in (w, r) for way in each]
    if b is not None:
        parts += [
            p.call("Add", *(_gates(p, b, way, hidden, order, first) for first in (0, 4)))
            for way in each
        ]
    blob = p.call("Concat", p.tuple([p.call("Reshape", v, (-1, 1, 1)) for v in parts]), 0)
    states = [_state(p, x, v, layout, ways, hidden) for v in (initial_h, initial_c)]
    made = p.call(
        "LSTM",
        _backwards(p, _time_first(p, x, layout), direction),
        *states,
        blob,
        input_size=width,
        hidden_size=hidden,
        num_layers=1,
        has_bias=b is not None,
        bidirectional=ways == 2,
        dropout=0.0,
        proj_size=0,
    )
    ends = [p.item(made, 1), p.item(made, 2)]
    return _outputs(p, p.item(made, 0), ends, direction, layout, hidden, x)
